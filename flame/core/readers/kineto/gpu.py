"""Collect GPU work: kernels, memory copies and sets, their launches, and ranges beside them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flame.core.columns import I4, Column
from flame.core.lazy_regex import lazy_regex
from flame.core.model.activities import NONE
from flame.core.model.frames import Kind
from flame.core.model.launches import UNKNOWN, Dim, LaunchConfig, LaunchDetails
from flame.core.model.raw import RawActivities, RawGpuRanges, TableBuilder
from flame.core.readers.kineto.collectives import ToldCollectives
from flame.core.readers.kineto.context import (
    NO_ARGS,
    AnyEvent,
    KinetoContext,
    fill_absent,
    fit_31_bits,
)
from flame.core.readers.kineto.events import EventArgs
from flame.core.readers.kineto.vocabulary import (
    FrameIds,
    copy_frame,
    kernel_frame,
    memory_of,
    raw_texts,
    set_frame,
)
from flame.core.readers.shared.row_ids import IdByKey

_NAMING = {Kind.KERNEL: kernel_frame, Kind.MEMCPY: copy_frame, Kind.MEMSET: set_frame}
_DIM = lazy_regex(rb"\s*\[\s*(\d{1,12})\s*,\s*(\d{1,12})\s*,\s*(\d{1,12})\s*\]\s*")
_Geometry = tuple[bytes, bytes, int | None, int | None]


class LaunchConfigs(dict[_Geometry, int]):
    """Numbers of launch configurations by grid and block, as recorded, registers and memory."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[LaunchConfig, int] = {LaunchConfig(): UNKNOWN}

    def __missing__(self, key: _Geometry) -> int:
        grid, block, registers, shared = key
        config = LaunchConfig(_dim(grid), _dim(block), registers=registers, shared=shared)
        number = self[key] = self.add(config)
        return number

    def add(self, config: LaunchConfig) -> int:
        """Return the number of a configuration, new or known."""
        return self.known.setdefault(config, len(self.known) - 1)


def _dim(text: bytes) -> Dim | None:
    match = _DIM.fullmatch(text)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


class GpuActivities:
    """Collects the GPU activities of one trace, and the ``collectives`` that kernels tell of."""

    def __init__(self, context: KinetoContext, collectives: ToldCollectives) -> None:
        self._context = context
        self._collectives = collectives
        self._size = 0
        self._rows = TableBuilder(RawActivities)
        self._frames = {kind: FrameIds(context.frames, make) for kind, make in _NAMING.items()}
        self._configs = LaunchConfigs()
        self._memories = IdByKey[tuple[str]](lambda name: self._configs.add(memory_of(name)))
        self._config: list[Column] = [np.zeros(0, np.int32)]
        self._bytes: list[Column] = [np.zeros(0, np.int64)]

    def add(self, kind: Kind, events: Sequence[AnyEvent]) -> None:
        """Add activities of one kind."""
        whole, start, end = self._context.select_timed("GPU activities", events)
        args = [event.args or NO_ARGS for event in whole]
        devices = [event_args.device for event_args in args]
        streams = [event_args.stream for event_args in args]
        frames = self._frames[kind]
        self._rows.add(
            kind=np.full(len(whole), kind),
            start=start,
            end=end,
            process=np.full(len(whole), NONE),
            device=fit_31_bits(_fill_missing(devices, [event.pid for event in whole])),
            stream=fit_31_bits(_fill_missing(streams, [event.tid for event in whole])),
            correlation=fill_absent([event_args.correlation for event_args in args], 0),
            frame=frames.of([event.name for event in whole]),
            graph_node=np.full(len(whole), NONE),
        )
        if kind == Kind.KERNEL:
            self._config.append(self._launched(args))
            self._collectives.add_activities(whole, args, self._size)
        else:
            memories = (self._memories[event.name,] for event in whole)
            self._config.append(np.fromiter(memories, np.int32, len(whole)))
        sizes = fill_absent([event_args.bytes for event_args in args], UNKNOWN)
        self._bytes.append(np.where(sizes < 0, UNKNOWN, sizes))
        self._size += len(whole)

    def _launched(self, args: Sequence[EventArgs]) -> I4:
        """Number the launch configuration of each kernel."""
        keys = zip(
            raw_texts([event_args.grid for event_args in args]),
            raw_texts([event_args.block for event_args in args]),
            [event_args.registers for event_args in args],
            [event_args.shared for event_args in args],
            strict=True,
        )
        return np.fromiter(map(self._configs.__getitem__, keys), np.int32, len(args))

    def build(self) -> RawActivities:
        """Build the table of all activities; ``device`` is the machine's number of the GPU."""
        return self._rows.build()

    def launches(self) -> LaunchDetails:
        """Build the table of how they were launched, row by row."""
        configs = tuple(self._configs.known)[1:]
        return LaunchDetails(np.concatenate(self._config), np.concatenate(self._bytes), configs)


def _fill_missing(
    values: Sequence[int | None], others: Sequence[int | str]
) -> Sequence[int | str | None]:
    """Return ``values``, with what stands in the same place of ``others`` where there is none."""
    if None not in values:
        return values
    pairs = zip(values, others, strict=True)
    return [other if value is None else value for value, other in pairs]


class GpuAnnotations:
    """Collects the annotations on the GPU's own time lines."""

    def __init__(self, context: KinetoContext) -> None:
        self._context = context
        self._rows = TableBuilder(RawGpuRanges)

    def add(self, events: Sequence[AnyEvent]) -> None:
        """Add annotations."""
        whole, start, end = self._context.select_timed("GPU annotations", events)
        self._rows.add(
            start=start,
            end=end,
            device=fit_31_bits([event.pid for event in whole]),
            stream=fit_31_bits([event.tid for event in whole]),
            frame=self._context.range_frames(whole, [event.args or NO_ARGS for event in whole]),
        )

    def build(self) -> RawGpuRanges:
        """Build the table of all annotations; ``device`` is the machine's number of the GPU."""
        return self._rows.build()
