"""What is open on a thread at a moment: intervals last from start to end, both included."""

from __future__ import annotations

import numpy as np

from flame.core.attribution.nesting import lane_clock, nest, outer_first
from flame.core.columns import I8, Column


class OpenIntervals:
    """Intervals of all threads, by what is open when; unknown threads and backward times are not.

    ``rows`` i8[n] are the intervals by (thread, start, longest first, as given), the order from
    outer to inner; ``nesting`` is of these, so that its sources are places in ``rows``. Nesting is
    worked out on half-open intervals, in which those that merely touch do not cross: what is open
    at a moment is what was open just before, and what starts at it.
    """

    def __init__(self, thread: Column, start: I8, end: I8) -> None:
        known = np.flatnonzero((thread >= 0) & (end >= start))
        self._clock = lane_clock(thread[known], start[known], end[known])
        begin = self._clock.of(thread[known], start[known])
        order = outer_first(begin, end[known])
        self.rows: I8 = known[order]
        self._starts = begin[order]
        self.nesting = nest(thread[self.rows], start[self.rows], end[self.rows])

    def before(self, thread: Column, time: I8) -> I8:
        """The innermost piece of ``nesting`` that is open just before ``time``, or -1."""
        found = self.nesting.innermost(np.maximum(thread, 0), time - 1)
        return np.where(thread >= 0, found, -1)

    def starting(self, thread: Column, time: I8) -> tuple[I8, I8]:
        """The intervals that start at ``time``: their places in ``rows`` from, and up to."""
        at = self._clock.of(thread, time)
        first = np.searchsorted(self._starts, at, "left")
        last = np.searchsorted(self._starts, at, "right")
        known = (thread >= 0) & self._clock.covers(time)
        return first, np.where(known, last, first)

    def innermost(self, thread: Column, time: I8) -> I8:
        """The interval opened last of those open on ``thread`` (-1: unknown) at ``time``, or -1."""
        first, last = self.starting(thread, time)
        before = np.append(self.nesting.source, -1)[self.before(thread, time)]
        place = np.where(last > first, last - 1, before)
        return np.append(self.rows, -1)[place]
