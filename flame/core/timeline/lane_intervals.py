"""Cut intervals of lanes, threads for example, by others on the same lanes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.columns import (
    I8,
    Bool,
    Column,
    Side,
    expand_ranges,
    order_by,
    places_on_lanes,
    sum_by,
)
from flame.core.compiled.nesting import LaneTimes, lane_times, united_spans
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import NONE


class Pieces(NamedTuple):
    """Hold pieces of intervals, all i8[n], by interval and time.

    ``source`` is the place of the interval that a piece is of, ``by`` that of what covers it, -1
    where nothing does; ``begin`` and ``end`` (exclusive) are in ns, none is empty.
    """

    source: I8
    by: I8
    begin: I8
    end: I8

    def where(self, mask: Bool) -> Pieces:
        """Choose pieces."""
        if mask.all():
            return self
        rows = np.flatnonzero(mask)
        return Pieces(*(column[rows] for column in self))

    @property
    def lengths(self) -> I8:
        """Length of each, i8[n] in ns."""
        return self.end - self.begin


@dataclass(frozen=True, eq=False)
class LaneIntervals:
    """Hold intervals that are disjoint on each lane: ``lane`` i4[n]; ``begin``, ``end`` i8[n].

    They are ordered by lane and time, and none is empty.
    """

    lane: Column
    begin: I8
    end: I8

    @classmethod
    def union(cls, lane: Column, start: I8, end: I8) -> LaneIntervals:
        """Make the intervals in which any of those of a lane is open; those that touch are one."""
        some = np.flatnonzero(end > start)
        if len(some) < len(start):
            lane, start, end = lane[some], start[some], end[some]
        if found := united_spans(lane, start, end):
            return cls(lane[found.piece], found.start.copy(), found.end.copy())
        order = order_by([start, lane])
        lane, start, end = lane[order], start[order], end[order]
        reach = _reach(lane, end)
        fresh = np.ones(len(order), bool)
        fresh[1:] = (lane[1:] != lane[:-1]) | (start[1:] > reach[:-1])
        first = np.flatnonzero(fresh)
        last = np.append(first[1:], len(order))[: len(first)] - 1
        return cls(lane[first], start[first], reach[last])

    def __len__(self) -> int:
        return len(self.lane)

    def cut(self, lane: Column, begin: I8, end: I8) -> Pieces:
        """Cut other intervals, in any order, where these begin and end; nothing is lost."""
        first = self._places(self.end, lane, begin, "right")
        number = self._places(self.begin, lane, end, "left") - first
        number = np.where(end > begin, np.maximum(number, 0), 0)
        source, by = np.repeat(np.arange(len(begin)), number), expand_ranges(first, number)
        low = np.maximum(self.begin[by], begin[source])
        high = np.minimum(self.end[by], end[source])
        return _with_rest(Pieces(source, by, low, high), begin, end, number)

    def cover(self, lane: Column, begin: I8, end: I8) -> Bool:
        """Tell which other intervals lie wholly in one of these, bool[n]."""
        if not len(self):
            return np.zeros(len(begin), bool)
        at = self._places(self.begin, lane, begin, "right") - 1
        covers: Bool = (at >= 0) & (self.lane[at] == lane) & (end <= self.end[at])
        return covers

    def _places(self, times: I8, lane: Column, at: I8, side: Side) -> I8:
        """Where each time of a lane would stand among ``times``, which are those of these."""
        return places_on_lanes(self.lane, times, lane, at, side)


def measure_lanes(lane: Column, start: I8, end: I8, lanes: int) -> LaneTimes:
    """Measure when the first interval of each lane began, the last ended, and when any was open.

    What is of a lane below 0 is left out; the others are below ``lanes``.
    """
    if (found := lane_times(lane, start, end, lanes)) is not None:
        return found
    limits, some = np.iinfo(np.int64), np.flatnonzero(lane >= 0)
    lane, start, end = lane[some], start[some], end[some]
    first, last = np.full(lanes, limits.max), np.full(lanes, limits.min)
    np.minimum.at(first, lane, start)
    np.maximum.at(last, lane, end)
    runs = LaneIntervals.union(lane, start, end)
    return LaneTimes(first, last, sum_by(runs.lane, runs.end - runs.begin, lanes))


def _with_rest(inside: Pieces, begin: I8, end: I8, number: I8) -> Pieces:
    """The pieces ``inside`` and, around them, what of each interval is in none."""
    size, own = len(begin), np.arange(len(begin))
    place = np.arange(len(inside.source)) + inside.source  # of inside pieces, one rest before each
    lows, highs = np.empty(len(place) + size, np.int64), np.empty(len(place) + size, np.int64)
    after = np.cumsum(number) + own
    lows[after - number], highs[after] = begin, end
    lows[place + 1], highs[place] = inside.end, inside.begin
    source = np.repeat(own, number + 1)
    rest = Pieces(source, np.full(len(source), NONE, np.int64), lows, highs)
    return _merged(rest.where(highs > lows), inside)


def _merged(one: Pieces, other: Pieces) -> Pieces:
    columns = [np.concatenate(pair) for pair in zip(one, other, strict=True)]
    order = order_by([columns[2], columns[0]])
    return Pieces(*(column[order] for column in columns))


def _reach(lane: I8, end: I8) -> I8:
    """The latest end of each row and those before it on its lane."""
    reach = end.copy()
    edges = np.flatnonzero(lane[1:] != lane[:-1]) + 1
    for first, last in zip([0, *edges.tolist()], [*edges.tolist(), len(lane)], strict=True):
        np.maximum.accumulate(end[first:last], out=reach[first:last])
    return reach
