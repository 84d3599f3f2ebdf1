"""Measure ranges on their threads, and when what was launched in each ran on the GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from flame.core.attribution.nesting import lane_clock
from flame.core.attribution.open_at import OpenIntervals
from flame.core.columns import I4, I8, Bool, Column, expand_ranges, order_by, sum_by
from flame.core.model.activities import ThreadPieces
from flame.core.report.scope import Scope

_INT64 = np.iinfo(np.int64)


@dataclass(frozen=True, eq=False)
class RangeInstances:
    """Hold the ranges of a scope, i8[n] each: whole, also where they were cut to nest.

    ``shown`` is the frame that each is shown as, ``length`` how long it lasted, ``own`` the part in
    which no range inside it was open, ``outer`` the part that is in no other range shown as the
    same, ns. ``activities`` counts those launched in it by its thread, ``first`` is when the first
    of these began and ``last`` when the last was done; 0 without any.
    """

    shown: I8
    length: I8
    own: I8
    outer: I8
    activities: I8
    first: I8
    last: I8

    def __len__(self) -> int:
        return len(self.shown)

    @property
    def projected(self) -> I8:
        """From the beginning of the first activity to the end of the last, i8[n] in ns."""
        return self.last - self.first


def range_instances(scope: Scope, shown: I4) -> RangeInstances:
    """Measure the ranges of ``scope``, which are ``shown`` as these frames (i4[frames])."""
    pieces = scope.profile.ranges
    if not pieces:
        return RangeInstances(*(np.zeros(0, np.int64) for _ in range(7)))
    pieces = scope.on_host(pieces)
    size, whole = _whole(pieces)
    frame, length = np.zeros(size, np.int64), pieces.end - pieces.start
    frame[whole] = shown[pieces.frame]
    inside = pieces.parent >= 0
    within = sum_by(pieces.parent[inside], length[inside], len(pieces))
    outer = length * _outermost(pieces, shown[pieces.frame])
    work = _work_in(scope, pieces).of(whole, size)
    return RangeInstances(
        frame,
        sum_by(whole, length, size),
        sum_by(whole, length - within, size),
        sum_by(whole, outer, size),
        work.activities,
        np.where(work.activities > 0, work.first, 0),
        np.where(work.activities > 0, work.last, 0),
    )


def _whole(pieces: ThreadPieces) -> tuple[int, I8]:
    """(number of ranges, the range of each piece): one that was cut goes on where another ended.

    Its pieces differ in depth; ranges that follow each other do not.
    """
    order = np.lexsort((pieces.start, pieces.frame, pieces.thread))
    thread, frame, depth, start, end = (
        column[order]
        for column in (pieces.thread, pieces.frame, pieces.depth, pieces.start, pieces.end)
    )
    goes_on = (thread[1:] == thread[:-1]) & (frame[1:] == frame[:-1])
    goes_on &= (start[1:] == end[:-1]) & (depth[1:] != depth[:-1])
    whole = np.zeros(len(order), np.int64)
    whole[order[1:]] = np.cumsum(~goes_on)
    return (int(whole.max()) + 1 if len(whole) else 0), whole


def _outermost(pieces: ThreadPieces, shown: Column) -> Bool:
    """Which pieces are in no other that is shown as the same."""
    clock = lane_clock(pieces.thread, pieces.start, pieces.end)
    begin, stop = (clock.shift(pieces.thread, time) for time in (pieces.start, pieces.end))
    # From outer to inner: what begins before a piece ends, behind it in this order, is within it.
    order = order_by([pieces.depth, begin])
    reach = np.searchsorted(begin[order], stop[order])
    by_frame = order_by([shown[order]])
    lift = shown[order][by_frame].astype(np.int64) * (len(order) + 1)
    ends = np.maximum.accumulate(reach[by_frame] + lift)
    free = np.ones(len(order), bool)
    free[1:] = by_frame[1:] + lift[1:] >= ends[:-1]
    found = np.zeros(len(order), bool)
    found[order[by_frame]] = free
    return found


class _Work(NamedTuple):
    """Activities by range: how many, when the first began, and when the last was done."""

    activities: I8
    first: I8
    last: I8

    @classmethod
    def none(cls, size: int) -> _Work:
        """Begin with none in each."""
        return cls(np.zeros(size, np.int64), np.full(size, _INT64.max), np.full(size, _INT64.min))

    def add(self, place: Column, other: _Work) -> None:
        """Add ``other`` to these, each to its ``place``."""
        np.add.at(self.activities, place, other.activities)
        np.minimum.at(self.first, place, other.first)
        np.maximum.at(self.last, place, other.last)

    def take(self, rows: Column) -> _Work:
        """Take some."""
        return _Work(*(column[rows] for column in self))

    def of(self, place: I8, size: int) -> _Work:
        """Put together what is at each of ``size`` places."""
        found = _Work.none(size)
        found.add(place, self)
        return found


def _work_in(scope: Scope, pieces: ThreadPieces) -> _Work:
    """What of the scope was launched in each piece by its thread, from its start to its end.

    Both are included, as where activities stand below ranges.
    """
    table = scope.profile.activities
    rows = scope.rows[(table.launched & (table.thread >= 0))[scope.rows]]
    start = table.start[rows]
    each = _Work(np.ones(len(rows), np.int64), start, start + table.duration[rows])
    spans = OpenIntervals(pieces.thread, pieces.start, pieces.end)
    found, place = _Work.none(len(pieces)), (table.thread[rows], table.launch_start[rows])
    before = spans.open_before(*place)
    inside = before >= 0
    found.add(spans.rows[spans.nesting.source[before[inside]]], each.take(inside))
    for inner in _by_depth(pieces):
        found.add(pieces.parent[inner], found.take(inner))
    # What begins with the launch is in ranges that began before, which have it, or begin then, too.
    first, last = spans.starting_at(*place)
    found.add(
        spans.rows[expand_ranges(first, last - first)],
        each.take(np.repeat(np.arange(len(rows)), last - first)),
    )
    return found


def _by_depth(pieces: ThreadPieces) -> list[I8]:
    """The pieces within others, the deepest first."""
    order = order_by([pieces.depth])
    bounds = np.cumsum(np.bincount(pieces.depth, minlength=1))
    return np.split(order, bounds)[1:-1][::-1]
