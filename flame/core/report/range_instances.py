"""Put ranges together that were cut to nest, and find what was launched in each."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from flame.core.attribution.nesting import LaneClock, lane_clock
from flame.core.columns import I4, I8, Bool, Column, order_by, sum_by, unique
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import Activities, ThreadPieces

_INT64 = np.iinfo(np.int64)


class LaunchedWork(NamedTuple):
    """Say of each range how many activities its thread launched in it, i8[n] each.

    ``first`` is when the first of them began and ``last`` when the last was done, ns; of ranges
    without any they are not to be looked at.
    """

    activities: I8
    first: I8
    last: I8


@dataclass(frozen=True, eq=False)
class RangeInstances:
    """Hold ranges whole, of which ``pieces`` have those cut that cross.

    ``whole`` i8[pieces] is the range that each piece is of, ``frame`` i8[n] its frame; ``length``
    i8[n] is how long each lasted, and ``own`` i8[n] the part in which no range inside it was open,
    ns. Ranges without length are left out.
    """

    pieces: ThreadPieces
    whole: I8
    frame: I8
    length: I8
    own: I8

    @classmethod
    def of(cls, pieces: ThreadPieces) -> RangeInstances:
        """Put ``pieces`` together: one that was cut goes on where another ended."""
        whole = _whole(pieces)
        size = int(whole.max(initial=-1)) + 1
        length, inside = pieces.end - pieces.start, pieces.parent >= 0
        frame = np.zeros(size, np.int64)
        frame[whole] = pieces.frame
        within = sum_by(pieces.parent[inside], length[inside], len(pieces))
        own = sum_by(whole, length - within, size)
        return cls(pieces, whole, frame, sum_by(whole, length, size), own)

    def __len__(self) -> int:
        return len(self.frame)

    def outer(self, shown: I4) -> I8:
        """Measure the part of each that is in no other ``shown`` as the same frame, ns.

        ``shown`` is i4[frames].
        """
        alone = self._order.outermost(shown[self.pieces.frame])
        return sum_by(self.whole[alone], (self.pieces.end - self.pieces.start)[alone], len(self))

    def launched(self, table: Activities, rows: I8) -> LaunchedWork:
        """Find which of the ``rows`` of ``table`` were launched in each range by its thread.

        Its start and its end are included, as where activities stand below ranges.
        """
        rows = rows[(table.launched & (table.thread >= 0))[rows]]
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

    @cached_property
    def _edges(self) -> tuple[I8, I8]:
        """When each range began and ended, on the clock on which threads lie end to end."""
        if len(self) == len(self.pieces):  # none was cut
            return self._order.begins, self._order.stops
        begin, stop = np.full(len(self), _INT64.max), np.full(len(self), _INT64.min)
        np.minimum.at(begin, self.whole, self._order.begins)
        np.maximum.at(stop, self.whole, self._order.stops)
        return begin, stop

    @cached_property
    def _order(self) -> _OuterFirst:
        return _OuterFirst.of(self.pieces)


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


def _whole(pieces: ThreadPieces) -> I8:
    """The range of each piece: those of one differ in depth, ranges in a row do not."""
    rows = _cut(pieces)
    order = rows[order_by([pieces.start[rows], pieces.frame[rows], pieces.thread[rows]])]
    thread, frame, depth, start, end = (
        column[order]
        for column in (pieces.thread, pieces.frame, pieces.depth, pieces.start, pieces.end)
    )
    goes_on = (thread[1:] == thread[:-1]) & (frame[1:] == frame[:-1])
    goes_on &= (start[1:] == end[:-1]) & (depth[1:] != depth[:-1])
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
