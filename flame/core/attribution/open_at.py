"""Find what is open on a thread at a time: intervals last from start to end, both included."""

from __future__ import annotations

import numpy as np

from flame.core.attribution.nesting import MAX_DEPTH, lane_clock, nest, outer_first
from flame.core.columns import I8, Column, places_on_lanes


class OpenIntervals:
    """Index the intervals of all threads by time; unknown threads and backward times are left out.

    ``rows`` i8[n] are the intervals by (thread, start, longest first, as given), the order from
    outer to inner; ``nesting`` is of these, so that its sources are places in ``rows``. Nesting is
    worked out on half-open intervals, in which those that merely touch do not cross: what is open
    at a moment is what was open just before, and what starts at it.
    """

    def __init__(self, thread: Column, start: I8, end: I8, deepest: int = MAX_DEPTH) -> None:
        kept = np.flatnonzero((thread >= 0) & (end >= start))
        clock = lane_clock(thread[kept], start[kept], end[kept])
        begin = clock.shift(thread[kept], start[kept])
        self.rows: I8 = kept[outer_first(begin, end[kept])]
        self._thread, self._start = thread[self.rows], start[self.rows]
        self.nesting = nest(thread[self.rows], start[self.rows], end[self.rows], deepest)

    def open_before(self, thread: Column, time: I8) -> I8:
        """Find the innermost piece of ``nesting`` that is open just before ``time``, or -1."""
        piece = self.nesting.innermost(np.maximum(thread, 0), time - 1)
        return np.where(thread >= 0, piece, -1)

    def starting_at(self, thread: Column, time: I8) -> tuple[I8, I8]:
        """Find the intervals that start at ``time``: their places in ``rows`` from, and up to."""
        first = places_on_lanes(self._thread, self._start, thread, time)
        return first, places_on_lanes(self._thread, self._start, thread, time, "right")

    def innermost(self, thread: Column, time: I8) -> I8:
        """Find the interval opened last of those open on ``thread`` (-1: unknown), or -1."""
        if not len(self.rows):
            return np.full(len(thread), -1)
        first, last = self.starting_at(thread, time)
        before = np.append(self.nesting.source, -1)[self.open_before(thread, time)]
        place = np.where(last > first, last - 1, before)
        return np.append(self.rows, -1)[place]

    def first_pieces(self, size: int) -> I8:
        """Find the first piece of each of all ``size`` intervals, -1 for those without length."""
        first = np.full(size, -1)
        first[self.rows[self.nesting.source[::-1]]] = np.arange(len(self.nesting))[::-1]
        return first
