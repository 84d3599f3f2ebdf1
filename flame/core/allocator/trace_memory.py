"""Tell who allocated memory, from the events of it that a trace of GPU work has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from flame.core.allocator.live import find_peak, live_curve
from flame.core.allocator.pairing import PairingLosses, loss_warnings, pair_events
from flame.core.allocator.recorded import HistoryMemory
from flame.core.allocator.reserved_curve import reserved_curves
from flame.core.allocator.tables import split_devices
from flame.core.columns import I4, I8, SUM_LIMIT, Bool, run_starts, sum_by, unique
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import NONE, Activities, off_gpu_columns, repeat
from flame.core.model.allocator.allocations import ALIVE, BEFORE, Allocations
from flame.core.model.allocator.history import (
    EVERY_DEVICE,
    NO_TIME,
    AllocatorAction,
    AllocatorEvents,
    AllocatorHistory,
    MemoryBlocks,
    MemorySegments,
    StepEnd,
)
from flame.core.model.allocator.memory_events import (
    ON_DEVICE,
    UNTOLD,
    MemoryEvents,
    MemoryStacks,
)
from flame.core.model.allocator.recorded import MemoryElsewhere
from flame.core.model.frames import FrameBuilder, Kind
from flame.core.model.meta import ProfilerSteps
from flame.core.model.metrics import MEMORY_METRICS
from flame.core.model.stacks import EMPTY, StackBuilder, StackTable
from flame.core.units import format_counted


@dataclass(frozen=True, eq=False)
class TraceMemory:
    """Hold the allocations of a trace, each of which has a row of ``events`` as its ``stream``.

    That is of what gave it out, else of what gave it back, or of the first of its place. Called it
    makes what a `Profile` has of them; ``table`` are the stacks that ids are of.
    """

    events: MemoryEvents
    allocations: Allocations
    stacks: MemoryStacks
    table: StackTable
    steps: ProfilerSteps

    def __call__(self) -> HistoryMemory:
        """Make the tables of the allocations, and what is known of each GPU."""
        device, is_own = _devices(self.events)
        row = self.allocations.stream
        own = self.allocations.take(is_own[self.events.place[row]])
        position = _positions(self.events, device, is_own)
        own = replace(
            own,
            device=device[self.events.place[own.stream]],
            begin=np.where(own.begin == BEFORE, BEFORE, position[own.begin]),
            end=np.where(own.end == ALIVE, ALIVE, position[np.where(own.end == ALIVE, 0, own.end)]),
            python=self._whole(own),
        )
        parts = dict(split_devices(own, unique(own.device).tolist()))
        return HistoryMemory(
            self._activities(own),
            tuple(parts),
            tuple(parts),
            tuple(parts.values()),
            _history(_own_events(self.events, device, is_own, position), _step_ends(self.steps)),
            tuple(self._elsewhere(~is_own)),
            reserved_curves(self.events, self.allocations, device, is_own),
        )

    def _whole(self, own: Allocations) -> I4:
        whole = np.where(own.begin == BEFORE, self.stacks.before, self.stacks.whole[own.stream])
        return whole.astype(np.int32)

    def _activities(self, own: Allocations) -> Activities:
        stacks, row, before = self.stacks, own.stream, own.begin == BEFORE
        start = np.where(own.begin_time == NO_TIME, self.events.time[0], own.begin_time)
        stop = np.where(own.end_time == NO_TIME, self.events.time[-1], own.end_time)
        columns: dict[str, Any] = {
            "kind": repeat(np.uint8(Kind.FRAME), len(own)),
            "start": start,
            "duration": np.maximum(stop - start, 0),
            "device": own.device,
            "process": self.events.process[row],
            "thread": np.where(before, np.int32(NONE), stacks.thread[row]),
            "python": np.where(before, np.int32(stacks.before), stacks.python[row]),
            "native": np.where(before, np.int32(EMPTY), stacks.native[row]),
            "nvtx": np.where(before, np.int32(EMPTY), stacks.nvtx[row]),
            "launch": np.where(before, np.int32(NONE), stacks.launch[row]),
        }
        return Activities(
            **off_gpu_columns(len(own)) | columns,
            stacks=self.table,
            measures={metric.key: own.size for metric in MEMORY_METRICS},
            is_cut=True,
        )

    def _elsewhere(self, chosen: Bool) -> Iterator[MemoryElsewhere]:
        """What is of places that are ``chosen``, by kind."""
        places, events, table = self.events.places, self.events, self.allocations
        for kind in dict.fromkeys(places[at].kind for at in np.flatnonzero(chosen).tolist()):
            of_kind = chosen & np.array([place.kind == kind for place in places])
            curve = live_curve(table.take(of_kind[events.place[table.stream]]))
            number = int(of_kind[events.place].sum())
            yield MemoryElsewhere(kind, number, find_peak(curve).size, int(curve.size[-1]))


def fits(events: MemoryEvents) -> bool:
    """Tell whether all sums of ``events`` fit 64 bits."""
    used = max(int(events.in_use.max(initial=0)), 0) * len(events.places)
    return float(events.size.sum(dtype=np.float64)) + used < SUM_LIMIT


def pair_memory(
    events: MemoryEvents, stacks: MemoryStacks, table: StackTable, steps: ProfilerSteps
) -> tuple[TraceMemory, list[str]]:
    """Find the allocations of ``events``, and say what does not fit together in them.

    There are some. Stacks are rows of ``table``.
    """
    rows = np.arange(len(events))
    action = np.where(events.allocates, AllocatorAction.ALLOC, AllocatorAction.FREE).astype(
        np.uint8
    )
    none: I4 = np.zeros(len(events), np.int32)
    found, losses = pair_events(
        _history(
            AllocatorEvents(
                *(events.space, rows, action, events.address, events.size),
                *(rows, events.time, none, none),
            )
        )
    )
    unsized = int(((found.begin == BEFORE) & (found.size == 0)).sum())
    found = _with_base(events, found)
    return TraceMemory(events, found, stacks, table, steps), list(
        _warnings(events, losses, unsized)
    )


def _history(events: AllocatorEvents, steps: Sequence[StepEnd] = ()) -> AllocatorHistory:
    """What a trace tells as an allocator would: ``events``, and nothing of blocks."""
    none, number = np.zeros(0, np.int64), np.zeros(0, np.int32)
    segments = MemorySegments(number, none, none, none, number, ())
    blocks = MemoryBlocks(none, none, none, none, np.zeros(0, np.uint8), number, number)
    frames = FrameBuilder()
    return AllocatorHistory(events, segments, blocks, True, StackBuilder(), frames, tuple(steps))


def _positions(events: MemoryEvents, device: I4, is_own: Bool) -> I8:
    """The place of each event among those of its GPU's own memory; -1 of others."""
    position = np.full(len(events), BEFORE, np.int64)
    rows = np.flatnonzero(is_own[events.place])
    of_row = device[events.place[rows]]
    order = np.argsort(of_row, kind="stable")
    first = run_starts(of_row[order])
    counted = np.arange(len(order)) - np.repeat(first, np.diff(np.append(first, len(order))))
    position[rows[order]] = counted
    return position


