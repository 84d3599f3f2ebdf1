"""Make the `Profile` of a memory snapshot: its allocations, and no work of a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from flame.core.allocator.pairing import PairingLosses, loss_warnings, pair_events
from flame.core.allocator.pools import pools_of
from flame.core.allocator.recorded import HistoryMemory
from flame.core.allocator.tables import split_devices
from flame.core.columns import I4, I8, SUM_LIMIT
from flame.core.errors import InputError
from flame.core.model.activities import Activities, off_gpu_columns, repeat
from flame.core.model.allocator.allocations import BEFORE, Allocations
from flame.core.model.allocator.history import NO_TIME, AllocatorHistory
from flame.core.model.allocator.memory_events import BEFORE_FRAME, NATIVE_FRAME, UNKNOWN_FRAME
from flame.core.model.frames import Frame, Kind
from flame.core.model.grouping import add_grouping
from flame.core.model.meta import Device, GraphNodes, Meta, Source
from flame.core.model.metrics import MEMORY_METRICS
from flame.core.model.profile import Profile
from flame.core.model.stacks import EMPTY
from flame.core.units import format_count

_Table = TypeVar("_Table")

UNKNOWN_POOL = "[pool not known]"


def build_snapshot_profile(history: AllocatorHistory, meta: Meta) -> Profile:
    """Make the profile of ``history``, whose metrics are those of memory.

    Raises InputError where a sum would not fit 64 bits.
    """
    history, origin = _from_zero(history)
    meta = replace(meta, origin=origin)
    table, losses = pair_events(history)
    for sizes in (table.size, history.blocks.size):
        if float(sizes.sum(dtype=np.float64)) >= SUM_LIMIT:
            raise InputError("its allocations add up to more than 64 bits hold")
    sources = (Source("", meta),)
    parts = dict(split_devices(table, _device_numbers(history)))
    devices = tuple(Device(number) for number in parts)
    # Streams are recorded as addresses: they are numbered, and the default one, 0, is always 0.
    streams, stream = np.unique(np.append(0, table.stream), return_inverse=True)
    grouping = add_grouping(
        history.frames, (), (), devices, np.arange(len(streams), dtype=np.int32), sources
    )
    python = _with_unknown(history, table)
    activities = _activities(history, table, python, stream[1:].astype(np.int32), list(parts))
    begin, end = _extent(history)
    places = tuple(range(len(parts)))
    memory = HistoryMemory(activities, places, tuple(parts), tuple(parts.values()), history)
    return Profile(
        frames=history.frames.build(),
        activities=activities,
        processes=(),
        threads=(),
        devices=devices,
        grouping=grouping,
        meta=meta,
        begin=begin,
        end=end,
        graph_nodes=GraphNodes(),
        warnings=tuple(_warnings(history, losses)),
        host_builder=partial(_same, activities),
        sources=sources,
        own_metrics=MEMORY_METRICS,
        timed=end > begin,
        memory_builder=partial(_same, memory),
    )


def _device_numbers(history: AllocatorHistory) -> list[int]:
    """The GPUs that the history tells of: the first one where it tells of none."""
    known = np.concatenate([history.events.device, history.segments.device])
    return np.unique(known).tolist() or [0]


def _same(table: _Table) -> _Table:
    return table


def _with_unknown(history: AllocatorHistory, table: Allocations) -> I4:
    """The Python stack of each allocation; a frame says why one has none."""
    before, unknown, native = (
        history.stacks.add_path([history.frames.add(frame)])
        for frame in (BEFORE_FRAME, UNKNOWN_FRAME, NATIVE_FRAME)
    )
    missing = np.where(table.begin == BEFORE, before, unknown)
    missing[table.native != EMPTY] = native
    return np.where(table.python == EMPTY, missing, table.python).astype(np.int32)


def _activities(
    history: AllocatorHistory,
    table: Allocations,
    python: I4,
    stream: I4,
    numbers: list[int],
) -> Activities:
    size = len(table)
    begin, end = _extent(history)
    start = np.where(table.begin_time == NO_TIME, begin, table.begin_time)
    stop = np.where(table.end_time == NO_TIME, end, table.end_time)
    columns: dict[str, Any] = off_gpu_columns(size) | {
        "kind": repeat(np.uint8(Kind.FRAME), size),
        "start": start,
        "duration": np.maximum(stop - start, 0),
        "device": np.searchsorted(numbers, table.device).astype(np.int32),
        "stream": stream,
        "python": python,
        "native": table.native,
        "pool": _pool_frames(history, table),
    }
    return Activities(
        **columns, stacks=history.stacks.build(), measures=_measures(table.size), is_cut=True
    )


def _pool_frames(history: AllocatorHistory, table: Allocations) -> I4:
    """The frame of the pool of each allocation; one says that it is not known."""
    names = *history.segments.pools, UNKNOWN_POOL
    frames = [history.frames.add(Frame(Kind.POOL, name)) for name in names]
    return np.array(frames, np.int32)[pools_of(history, table)]


def _measures(size: I8) -> dict[str, I8]:
    return {metric.key: size for metric in MEMORY_METRICS}


def _from_zero(history: AllocatorHistory) -> tuple[AllocatorHistory, int | None]:
    """``history`` by a clock that is 0 at its first event, and the Unix time of that, ns."""
    events = history.events
    known = events.time != NO_TIME
    if not known.any():
        return history, None
    origin = int(events.time[known].min())
    events = replace(events, time=np.where(known, events.time - origin, NO_TIME))
    ends = tuple(end._replace(time=end.time - origin) for end in history.step_ends)
    return replace(history, events=events, step_ends=ends), origin


def _extent(history: AllocatorHistory) -> tuple[int, int]:
    """First and last time, ns; (0, 0) where there is none."""
    times = history.events.time[history.events.time != NO_TIME]
    return (int(times.min()), int(times.max())) if len(times) else (0, 0)


def _warnings(history: AllocatorHistory, losses: PairingLosses) -> Iterator[str]:
    if not history.has_events:
        yield (
            "no history was recorded, only what lived at the end: call "
            "torch.cuda.memory._record_memory_history() before what is to be seen"
        )
    yield from loss_warnings(losses, history.left_out)
    if history.too_deep:
        yield (
            f"{format_count(history.too_deep)} stacks are very deep, and their innermost frames "
            "left out"
        )
    if history.unknown_actions:
        yield f"events of kinds that flame does not know: {', '.join(history.unknown_actions[:5])}"
