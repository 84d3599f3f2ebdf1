"""Say what is known of the memory of a trace's GPUs, whoever has recorded it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from flame.core.columns import I8, Bool, Side
from flame.core.model.activities import Activities, TableCut

_SIDES: tuple[Side, ...] = ("left", "right")


class ReservedParts(NamedTuple):
    """Hold the bytes that a device's allocator has got from the driver, and what they are.

    ``requested`` is what the program asked for, ``rounding`` what its blocks are larger;
    ``pending`` was given back and waits for another stream; ``split`` is free in segments that are
    in use otherwise, and cannot go back to the driver; ``releasable`` is in segments with nothing
    in them. These five add up to ``reserved``. ``largest_free`` is the largest free block.
    """

    reserved: int
    requested: int
    rounding: int
    pending: int
    split: int
    releasable: int
    largest_free: int

    @property
    def free(self) -> int:
        """Bytes that the allocator can give out again."""
        return self.split + self.releasable


class OutOfMemory(NamedTuple):
    """Describe a request that failed, after so many events (``position``), at ``time`` (ns).

    ``size`` bytes were asked for, and the device had ``device_free``. What the allocator had
    ``free``, in bytes, and the ``largest_free`` block are None where they are not known: they are
    of the end, and something happened after the request. ``stack`` is that of the request, as
    `Activities.python`.
    """

    position: int
    time: int
    size: int
    device_free: int
    stack: int
    free: int | None
    largest_free: int | None

    @property
    def is_fragmented(self) -> bool:
        """Whether there was room enough, but in pieces."""
        return self.free is not None and self.free >= self.size > (self.largest_free or 0)

    @property
    def is_full(self) -> bool:
        """Whether device and allocator together had less than was asked for."""
        return self.free is not None and self.device_free + self.free < self.size


class Growth(NamedTuple):
    """Describe a stack whose memory grows from step to step: it may leak.

    ``stack`` is a Python stack, ``native`` the C++ stack below it. ``sizes`` are the bytes that it
    had allocated since the first boundary, and that live at each boundary.
    """

    stack: int
    native: int
    sizes: tuple[int, ...]

    @property
    def total(self) -> int:
        """How much it has grown in all, bytes."""
        return self.sizes[-1] - self.sizes[0]


class MemoryOfDevice(NamedTuple):
    """Hold what is known of the memory of the GPU at the place ``device`` in the devices; bytes.

    ``peak`` is the most that lived at a time, first right after the event at ``peak_position``, at
    ``peak_time`` (ns, None where that is not known); ``before`` of it was allocated before the
    recording. ``live_end`` lives at the end. ``events`` counts what was recorded. ``parts`` is what
    is reserved at the end, None where it was not recorded.
    """

    device: int
    peak: int
    peak_position: int
    peak_time: int | None
    before: int
    live_end: int
    events: int
    parts: ReservedParts | None
    out_of_memory: tuple[OutOfMemory, ...]
    growth: tuple[Growth, ...]
    boundaries: int
    """How many ends of steps the growth was looked for at; at fewer than 3 it is not."""


class MemoryMoment(NamedTuple):
    """Say at which moment the memory of a ``device`` is shown: right after its event ``position``.

    ``position`` is `allocations.BEFORE` before the first event; ``time`` is in ns, None where that
    is not known; ``live`` bytes lived then.
    """

    device: int
    position: int
    time: int | None
    live: int


class MemoryCurve(NamedTuple):
    """Hold how much lived on the GPU at the place ``device``, from each event until the next.

    ``position`` i8[n] and ``time`` i8[n] (ns) ascend, times may tie; ``live`` and ``reserved``
    i8[n] are bytes right after the event, ``reserved`` None where it is not known over time.
    The first row, with the time of the first event, is what was there before it.
    """

    device: int
    position: I8
    time: I8
    live: I8
    reserved: I8 | None

    def position_at(self, time: int) -> int:
        """The last event up to ``time``, ns; of several at that very time that of most memory."""
        first, last = (int(np.searchsorted(self.time, time, side)) for side in _SIDES)
        if first == last:
            return int(self.position[max(last - 1, 0)])
        return int(self.position[first + int(self.live[first:last].argmax())])


class MemoryLives(NamedTuple):
    """Hold how long allocations lived, a row for each, as `RecordedMemory.table` has them.

    ``size`` i8[n] is in bytes; ``lifetime`` i8[n] in ns, -1 where begin or end is not known;
    ``before`` bool[n] says which were allocated before the recording, ``alive`` bool[n] which live
    at its end.
    """

    size: I8
    lifetime: I8
    before: Bool
    alive: Bool

    def take(self, rows: I8) -> MemoryLives:
        """Take ``rows`` of them."""
        return MemoryLives(
            self.size[rows], self.lifetime[rows], self.before[rows], self.alive[rows]
        )


class MemoryElsewhere(NamedTuple):
    """Hold how much memory of a ``kind`` was allocated that is no GPU's own, in bytes.

    Pinned memory is the host's, managed memory moves. ``events`` counts what was recorded, ``peak``
    is the most that lived at a time, ``live_end`` what lives at the end.
    """

    kind: str
    events: int
    peak: int
    live_end: int


class RecordedMemory(Protocol):
    """Tell who allocated memory of the GPUs."""

    @property
    def activities(self) -> Activities:
        """All allocations of GPUs' own memory, a row each."""
        ...

    @property
    def elsewhere(self) -> Sequence[MemoryElsewhere]:
        """What was allocated besides, by kind."""
        ...

    @property
    def fullest(self) -> int:
        """The place of the GPU whose peak is the largest; -1 without any."""
        ...

    @property
    def devices(self) -> Sequence[MemoryOfDevice]:
        """What is known of each GPU."""
        ...

    @property
    def curves(self) -> Sequence[MemoryCurve]:
        """How much lived over time on each GPU whose events have times."""
        ...

    def moments(self, metric: str, cut: TableCut) -> Sequence[MemoryMoment]:
        """Tell which moment ``metric`` shows of each GPU within ``cut``; none over a time.

        UsageError where there is no such moment.
        """
        ...

    def lives(self, metric: str, cut: TableCut) -> MemoryLives:
        """Tell how long the allocations lived that `table` has."""
        ...

    def table(self, metric: str, cut: TableCut) -> Activities:
        """Make the table of the allocations that ``metric`` measures within ``cut``."""
        ...
