"""Hold API calls as they were recorded, those within others too, and those that failed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from flame.core.columns import I4, I8, Bool
from flame.core.lazy_dataclass import dataclass

UNKNOWN_RESULT = -1
"""Stands for what a call returned that failed, where the trace does not tell more of it."""


@dataclass(frozen=True, eq=False)
class CallRows:
    """Hold every API call, in any order; none that only repeats another.

    ``thread`` (-1 unknown) and ``frame`` are i4[n]; ``start`` and ``end`` (exclusive) i8[n], ns.
    """

    thread: I4
    frame: I4
    start: I8
    end: I8

    def __len__(self) -> int:
        return len(self.start)

    @property
    def in_threads(self) -> Bool:
        """Which calls have any length on a known thread, bool[n]: others are within none."""
        known: Bool = self.end > self.start
        known &= self.thread >= 0
        return known


@dataclass(frozen=True, eq=False)
class FailedCalls:
    """Hold the API calls that returned anything but 0, in the order of the file.

    Columns are those of `CallRows`; ``value`` i8[n] is what they returned, or `UNKNOWN_RESULT`.
    ``known`` is of how many calls it was recorded whether they failed.
    """

    thread: I4
    frame: I4
    start: I8
    end: I8
    value: I8
    known: int

    def __len__(self) -> int:
        return len(self.start)

    def builder(self) -> Callable[[], FailedCalls]:
        """Make the ``failures_builder`` of a profile of which they are at hand."""
        return partial(_same, self)


def _same(calls: FailedCalls) -> FailedCalls:
    return calls
