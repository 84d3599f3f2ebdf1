"""Which intervals are open when: nesting by time on a thread, for whole columns at once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from flame.core.columns import I8, Bool, Column
from flame.core.errors import InputError

MAX_DEPTH = 500
"""Ranges nested deeper are not shown (speedscope cannot draw 1,000 levels either)."""

_TIME_LIMIT = 1 << 62


@dataclass(frozen=True)
class Nesting:
    """Intervals cut into pieces that nest and never cross, ordered by (lane, start, depth).

    An interval that outlives one that was opened before it is cut where that one ends: its later
    piece is no longer below it. ``source`` i8[n] is the interval a piece was cut from, ``start``
    and ``end`` (exclusive) are its times, ``parent`` the enclosing piece or -1, ``depth`` the
    number of enclosing pieces. ``too_deep`` counts intervals left out for `MAX_DEPTH`.
    """

    source: I8
    start: I8
    end: I8
    parent: I8
    depth: I8
    too_deep: int
    _clock: _Clock
    _keys: I8
    _order: I8

    def __len__(self) -> int:
        return len(self.source)

    def innermost(self, lane: Column, time: Column) -> I8:
        """The innermost piece open on ``lane`` at ``time``, or -1."""
        if len(self) == 0:
            return np.full(len(time), -1, np.int64)
        at = self._clock.of(lane, time)
        last = np.searchsorted(self._clock.starts, at, "right") - 1
        depth = last + 1 - np.searchsorted(self._clock.ends, at, "right")
        found = self._last_at_depth(depth - 1, last)
        return np.where((depth > 0) & self._clock.covers(time), found, -1)

    def _last_at_depth(self, depth: I8, last: I8) -> I8:
        """The last piece up to index ``last`` that has ``depth``."""
        place = np.searchsorted(self._keys, depth * len(self) + last, "right") - 1
        found: I8 = self._order[place]
        return found

    def by_depth(self) -> Iterator[I8]:
        """Pieces of depth 0, 1, …: parents come before their children."""
        bounds = np.concatenate([[0], np.cumsum(np.bincount(self.depth))])
        for low, high in itertools.pairwise(bounds):
            yield self._order[low:high]

    def own_time(self) -> I8:
        """Length of every piece not covered by the pieces directly inside it."""
        length = self.end - self.start
        own = length.copy()
        inside = np.flatnonzero(self.parent >= 0)
        np.subtract.at(own, self.parent[inside], length[inside])
        return own


@dataclass(frozen=True)
class _Clock:
    """One time line for all lanes: each lane's times are shifted into a window of its own."""

    base: int
    span: int
    starts: I8
    ends: I8

    def of(self, lane: Column, time: Column) -> I8:
        shifted: I8 = np.asarray(lane, np.int64) * self.span + (time - self.base)
        return shifted

    def covers(self, time: Column) -> Bool:
        inside: Bool = (time >= self.base) & (time < self.base + self.span)
        return inside


def nest(lane: Column, start: I8, end: I8) -> Nesting:
    """Nest the intervals [start, end) of each lane (a thread); empty ones are left out.

    Order on a lane: earlier start is outer, then the longer one, then table order.
    """
    kept = np.flatnonzero(end > start)
    base = int(start[kept].min()) if len(kept) else 0
    span = int(end[kept].max()) - base + 1 if len(kept) else 1
    if span * (int(np.max(lane, initial=0)) + 1) >= _TIME_LIMIT:
        raise InputError("damaged: the times in it span more than a century")
    shift = np.asarray(lane, np.int64)[kept] * span - base
    source, begin, stop = _ordered(kept, start[kept] + shift, end[kept] + shift)
    depth = _open_before(begin, stop)
    shallow = depth < MAX_DEPTH
    too_deep = int(len(depth) - shallow.sum())
    if too_deep:
        source, begin, stop = source[shallow], begin[shallow], stop[shallow]
        depth = _open_before(begin, stop)
    keys, order = _depth_index(depth)
    parent = _parents(depth, keys, order)
    crossing = (parent >= 0) & (stop > stop[parent])
    if crossing.any():
        source, begin, stop, depth = _cut(source, begin, stop, depth, crossing)
        keys, order = _depth_index(depth)
        parent = _parents(depth, keys, order)
    back = base - np.asarray(lane, np.int64)[source] * span
    clock = _Clock(base, span, begin, np.sort(stop))
    return Nesting(source, begin + back, stop + back, parent, depth, too_deep, clock, keys, order)


def _open_before(start: I8, end: I8) -> I8:
    """For each interval (ordered by start) the number of earlier ones still open at its start."""
    return np.arange(len(start)) - np.searchsorted(np.sort(end), start, "right")


def _ordered(source: I8, start: I8, end: I8) -> tuple[I8, I8, I8]:
    """The columns ordered by (start, longest first, as given)."""
    rising = start[1:] > start[:-1]
    tied = (start[1:] == start[:-1]) & (end[1:] <= end[:-1])
    if (rising | tied).all():
        return source, start, end
    order = np.lexsort((-end, start))
    return source[order], start[order], end[order]


def _depth_index(depth: I8) -> tuple[I8, I8]:
    """Pieces ordered by (depth, index), and that order's sorted keys depth * n + index."""
    order = np.argsort(depth.astype(np.uint16), kind="stable")
    return depth[order] * len(depth) + order, order


def _parents(depth: I8, keys: I8, order: I8) -> I8:
    """For each piece the last earlier one that is one level up, -1 at depth 0."""
    wanted = (depth - 1) * len(depth) + np.arange(len(depth))
    place = np.searchsorted(keys, wanted, "right") - 1
    return np.where(depth > 0, order[np.maximum(place, 0)], -1)


def _cut(source: I8, start: I8, end: I8, depth: I8, crossing: Bool) -> tuple[I8, I8, I8, I8]:
    """Cut crossing intervals into nesting pieces, touching only the clusters that need it.

    A cluster is a maximal run of intervals with no instant at which none is open.
    """
    cluster = np.cumsum(depth == 0)
    crossed = np.isin(cluster, cluster[crossing])
    rows = np.flatnonzero(crossed)
    tangles = np.split(rows, np.flatnonzero(np.diff(cluster[rows])) + 1)
    swept = [piece for tangle in tangles for piece in _sweep(tangle.tolist(), start, end)]
    cut = np.array(swept, np.int64).reshape(-1, 4).T
    whole = [column[~crossed] for column in (source, start, end, depth)]
    parts = (source[cut[0]], cut[1], cut[2], cut[3])
    pieces = [np.concatenate(pair) for pair in zip(whole, parts, strict=True)]
    order = np.lexsort((pieces[3], pieces[1]))
    a, b, c, d = (column[order] for column in pieces)
    return a, b, c, d


def _sweep(rows: list[int], start: I8, end: I8) -> Iterator[tuple[int, int, int, int]]:
    """Pieces (row, start, end, depth) of one cluster, by going through its times in order."""
    stops = sorted({int(end[row]) for row in rows})
    opening = iter(sorted(rows))
    upcoming = next(opening, None)
    opened: list[tuple[int, int]] = []  # (row, start of its current piece), outermost first
    for stop in stops:
        while upcoming is not None and start[upcoming] < stop:
            opened.append((upcoming, int(start[upcoming])))
            upcoming = next(opening, None)
        first = next(place for place, (row, _) in enumerate(opened) if end[row] == stop)
        for place in range(first, len(opened)):
            row, begin = opened[place]
            yield row, begin, stop, place
        opened[first:] = [(row, stop) for row, _ in opened[first:] if end[row] > stop]