def _own_events(events: MemoryEvents, device: I4, is_own: Bool, position: I8) -> AllocatorEvents:
    """The events of memory that GPUs have themselves."""
    row = np.flatnonzero(is_own[events.place])
    none: I4 = np.zeros(len(row), np.int32)
    action = np.where(events.allocates[row], AllocatorAction.ALLOC, AllocatorAction.FREE).astype(
        np.uint8
    )
    return AllocatorEvents(
        *(device[events.place[row]], position[row], action, events.address[row], events.size[row]),
        *(none.astype(np.int64), events.time[row], none, none),
    )


def _devices(events: MemoryEvents) -> tuple[I4, Bool]:
    """The GPU of each place, and whether the memory is its own."""
    device = np.array([place.device for place in events.places], np.int32)
    own = [place.kind in ON_DEVICE and place.device >= 0 for place in events.places]
    return device, np.array(own, bool)


def _first_of_places(events: MemoryEvents) -> I8:
    """The first event of each place that tells how much is in use."""
    places, first = np.unique(events.place, return_index=True)
    assert len(places) == len(events.places)
    told: I8 = first[events.in_use[first] != UNTOLD]
    return told


def _change(events: MemoryEvents) -> I8:
    return np.where(events.allocates, events.size, -events.size)


def _with_base(events: MemoryEvents, table: Allocations) -> Allocations:
    """Add what was in use before the first event of a place and is not given back, as one."""
    first = _first_of_places(events)
    base = events.in_use[first] - _change(events)[first]
    before = table.begin == BEFORE
    given_back = sum_by(events.place[table.stream[before]], table.size[before], len(events.places))
    rest = base - given_back[events.place[first]]
    first, rest = first[rest > 0], rest[rest > 0]
    size, none = len(first), np.zeros(len(first), np.int32)
    unknown = np.full(size, NO_TIME, np.int64)
    more = Allocations(
        events.space[first],
        np.full(size, BEFORE, np.int64),
        np.full(size, ALIVE),
        rest,
        unknown,
        unknown,
        unknown,
        first,
        none,
        none,
    )
    names = Allocations.__dataclass_fields__
    return Allocations(
        *(np.concatenate([getattr(table, name), getattr(more, name)]) for name in names)
    )


def count_breaks(events: MemoryEvents) -> int:
    """Count the events that do not fit what was in use after the one before of their place."""
    order = np.argsort(events.place, kind="stable")
    place, in_use = events.place[order], events.in_use[order]
    known = (place[1:] == place[:-1]) & (in_use[1:] != UNTOLD) & (in_use[:-1] != UNTOLD)
    return int((in_use[:-1] + _change(events)[order][1:] != in_use[1:])[known].sum())


def _warnings(events: MemoryEvents, losses: PairingLosses, unsized: int) -> Iterator[str]:
    yield from loss_warnings(losses, 0)
    if unsized:
        were = format_counted(unsized, "allocation was", "allocations were")
        yield f"memory: {were} made before the recording and given back, nothing tells how large"
    if events.left_out:
        do = format_counted(events.left_out, "event makes", "events make")
        yield f"memory: {do} no sense: left out"
    if breaks := count_breaks(events):
        do = format_counted(breaks, "event does", "events do")
        yield (
            f"memory: {do} not fit what the allocator says was in use: others are lost, and "
            "what these gave out or back is not known"
        )


def _step_ends(steps: ProfilerSteps) -> list[StepEnd]:
    ends = zip(steps.number.tolist(), steps.end.tolist(), strict=True)
    return [StepEnd(f"ProfilerStep#{number}", EVERY_DEVICE, end) for number, end in ends]
