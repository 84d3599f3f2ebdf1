"""Put ranges together that were cut to nest, and find what was launched in each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from flame.core.attribution.nesting import LaneClock, lane_clock
from flame.core.columns import I4, I8, Bool, Column, expand_ranges, order_by, sum_by
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

    @classmethod
    def none(cls, size: int) -> LaunchedWork:
        """Begin with none in each."""
        first, last = np.full(size, _INT64.max), np.full(size, _INT64.min)
        return cls(np.zeros(size, np.int64), first, last)

    def add(self, place: Column, other: LaunchedWork) -> None:
        """Add ``other`` to these, each to its ``place``."""
        np.add.at(self.activities, place, other.activities)
        np.minimum.at(self.first, place, other.first)
        np.maximum.at(self.last, place, other.last)

    def take(self, rows: Column) -> LaunchedWork:
        """Take some."""
        return LaunchedWork(*(column[rows] for column in self))


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
        rows = np.sort(rows[(table.launched & (table.thread >= 0))[rows]])
        thread, time, start = table.thread[rows], table.launch_start[rows], table.start[rows]
        each = LaunchedWork(np.ones(len(rows), np.int64), start, start + table.duration[rows])
        found = LaunchedWork.none(len(self.pieces))
        before = self._order.open_before(thread, time)
        found.add(before[before >= 0], each.take(before >= 0))
        for inner in _by_depth(self.pieces):
            found.add(self.pieces.parent[inner], found.take(inner))
        # What begins with the launch is in ranges that have it already, or begin then as well.
        piece, row = self._order.starting_at(thread, time)
        fresh = self._is_first[piece]
        found.add(piece[fresh], each.take(row[fresh]))
        together = LaunchedWork.none(len(self))
        together.add(self.whole, found)
        return together

    @cached_property
    def _order(self) -> _OuterFirst:
        return _OuterFirst.of(self.pieces)

    @cached_property
    def _is_first(self) -> Bool:
        """Which pieces are the beginnings of their ranges, bool[pieces]."""
        start = np.full(len(self), _INT64.max)
        np.minimum.at(start, self.whole, self.pieces.start)
        first: Bool = self.pieces.start == start[self.whole]
        return first


def _whole(pieces: ThreadPieces) -> I8:
    """The range of each piece: those of one differ in depth, ranges in a row do not."""
    order = np.lexsort((pieces.start, pieces.frame, pieces.thread))
    thread, frame, depth, start, end = (
        column[order]
        for column in (pieces.thread, pieces.frame, pieces.depth, pieces.start, pieces.end)
    )
    goes_on = (thread[1:] == thread[:-1]) & (frame[1:] == frame[:-1])
    goes_on &= (start[1:] == end[:-1]) & (depth[1:] != depth[:-1])
    whole = np.zeros(len(order), np.int64)
    whole[order[1:]] = np.cumsum(~goes_on)
    return whole


def _by_depth(pieces: ThreadPieces) -> list[I8]:
    """The pieces within others, the deepest first."""
    order = order_by([pieces.depth])
    bounds = np.cumsum(np.bincount(pieces.depth, minlength=1))
    return np.split(order, bounds)[1:-1][::-1]


def no_pieces() -> ThreadPieces:
    """Make the pieces of a trace without ranges."""
    none, times = np.zeros(0, np.int32), np.zeros(0, np.int64)
    return ThreadPieces(none, none, none, times, times, none)


@dataclass(frozen=True, eq=False)
class _OuterFirst:
    """Pieces from outer to inner: by thread, begin and depth; ``begin``, ``stop`` in this order.

    Times are on ``clock``, on which threads lie end to end.
    """

    pieces: ThreadPieces
    clock: LaneClock
    order: I8
    begin: I8
    stop: I8

    @classmethod
    def of(cls, pieces: ThreadPieces) -> _OuterFirst:
        clock = lane_clock(pieces.thread, pieces.start, pieces.end)
        begin, stop = (clock.shift(pieces.thread, time) for time in (pieces.start, pieces.end))
        order = order_by([pieces.depth, begin])
        return cls(pieces, clock, order, begin[order], stop[order])

    def outermost(self, shown: Column) -> Bool:
        """Which pieces are in no other that is ``shown`` as the same, bool[pieces]."""
        # What begins before a piece ends, behind it in this order, is within it.
        reach = np.searchsorted(self.begin, self.stop)
        by_frame = order_by([shown[self.order]])
        lift = shown[self.order][by_frame].astype(np.int64) * (len(reach) + 1)
        ends = np.maximum.accumulate(reach[by_frame] + lift)
        alone = np.ones(len(reach), bool)
        alone[1:] = by_frame[1:] + lift[1:] >= ends[:-1]
        found = np.zeros(len(reach), bool)
        found[self.order[by_frame]] = alone
        return found

    def open_before(self, thread: Column, time: I8) -> I8:
        """Find the innermost piece open on each ``thread`` just before ``time``, or -1."""
        if not len(self.order):
            return np.full(len(time), -1)
        at = self.clock.shift(thread, time)
        place = np.searchsorted(self.begin, at) - 1
        stop = np.append(self.clock.shift(self.pieces.thread, self.pieces.end), _INT64.max)
        piece = np.where((place >= 0) & self.clock.covers(time), self.order[place], -1)
        ended = np.flatnonzero(stop[piece] < at)
        while len(ended):  # what is open around the last that began are those it is in
            piece[ended] = self.pieces.parent[piece[ended]]
            ended = ended[stop[piece[ended]] < at[ended]]
        return piece

    def starting_at(self, thread: Column, time: I8) -> tuple[I8, I8]:
        """Find the pieces that begin at each ``time``: (piece, place of the time) of each pair."""
        at = self.clock.shift(thread, time)
        first, last = (np.searchsorted(self.begin, at, side) for side in ("left", "right"))
        number = np.where(self.clock.covers(time), last - first, 0)
        return self.order[expand_ranges(first, number)], np.repeat(np.arange(len(at)), number)
