"""Turn the objects of a snapshot into columns: events, segments, blocks.

The forms are those that PyTorch has written since 2022 (torch/cuda/memory.py and
c10/cuda/CUDACachingAllocator.h): a dictionary with ``segments`` and ``device_traces``, or a list of
segments alone. What makes no sense is left out and counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from flame.core.columns import I8
from flame.core.errors import InputError
from flame.core.model.allocator.history import (
    NO_TIME,
    AllocatorAction,
    AllocatorEvents,
    AllocatorHistory,
    BlockState,
    MemoryBlocks,
    MemorySegments,
    StepEnd,
)
from flame.core.model.frames import FrameBuilder
from flame.core.options import Progress, silent
from flame.core.readers.snapshot.entries import WIDTH, Entries
from flame.core.readers.snapshot.frame_lists import FrameLists
from flame.core.readers.snapshot.limits import ObjectAllowance
from flame.core.readers.snapshot.values import MOST, Values, columns, is_amount, time_in_ns

_STATES = {"active_allocated": BlockState.ALLOCATED, "inactive": BlockState.FREE}
"""All others wait: written ``active_pending_free``, documented ``active_awaiting_free``."""

_STEPS = ("ProfilerStep#", "Optimizer.step")
"""How ranges that are steps begin, those that count first."""

_MOST_DEVICES = 128
"""As many as PyTorch can number: its DeviceIndex is an int8 (c10/core/Device.h)."""

_LONGEST_NAME = 200
_DEFAULT_POOL = "default pool"

Dict: TypeAlias = "Mapping[str, Any]"


class _Whole(NamedTuple):
    """The parts of a snapshot, whichever its form is."""

    segments: Sequence[Any]
    traces: Sequence[Any]
    annotations: Sequence[Any]


def looks_like_snapshot(root: object) -> bool:
    """Tell whether ``root`` is what a snapshot holds: segments, or histories of devices."""
    if isinstance(root, dict):
        return isinstance(root.get("segments"), list)
    return isinstance(root, list) and all(isinstance(one, dict) and "blocks" in one for one in root)


def read_history(root: object, size: int, progress: Progress = silent) -> AllocatorHistory:
    """Read the history in ``root``, the objects of a file of ``size`` bytes.

    Raises InputError where it is no snapshot, or was made to take more time than its size allows.
    """
    if not looks_like_snapshot(root):
        raise InputError("it is not a memory snapshot: it has no segments")
    return _Reader(size, progress).read(_parts(root))


def _parts(root: Any) -> _Whole:
    if isinstance(root, list):
        return _Whole(root, [], [])
    others = (root.get(name) for name in ("device_traces", "external_annotations"))
    traces, annotations = (one if isinstance(one, list) else [] for one in others)
    return _Whole(root["segments"], traces, annotations)


class _Reader:
    """Collects the rows of one snapshot."""

    def __init__(self, size: int, progress: Progress) -> None:
        self._allowance = ObjectAllowance(size)
        self._frames = FrameBuilder()
        self._lists = FrameLists(self._frames, self._allowance)
        self._progress = progress
        self._pools: dict[str, int] = {_DEFAULT_POOL: 0}
        self._entries = Entries(self._lists)
        self._left_out = 0

    def read(self, whole: _Whole) -> AllocatorHistory:
        events = np.concatenate([columns([], WIDTH), *self._events(whole.traces)], axis=1)
        segments, blocks = self._segments(whole.segments)
        stacks, python, native = self._lists.build(lambda: self._progress("reading events", 1, 1))
        device, position, action, address, size, stream, time, frames = events
        of_device, at, length, of_stream, pool = columns(segments, 5)
        segment, begin, room, requested, state, of_block = columns(blocks, 6)
        return AllocatorHistory(
            AllocatorEvents(
                device.astype(np.int32),
                position,
                action.astype(np.uint8),
                address,
                size,
                stream,
                time,
                python[frames],
                native[frames],
            ),
            MemorySegments(
                of_device.astype(np.int32),
                at,
                length,
                of_stream,
                pool.astype(np.int32),
                tuple(self._pools),
            ),
            MemoryBlocks(
                segment,
                begin,
                room,
                requested,
                state.astype(np.uint8),
                python[of_block],
                native[of_block],
            ),
            bool((action != AllocatorAction.SNAPSHOT).any()),
            stacks,
            self._frames,
            tuple(self._step_ends(whole.annotations)),
            self._left_out + self._entries.left_out,
            tuple(name[:_LONGEST_NAME] for name in self._entries.unknown),
            self._lists.too_deep,
        )

    def _events(self, traces: Sequence[Any]) -> Iterator[I8]:
        """The columns of `Entries.read`, of all devices."""
        self._left_out += max(len(traces) - _MOST_DEVICES, 0)
        histories = {
            device: one
            for device, one in enumerate(traces[:_MOST_DEVICES])
            if isinstance(one, list)
        }
        self._left_out += min(len(traces), _MOST_DEVICES) - len(histories)
        done, size = 0, sum(map(len, histories.values()))
        self._allowance.take_objects(size)
        for device, trace in histories.items():
            for piece in self._entries.read(device, trace):
                yield piece
                done += piece.shape[1]
                self._progress("reading events", done, size)

    def _step_ends(self, annotations: Sequence[Any]) -> Iterator[StepEnd]:
        """The ends of steps: of the profiler's where there are some, else of the optimizer's."""
        self._allowance.take_objects(len(annotations))
        ends = [end for one in annotations if (end := _step_end(one)) is not None]
        steps = [end for end in ends if end.name.startswith(_STEPS[0])]
        yield from steps or ends

    def _segments(self, segments: Sequence[Any]) -> tuple[list[Values], list[Values]]:
        """The columns of `MemorySegments` and of `MemoryBlocks`, these with lists of frames."""
        self._allowance.take_objects(len(segments))
        rows, blocks = list[Values](), list[Values]()
        for segment in segments:
            found = self._segment(segment) if isinstance(segment, dict) else None
            if found is None:
                self._left_out += 1
                continue
            blocks += self._blocks(segment, len(rows), found[1])
            rows.append(found)
        return rows, blocks

    def _segment(self, segment: Dict) -> Values | None:
        named = ("device", "address", "total_size", "stream")
        values = tuple(segment.get(name, 0) for name in named)
        if not all(map(is_amount, values)) or values[0] >= _MOST_DEVICES:
            return None
        return *values, self._pool(segment.get("segment_pool_id"))

    def _pool(self, pool: object) -> int:
        """Number a pool by the pair of numbers that names it; (0, 0) is that of all."""
        pair = tuple(pool) if isinstance(pool, list | tuple) else ()
        if len(pair) != 2 or not any(pair) or not all(map(is_amount, pair)):
            return 0
        return self._pools.setdefault(f"pool {pair[0]}.{pair[1]}", len(self._pools))

    def _blocks(self, segment: Dict, row: int, address: int) -> Iterator[Values]:
        """The blocks of a segment: before 2023 they had no addresses, but lay side by side."""
        blocks = segment.get("blocks")
        if not isinstance(blocks, list):
            return
        self._allowance.take_objects(len(blocks))
        for block in blocks:
            found = self._block(block, address) if isinstance(block, dict) else None
            if found is None:
                self._left_out += 1
                continue
            yield row, *found
            address = min(found[0] + found[1], MOST)

    def _block(self, block: Dict, address: int) -> Values | None:
        history = block.get("history")
        last = history[0] if isinstance(history, list) and history else {}
        size, begin = block.get("size"), block.get("address", address)
        requested = block.get("requested_size", size)
        if not (is_amount(size) and is_amount(begin) and is_amount(requested)):
            return None
        name = block.get("state")
        state = _STATES.get(name, BlockState.PENDING) if isinstance(name, str) else None
        if state is None or (state == BlockState.ALLOCATED and requested > size):
            return None
        frames = block.get("frames") or (last.get("frames") if isinstance(last, dict) else None)
        return begin, size, requested, state, self._lists.number(frames)


def _step_end(annotation: object) -> StepEnd | None:
    if not isinstance(annotation, dict) or annotation.get("stage") != "END":
        return None
    name, device, time = (annotation.get(key) for key in ("name", "device", "time_us"))
    if not (isinstance(name, str) and name.startswith(_STEPS) and is_amount(device)):
        return None
    found = time_in_ns(time)
    return None if found == NO_TIME else StepEnd(name[:_LONGEST_NAME], device, found)
