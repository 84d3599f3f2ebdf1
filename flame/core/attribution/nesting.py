"""Nest the intervals of each thread by time, for whole columns at once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cached_property

import numpy as np

from flame.core.attribution.crossing import cut_crossing
from flame.core.columns import I8, Bool, Column, order_by, ordered_by_group, places_on_lanes
from flame.core.compiled.nesting import nested_pieces
from flame.core.errors import InputError
from flame.core.lazy_dataclass import dataclass

MAX_DEPTH = 500
"""Ranges nested deeper are not shown (speedscope cannot draw 1,000 levels either)."""

MAX_MIXED_DEPTH = 2 * MAX_DEPTH
"""Intervals of two kinds that are nested together: what is left out of them was too deep alone."""

_TIME_LIMIT = 1 << 62


@dataclass(frozen=True)
class Nesting:
    """Hold intervals cut into pieces that nest and never cross, ordered by (lane, start, depth).

    An interval that outlives an interval opened before it is cut where that ends: its later piece
    is no longer below it. ``source`` i8[n] is the interval a piece was cut from, ``start``
    and ``end`` (exclusive) are its times, ``parent`` the enclosing piece or -1, ``depth`` the
    number of enclosing pieces. ``too_deep`` counts intervals left out for their depth. Numbers are
    i4 where the compiled part has nested the intervals. ``lane`` is of the intervals.
    """

    source: Column
    start: I8
    end: I8
    parent: Column
    depth: Column
    too_deep: int
    clock: LaneClock
    lane: Column

    def __len__(self) -> int:
        return len(self.source)

    def innermost(self, lane: Column, time: Column) -> I8:
        """Find the innermost piece open on ``lane`` at ``time``, or -1."""
        if len(self) == 0:
            return np.full(len(time), -1, np.int64)
        last = places_on_lanes(self._lanes, self.start, lane, time, "right") - 1
        depth = last + 1 - places_on_lanes(self._lanes, self._ends, lane, time, "right")
        return np.where(depth > 0, self._last_at_depth(depth - 1, last), -1)

    def _last_at_depth(self, depth: I8, last: I8) -> I8:
        """The last piece up to index ``last`` that has ``depth``."""
        if not self.depth.any():
            return last
        depths = self.depth[self._order]
        place = places_on_lanes(depths, self._order, depth, last, "right") - 1
        piece: I8 = self._order[place]
        return piece

    @cached_property
    def _lanes(self) -> Column:
        """The lane of each piece."""
        return self.lane[self.source]

    @cached_property
    def _ends(self) -> I8:
        """The ends of all pieces, by lane and time."""
        return ordered_by_group(self._lanes, self.end, int(self._lanes[-1]) + 1)[0]

    @cached_property
    def _order(self) -> I8:
        """The pieces by (depth, index)."""
        return np.argsort(self.depth.astype(np.uint16), kind="stable")

    def by_depth(self) -> Iterator[I8]:
        """List the pieces of depth 0, 1, …: parents come before their children."""
        bounds = np.concatenate([[0], np.cumsum(np.bincount(self.depth))])
        for low, high in itertools.pairwise(bounds):
            yield self._order[low:high]

    def own_time(self) -> I8:
        """Compute the time of every piece that the pieces directly inside it do not cover."""
        length = self.end - self.start
        own = length.copy()
        inside = np.flatnonzero(self.parent >= 0)
        np.subtract.at(own, self.parent[inside], length[inside])
        return own


@dataclass(frozen=True)
class LaneClock:
    """Put all lanes on a common time line: each lane's times are shifted into its own window."""

    base: int
    span: int

    def shift(self, lane: Column, time: Column) -> I8:
        """Shift the times of ``lane`` to the common time line; only those that it `covers`."""
        shifted: I8 = np.asarray(lane, np.int64) * self.span + (time - self.base)
        return shifted

    def covers(self, time: Column) -> Bool:
        """Tell whether each time lies in the windows at all."""
        inside: Bool = (time >= self.base) & (time < self.base + self.span)
        return inside


