"""Put ranges together that were cut to nest, and find what was launched in each."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from flame.core.attribution.nesting import LaneClock, lane_clock
from flame.core.columns import I4, I8, Bool, Column, order_by, sum_by, unique
from flame.core.compiled.pieces import (
    LaunchedInPieces,
    LaunchedRows,
    PiecesByDepth,
    ShownTimes,
    launched_in,
    launched_spans,
    shown_times,
)
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import Activities, ThreadPieces

_INT64 = np.iinfo(np.int64)


class LaunchedWork(NamedTuple):
    """Say of each range how many activities its thread launched in it, i4 or i8[n].

    ``first`` is when the first of them began and ``last`` when the last was done, i8[n] in ns; of
    ranges without any they are not to be looked at.
    """

    activities: Column
    first: I8
    last: I8


@dataclass(frozen=True, eq=False)
class RangeInstances:
    """Hold ranges whole, of which ``pieces`` have those cut that cross.

    ``whole`` i8[pieces] is the range that each piece is of, None where none was cut; ``frame``
    i4[n] is that of each range. Ranges without length are left out.
    """

    pieces: ThreadPieces
    whole: I8 | None
    frame: I4

    @classmethod
    def of(cls, pieces: ThreadPieces) -> RangeInstances:
        """Put ``pieces`` together: one that was cut goes on where another ended."""
        whole = None if pieces.uncut else _whole(pieces)
        if whole is None:
            return cls(pieces, None, pieces.frame)
        frame = np.zeros(int(whole.max()) + 1, np.int32)
        frame[whole] = pieces.frame
        return cls(pieces, whole, frame)

    def __len__(self) -> int:
        return len(self.frame)

    @cached_property
    def counts(self) -> I8:
        """How many ranges there are of each frame, i8[up to the last one]."""
        counts: I8 = np.bincount(self.frame)
        return counts

    @property
    def frames(self) -> I8:
        """The different frames, i8[frames]."""
        frames: I8 = np.flatnonzero(self.counts)
        return frames

    @property
    def length(self) -> I8:
        """How long each lasted, i8[n] in ns."""
        length = self.pieces.end - self.pieces.start
        return length if self.whole is None else sum_by(self.whole, length, len(self))

    def times_by(self, shown: I4) -> ShownTimes:
        """Sum up their time by what their frames are ``shown`` as, i4[frames]."""
        pieces, size = self.pieces, len(shown)
        if (found := shown_times(_compiled(pieces), shown)) is not None:
            return found
        of, length = shown[pieces.frame], pieces.end - pieces.start
        inside = np.flatnonzero(pieces.parent >= 0)
        within = sum_by(of[pieces.parent[inside]], length[inside], size)
        outer = np.flatnonzero(self._order.outermost(of))
        return ShownTimes(sum_by(of, length, size) - within, sum_by(of[outer], length[outer], size))

    def launched(self, table: Activities, rows: I8) -> LaunchedWork:
        """Find which of the ``rows`` of ``table`` were launched in each range by its thread.

        Its start and its end are included, as where activities stand below ranges. It is faster
        where ``rows`` are in the order of threads and launches.
        """
        launched = _launched_rows(table, rows)
        found = launched_in(_compiled(self.pieces), launched)
        if found is None:
            return self._search_launched(table, launched.rows)
        return self._put_together(found)

    def launched_spans(self, table: Activities, rows: I8) -> I8:
        """Find how long what was launched in each range took, i8[n] in ns; -1: nothing was.

        That is from the beginning of the first to the end of the last; ``rows`` are as above.
        """
        if self.whole is None:
            found = launched_spans(_compiled(self.pieces), _launched_rows(table, rows))
            if found is not None:
                return found
        work = self.launched(table, rows)
        some = work.activities > 0
        length = np.subtract(work.last, work.first, out=work.last, where=some)
        return np.where(some, length, -1)

    def _put_together(self, found: LaunchedInPieces) -> LaunchedWork:
        """Give ranges what was launched in their pieces: together these are without a gap."""
        low, high, first, last = found
        if self.whole is None:
            return LaunchedWork(np.subtract(high, low, out=high), first, last)
        size, limits = len(self), _INT64
        begin, stop = np.full(size, limits.max), np.zeros(size, np.int64)
        earliest, latest = np.full(size, limits.max), np.full(size, limits.min)
        for ufunc, made, column in (
            (np.minimum, begin, low),
            (np.maximum, stop, high),
            (np.minimum, earliest, first),
            (np.maximum, latest, last),
        ):
            ufunc.at(made, self.whole, column)
        return LaunchedWork(stop - begin, earliest, latest)

    def _search_launched(self, table: Activities, rows: I8) -> LaunchedWork:
        """Do as `launched` of ``rows`` whose launch is known, without what is compiled."""
        clock = self._order.clock
        rows = rows[clock.covers(table.launch_start[rows])]
        times = clock.shift(table.thread[rows], table.launch_start[rows])
        order = order_by([times])
        rows, times = rows[order], times[order]
        begin, stop = self._edges
        low, high = np.searchsorted(times, begin), np.searchsorted(times, stop, "right")
        start = table.start[rows]
        first = _over(np.minimum, start, low, high)
        last = _over(np.maximum, start + table.duration[rows], low, high)
        return LaunchedWork(high - low, first, last)

    @property
    def _edges(self) -> tuple[I8, I8]:
        """When each range began and ended, on the clock on which threads lie end to end."""
        if self.whole is None:
            return self._order.begins, self._order.stops
        begin, stop = np.full(len(self), _INT64.max), np.full(len(self), _INT64.min)
        np.minimum.at(begin, self.whole, self._order.begins)
        np.maximum.at(stop, self.whole, self._order.stops)
        return begin, stop

    @cached_property
    def _order(self) -> _OuterFirst:
        return _OuterFirst.of(self.pieces)


def _launched_rows(table: Activities, rows: I8) -> LaunchedRows:
    """Those of ``rows`` that a known thread launched."""
    known = table.launched & (table.thread >= 0)
    if not known.all():
        rows = rows[known[rows]]
    return LaunchedRows(rows, table.thread, table.launch_start, table.start, table.duration)


def _compiled(pieces: ThreadPieces) -> PiecesByDepth:
    return PiecesByDepth(
        pieces.thread, pieces.depth, pieces.frame, pieces.start, pieces.end, pieces.parent
    )


def _over(ufunc: np.ufunc, values: I8, low: I8, high: I8) -> I8:
    """Reduce ``values`` from each of ``low`` to before ``high`` by minimum or maximum; 0 of none.

    Two stretches of a power of two cover each, which may overlap: those are reduced once for all.
    """
    found = np.zeros(len(low), np.int64)
    power = np.frexp((high - low).astype(np.float64))[1] - 1  # of 2, the largest not above
    order = order_by([np.maximum(power, -1)])
    bounds = np.cumsum(np.bincount(np.maximum(power, -1) + 1, minlength=1))
    stretch = 1
    for first, last in pairwise(bounds.tolist()):
        rows = order[first:last]
        found[rows] = ufunc(values[low[rows]], values[high[rows] - stretch])
        values = ufunc(values[:-stretch], values[stretch:])
        stretch *= 2
    return found


def _whole(pieces: ThreadPieces) -> I8 | None:
    """The range of each piece, None where each is one.

    Pieces of a range differ in depth, ranges in a row do not.
    """
    rows = _cut(pieces)
    order = rows[order_by([pieces.start[rows], pieces.frame[rows], pieces.thread[rows]])]
    thread, frame, depth, start, end = (
        column[order]
        for column in (pieces.thread, pieces.frame, pieces.depth, pieces.start, pieces.end)
    )
    goes_on = (thread[1:] == thread[:-1]) & (frame[1:] == frame[:-1])
    goes_on &= (start[1:] == end[:-1]) & (depth[1:] != depth[:-1])
    if not goes_on.any():
        return None
    first = np.append(order[:1], np.where(goes_on, -1, order[1:]))
    begun = np.maximum.accumulate(np.where(first >= 0, np.arange(len(order)), 0))
    whole = np.arange(len(pieces))
    whole[order] = first[begun]
    number = np.cumsum(whole == np.arange(len(pieces))) - 1
    return number[whole]


def _cut(pieces: ThreadPieces) -> I8:
    """The pieces that may be parts of ranges.

    They end where what is around them does, or begin there.
    """
    ends = (pieces.parent >= 0) & (pieces.end == pieces.end[pieces.parent])
    times = unique(pieces.end[ends])
    place = np.minimum(np.searchsorted(times, pieces.start), len(times) - 1)
    begins = times[place] == pieces.start if len(times) else ends
    return np.flatnonzero(ends | begins)


def no_pieces() -> ThreadPieces:
    """Make the pieces of a trace without ranges."""
    none, times = np.zeros(0, np.int32), np.zeros(0, np.int64)
    return ThreadPieces(none, none, none, times, times, none)


@dataclass(frozen=True, eq=False)
class _OuterFirst:
    """Pieces from outer to inner, in ``order``: by thread, begin and depth.

    ``begins`` and ``stops`` are on ``clock``, on which threads lie end to end.
    """

    clock: LaneClock
    begins: I8
    stops: I8
    order: I8

    @classmethod
    def of(cls, pieces: ThreadPieces) -> _OuterFirst:
        clock = lane_clock(pieces.thread, pieces.start, pieces.end)
        begins, stops = (clock.shift(pieces.thread, time) for time in (pieces.start, pieces.end))
        return cls(clock, begins, stops, order_by([pieces.depth, begins]))

    def outermost(self, shown: Column) -> Bool:
        """Which pieces are in no other that is ``shown`` as the same, bool[pieces]."""
        # What begins before a piece ends, behind it in this order, is within it.
        reach = np.searchsorted(self.begins[self.order], self.stops[self.order])
        by_frame = order_by([shown[self.order]])
        lift = shown[self.order][by_frame].astype(np.int64) * (len(reach) + 1)
        ends = np.maximum.accumulate(reach[by_frame] + lift)
        alone = np.ones(len(reach), bool)
        alone[1:] = by_frame[1:] + lift[1:] >= ends[:-1]
        found = np.zeros(len(reach), bool)
        found[self.order[by_frame]] = alone
        return found
