"""Say what is known of the memory of a trace's GPUs, whoever has recorded it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from flame.core.model.activities import Activities, TableCut


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

    def table(self, metric: str, cut: TableCut) -> Activities:
        """Make the table of the allocations that ``metric`` measures within ``cut``."""
        ...