def lane_clock(lane: Column, start: I8, end: I8) -> LaneClock:
    """Make a clock for the times of these intervals; InputError if they are centuries apart."""
    clock = _clock(start, end)
    if not _is_sane(clock, lane):
        raise InputError("damaged: the times in it span more than a century")
    return clock


def refuse_centuries(lane: Column, start: I8, end: I8) -> None:
    """Raise InputError where the intervals that `nest` is for are centuries apart."""
    if not _is_sane(_clock(start, end), lane):
        kept = (lane >= 0) & (end > start)
        lane_clock(lane, start[kept], end[kept])


def _clock(start: I8, end: I8) -> LaneClock:
    base = int(start.min()) if len(start) else 0
    return LaneClock(base, int(end.max()) - base + 1 if len(end) else 1)


def _is_sane(clock: LaneClock, lane: Column) -> bool:
    return clock.span * (int(np.max(lane, initial=0)) + 1) < _TIME_LIMIT


def nest(lane: Column, start: I8, end: I8, deepest: int = MAX_DEPTH) -> Nesting:
    """Nest the intervals [start, end) of each lane (a thread); empty ones are left out.

    Order on a lane: earlier start is outer, then the longer one, then table order. Those in
    ``deepest`` others or more are left out.
    """
    kept = np.flatnonzero(end > start)
    clock = lane_clock(lane, start[kept], end[kept])
    if found := nested_pieces(np.asarray(lane), start, end, deepest):
        return Nesting(*found, too_deep=0, clock=clock, lane=lane)
    on = np.asarray(lane, np.int64)
    begin, stop = (clock.shift(on[kept], time[kept]) for time in (start, end))
    order = outer_first(begin, stop)
    source, begin, stop = kept[order], begin[order], stop[order]
    closing = _closing(stop)
    depth = _open_before(begin, stop[closing])
    shallow = depth < deepest
    too_deep = int(len(depth) - shallow.sum())
    if too_deep:
        source, begin, stop = source[shallow], begin[shallow], stop[shallow]
        closing = _closing(stop)
        depth = _open_before(begin, stop[closing])
    row, begin, stop, depth = cut_crossing(begin, stop, depth, closing)
    source = source[row]
    back = clock.base - on[source] * clock.span
    return Nesting(source, begin + back, stop + back, _parents(depth), depth, too_deep, clock, lane)


def outer_first(start: I8, end: I8) -> I8:
    """Order intervals by (start, longest first, as given)."""
    order = np.argsort(start, kind="stable")
    _put_longest_first(order, [start], end)
    return order


def outer_first_on_lanes(lane: Column, start: I8, end: I8) -> I8:
    """Order intervals by (lane, start, longest first, as given)."""
    order = order_by([start, lane])
    _put_longest_first(order, [start, lane], end)
    return order


def _put_longest_first(order: I8, keys: list[Column], end: I8) -> None:
    """Reorder those of equal ``keys`` in ``order``."""
    same = np.ones(max(len(order) - 1, 0), bool)
    for key in keys:
        ordered = key[order]
        same &= ordered[1:] == ordered[:-1]
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    rows = order[tied]
    order[tied] = rows[np.lexsort((-end[rows], *(key[rows] for key in keys)))]


def _closing(end: I8) -> I8:
    """The order in which intervals end: of those that end together the inner first."""
    order: I8 = len(end) - 1 - np.argsort(end[::-1], kind="stable")
    return order


def _open_before(start: I8, ends: I8) -> I8:
    """For each interval (ordered by start) the number of earlier ones still open at its start."""
    return np.arange(len(start)) - np.searchsorted(ends, start, "right")


def _depth_keys(depth: Column, order: I8) -> I8:
    keys: I8 = depth[order].astype(np.int64) * len(depth) + order
    return keys


def _parents(depth: I8) -> I8:
    """For each piece the last earlier one that is one level up, -1 at depth 0."""
    order = np.argsort(depth.astype(np.uint16), kind="stable")
    wanted = (depth - 1) * len(depth) + np.arange(len(depth))
    place = np.searchsorted(_depth_keys(depth, order), wanted, "right") - 1
    return np.where(depth > 0, order[np.maximum(place, 0)], -1)
