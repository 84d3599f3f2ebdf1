"""Hold API calls as they were recorded, those within others too, and those that failed."""

from __future__ import annotations

from dataclasses import dataclass

from flame.core.columns import I4, I8, Bool


@dataclass(frozen=True, eq=False)
class CallRows:
    """Hold every API call, in the order of the file; none that only repeats another.

    ``thread`` (-1 unknown) and ``frame`` are i4[n]; ``start`` and ``end`` (exclusive) i8[n], ns;
    ``inside`` bool[n] marks those that lie wholly within others of their thread.
    """

    thread: I4
    frame: I4
    start: I8
    end: I8
    inside: Bool

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True, eq=False)
class FailedCalls:
    """Hold the API calls that returned anything but 0, in the order of the file.

    Columns are those of `CallRows`; ``value`` i8[n] is what they returned. ``known`` is of how many
    calls that was recorded.
    """

    thread: I4
    frame: I4
    start: I8
    end: I8
    value: I8
    known: int

    def __len__(self) -> int:
        return len(self.start)
