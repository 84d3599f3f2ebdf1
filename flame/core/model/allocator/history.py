"""Hold what an allocator recorded: its events in order, and its segments and blocks at the end."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from flame.core.columns import I4, I8, U1, Bool
from flame.core.lazy_dataclass import dataclass
from flame.core.model.frames import FrameBuilder
from flame.core.model.stacks import StackBuilder

NO_TIME = -1
"""Of events that were recorded without the time."""


class AllocatorAction(IntEnum):
    """Name what an allocator did."""

    ALLOC = 0
    FREE = 1
    """The program gave the memory back: it may be in use on the GPU for a while."""
    FREED = 2
    """The allocator may give it out again."""
    SEGMENT_ALLOC = 3
    SEGMENT_FREE = 4
    SEGMENT_MAP = 5
    SEGMENT_UNMAP = 6
    OUT_OF_MEMORY = 7
    SNAPSHOT = 8


class BlockState(IntEnum):
    """Name what a block of a segment is used for."""

    ALLOCATED = 0
    PENDING = 1
    """Given back by the program, and waited for: another stream may still use it."""
    FREE = 2


@dataclass(frozen=True, eq=False)
class AllocatorEvents:
    """Hold the events of all devices, those of each in the order in which they happened.

    | column | dtype | meaning |
    |---|---|---|
    | device | i4 | number of the GPU |
    | position | i8 | place among the events of the device, which orders them: times tie |
    | action | u1 | `AllocatorAction` |
    | address | i8 | of the memory; what the device had free, in bytes, of OUT_OF_MEMORY |
    | size | i8 | bytes, of an allocation as they were asked for |
    | stream | i8 | address of the stream, 0 the default one |
    | time | i8 | ns, `NO_TIME` unknown |
    | python, native | i4 | ids of stacks, 0 without one: Python frames, and C++ ones below these |
    """

    device: I4
    position: I8
    action: U1
    address: I8
    size: I8
    stream: I8
    time: I8
    python: I4
    native: I4

    def __len__(self) -> int:
        return len(self.device)

    def take(self, rows: I8 | Bool) -> AllocatorEvents:
        """Take the events ``rows``, indices or a mask."""
        columns = (getattr(self, name)[rows] for name in self.__dataclass_fields__)
        return AllocatorEvents(*columns)


@dataclass(frozen=True, eq=False)
class MemorySegments:
    """Hold the pieces of memory that the allocator had got from the driver, at the end.

    ``device`` i4[n], ``address``, ``size`` and ``stream`` i8[n]; ``pool`` i4[n] is a place in
    ``pools``, the names of private pools and of the default one.
    """

    device: I4
    address: I8
    size: I8
    stream: I8
    pool: I4
    pools: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.device)


@dataclass(frozen=True, eq=False)
class MemoryBlocks:
    """Hold the blocks that the segments are divided into, at the end.

    ``segment`` i8[n] is a row of the segments; ``address``, ``size`` and ``requested`` i8[n], the
    last as the program asked for it; ``state`` u1[n] `BlockState`; ``python`` and ``native`` i4[n]
    are ids of stacks.
    """

    segment: I8
    address: I8
    size: I8
    requested: I8
    state: U1
    python: I4
    native: I4

    def __len__(self) -> int:
        return len(self.segment)


EVERY_DEVICE = -1
"""Of steps that are the program's, not a GPU's."""


class StepEnd(NamedTuple):
    """Say when a range of the program ended that is a step by its name, ns.

    ``device`` is the number of the GPU that it is of, or `EVERY_DEVICE`.
    """

    name: str
    device: int
    time: int


@dataclass(frozen=True, eq=False)
class AllocatorHistory:
    """Hold what an allocator recorded. ``has_events``: whether it recorded any history at all.

    Ids of stacks are those of ``stacks``, of frames those of ``frames``.

    ``left_out`` counts events and blocks that make no sense; ``unknown_actions`` events of kinds
    that flame does not know, by their names; ``too_deep`` stacks without their innermost frames.
    """

    events: AllocatorEvents
    segments: MemorySegments
    blocks: MemoryBlocks
    has_events: bool
    stacks: StackBuilder
    frames: FrameBuilder
    step_ends: tuple[StepEnd, ...] = ()
    left_out: int = 0
    unknown_actions: tuple[str, ...] = ()
    too_deep: int = 0
