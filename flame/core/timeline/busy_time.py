"""Hold when something was busy: disjoint stretches of time, and how much of a window they fill."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, Bool, places_in
from flame.core.compiled.nesting import united_spans
from flame.core.lazy_dataclass import dataclass


class TimeWindow(NamedTuple):
    """Bound a stretch of time, [low, high), in ns since the beginning of the trace."""

    low: int
    high: int

    @property
    def length(self) -> int:
        """Length in ns."""
        return self.high - self.low

    def moved(self, by: int) -> TimeWindow:
        """Make the window of the same length that begins ``by`` later."""
        return TimeWindow(self.low + by, self.high + by)


@dataclass(frozen=True, eq=False)
class BusyTime:
    """Hold disjoint busy stretches: starts (i8[n]), lengths summed from anywhere (i8[n+1])."""

    low: I8
    before: I8

    @classmethod
    def between(cls, low: I8, high: I8) -> BusyTime:
        """Make the stretches from ``low`` to ``high``."""
        return cls(low, np.concatenate([[0], np.cumsum(high - low)]))

    @classmethod
    def union(cls, start: I8, end: I8) -> BusyTime:
        """Make the stretches in which any of the intervals is open; those that touch are one."""
        if found := united_spans(None, start, end):
            return cls.between(found.start.copy(), found.end)
        order = np.argsort(start, kind="stable")
        start, reach = start[order], np.maximum.accumulate(end[order])
        fresh = np.ones(len(start), bool)
        fresh[1:] = start[1:] > reach[:-1]
        first = np.flatnonzero(fresh)
        return cls.between(start[first], reach[np.append(first, len(start))[1:] - 1])

    def __len__(self) -> int:
        return len(self.low)

    @cached_property
    def high(self) -> I8:
        """Where each stretch ends, i8[n]."""
        return self.low + np.diff(self.before)

    @property
    def total(self) -> int:
        """Sum of all stretches, ns."""
        return int(self.before[-1] - self.before[0])

    @property
    def window(self) -> TimeWindow:
        """From the beginning of the first stretch to the end of the last; empty without any."""
        if not len(self):
            return TimeWindow(0, 0)
        return TimeWindow(int(self.low[0]), int(self.low[-1] + self.before[-1] - self.before[-2]))

    def sums_until(self, times: I8) -> I8:
        """Sum the busy time before each of ``times``, ns."""
        if not len(self):
            return np.zeros(len(times), np.int64)
        if len(self) == 1:
            only: I8 = np.clip(times - self.low[0], 0, self.total)
            return only
        at = places_in(self.low, times, "right") - 1
        # In a stretch the sum grows with the time, up to that at its end.
        sums: I8 = np.minimum(times - self.low[at] + self.before[at], self.before[at + 1])
        sums -= self.before[0]
        sums[at < 0] = 0
        return sums

    def meets(self, low: I8, high: I8) -> Bool:
        """Tell which of the times from ``low`` to ``high`` share a nanosecond with any stretch."""
        lasting = self.high > self.low
        begin, end = self.low[lasting], self.high[lasting]
        if not len(begin):
            return np.zeros(len(low), bool)
        at = places_in(begin, high) - 1  # the last that begins before
        return (at >= 0) & (end[at] > low) & (high > low)

    def until(self, time: int) -> int:
        """Sum the busy time before ``time``, ns."""
        return int(self.sums_until(np.array([time]))[0])

    def within(self, window: TimeWindow) -> int:
        """Sum the busy time in ``window``, ns."""
        return self.until(window.high) - self.until(window.low)

    def within_all(self, windows: BusyTime) -> int:
        """Sum the busy time in the stretches of ``windows``, ns."""
        return int((self.sums_until(windows.high) - self.sums_until(windows.low)).sum())

    def moved(self, by: int) -> BusyTime:
        """Make the same stretches ``by`` later."""
        return BusyTime(self.low + by, self.before)

    def share(self, window: TimeWindow) -> float:
        """Compute the part of ``window`` that is busy, 0..1."""
        return self.within(window) / max(window.length, 1)

    def in_cells(self, window: TimeWindow, number: int) -> tuple[I8, I8]:
        """Cut ``window`` into ``number`` cells, equal to a nanosecond: (busy, length) of each, ns.

        They add up to those of the window.
        """
        edges = np.array([window.low + window.length * at // number for at in range(number + 1)])
        return np.diff(self.sums_until(edges)), np.diff(edges)
