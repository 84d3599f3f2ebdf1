"""Turn the objects of a snapshot into columns: events, segments, blocks.

The forms are those that PyTorch has written since 2022 (torch/cuda/memory.py and
c10/cuda/CUDACachingAllocator.h): a dictionary with ``segments`` and ``device_traces``, or a list of
segments alone. What makes no sense is left out and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeGuard

import numpy as np

from flame.core.columns import I8
from flame.core.errors import InputError
from flame.core.model.allocator.history import (
    NO_TIME,
    Action,
    AllocatorEvents,
    AllocatorHistory,
    BlockState,
    MemoryBlocks,
    MemorySegments,
    StepEnd,
)
from flame.core.model.frames import FrameBuilder
from flame.core.readers.shared.stack_rows import Tick
from flame.core.readers.snapshot.frame_lists import FrameLists
from flame.core.readers.snapshot.limits import Allowance

ACTIONS = {
    "alloc": Action.ALLOC,
    "free_requested": Action.FREE,
    "free_completed": Action.FREED,
    "segment_alloc": Action.SEGMENT_ALLOC,
    "segment_free": Action.SEGMENT_FREE,
    "segment_map": Action.SEGMENT_MAP,
    "segment_unmap": Action.SEGMENT_UNMAP,
    "oom": Action.OUT_OF_MEMORY,
    "snapshot": Action.SNAPSHOT,
}
_STATES = {"active_allocated": BlockState.ALLOCATED, "inactive": BlockState.FREE}
"""All others wait: written ``active_pending_free``, documented ``active_awaiting_free``."""

_STEPS = ("ProfilerStep#", "Optimizer.step")
"""How ranges that are steps begin, those that count first."""

_NS_PER_US = 1_000
_MOST = (1 << 63) - 1
_MOST_DEVICES = 1 << 16
_LONGEST_NAME = 200
_DEFAULT_POOL = "default pool"

Values: TypeAlias = "tuple[int, ...]"
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


def read_history(root: object, size: int, tick: Tick) -> AllocatorHistory:
    """Read the history in ``root``, the objects of a file of ``size`` bytes.

    Raises InputError where it is no snapshot, or was made to take more time than its size allows.
    """
    if not looks_like_snapshot(root):
        raise InputError("it is not a memory snapshot: it has no segments")
    return _Reader(size, tick).read(_parts(root))


def _parts(root: Any) -> _Whole:
    if isinstance(root, list):
        return _Whole(root, [], [])
    others = (root.get(name) for name in ("device_traces", "external_annotations"))
    traces, annotations = (one if isinstance(one, list) else [] for one in others)
    return _Whole(root["segments"], traces, annotations)


class _Reader:
    """Collects the rows of one snapshot."""

    def __init__(self, size: int, tick: Tick) -> None:
        self._allowance = Allowance(size)
        self._frames = FrameBuilder()
        self._lists = FrameLists(self._frames, self._allowance)
        self._tick = tick
        self._pools: dict[str, int] = {_DEFAULT_POOL: 0}
        self._unknown: Counter[str] = Counter()
        self._left_out = 0

    def read(self, whole: _Whole) -> AllocatorHistory:
        traces = whole.traces[:_MOST_DEVICES]
        events = _columns(
            [row for at, one in enumerate(traces) for row in self._events(at, one)], 8
        )
        segments, blocks = self._segments(whole.segments)
        stacks, python, native = self._lists.build(self._tick)
        device, position, action, address, size, stream, time, frames = events
        of_device, at, length, of_stream, pool = _columns(segments, 5)
        segment, begin, room, requested, state, of_block = _columns(blocks, 6)
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
            bool((action != Action.SNAPSHOT).any()),
            stacks,
            self._frames,
            tuple(self._step_ends(whole.annotations)),
            self._left_out,
            tuple(name[:_LONGEST_NAME] for name in self._unknown),
        )

    def _events(self, device: int, trace: object) -> Iterator[Values]:
        """The columns of `AllocatorEvents`, the last the number of a list of frames."""
        if not isinstance(trace, list):
            self._left_out += 1
            return
        self._allowance.take(len(trace))
        for position, entry in enumerate(trace):
            if not position % (1 << 16):
                self._tick()
            found = self._event(entry) if isinstance(entry, dict) else None
            if found is None:
                self._left_out += 1
            else:
                yield device, position, *found

    def _event(self, entry: Dict) -> Values | None:
        name = entry.get("action")
        action = ACTIONS.get(name) if isinstance(name, str) else None
        if action is None:
            self._unknown[str(name)] += 1
            return None
        address = entry.get("device_free" if action == Action.OUT_OF_MEMORY else "addr", 0)
        size, stream = entry.get("size", 0), entry.get("stream", 0)
        time = entry.get("time_us", NO_TIME)
        if not (_is_amount(address) and _is_amount(size) and _is_amount(stream)):
            return None
        known = _is_amount(time) and time <= _MOST // _NS_PER_US
        frames = self._lists.number(entry.get("frames"))
        return action, address, size, stream, time * _NS_PER_US if known else NO_TIME, frames

    def _step_ends(self, annotations: Sequence[Any]) -> Iterator[StepEnd]:
        """The ends of steps: of the profiler's where there are some, else of the optimizer's."""
        self._allowance.take(len(annotations))
        ends = [end for one in annotations if (end := _step_end(one)) is not None]
        steps = [end for end in ends if end.name.startswith(_STEPS[0])]
        yield from steps or ends

    def _segments(self, segments: Sequence[Any]) -> tuple[list[Values], list[Values]]:
        """The columns of `MemorySegments` and of `MemoryBlocks`, these with lists of frames."""
        self._allowance.take(len(segments))
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
        if not all(map(_is_amount, values)) or values[0] >= _MOST_DEVICES:
            return None
        return *values, self._pool(segment.get("segment_pool_id"))

    def _pool(self, pool: object) -> int:
        """Number a pool by the pair of numbers that names it; (0, 0) is that of all."""
        pair = tuple(pool) if isinstance(pool, list | tuple) else ()
        if len(pair) != 2 or not any(pair) or not all(map(_is_amount, pair)):
            return 0
        return self._pools.setdefault(f"pool {pair[0]}.{pair[1]}", len(self._pools))

    def _blocks(self, segment: Dict, row: int, address: int) -> Iterator[Values]:
        """The blocks of a segment: before 2023 they had no addresses, but lay side by side."""
        blocks = segment.get("blocks")
        if not isinstance(blocks, list):
            return
        self._allowance.take(len(blocks))
        for block in blocks:
            found = self._block(block, address) if isinstance(block, dict) else None
            if found is None:
                self._left_out += 1
                continue
            yield row, *found
            address = min(found[0] + found[1], _MOST)

    def _block(self, block: Dict, address: int) -> Values | None:
        history = block.get("history")
        last = history[0] if isinstance(history, list) and history else {}
        size, begin = block.get("size"), block.get("address", address)
        requested = block.get("requested_size", size)
        if not (_is_amount(size) and _is_amount(begin) and _is_amount(requested)):
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
    if not (isinstance(name, str) and name.startswith(_STEPS)):
        return None
    if not (_is_amount(device) and _is_amount(time) and time <= _MOST // _NS_PER_US):
        return None
    return StepEnd(name[:_LONGEST_NAME], device, time * _NS_PER_US)


def _is_amount(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value <= _MOST


def _columns(rows: Sequence[Values], width: int) -> I8:
    """The columns of ``rows``, i8[width, rows]."""
    return np.array(rows, np.int64).reshape(len(rows), width).T
