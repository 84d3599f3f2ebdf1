"""Cut intervals that cross into pieces that nest, for whole columns at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, Column, distinct, run_starts


class CutPieces(NamedTuple):
    """Hold pieces of intervals, ordered by (start, depth); ``row`` is the interval of each."""

    row: I8
    start: I8
    end: I8
    depth: I8


def cut_crossing(start: I8, end: I8, depth: I8, closing: I8) -> CutPieces:
    """Cut each interval wherever an interval that was opened before it ends.

    Intervals [start, end) are not empty and ordered from outer to inner, ``depth`` is how many
    earlier intervals are open at their start, ``closing`` the order in which they end, inner first.
    """
    row, at = _cuts(start, end, depth, closing)
    rows = np.arange(len(start))
    if len(row) == 0:
        return CutPieces(rows, start, end, depth)
    until, ends = _ends(row, at, end)
    # What goes on is older than what starts at the same time.
    place = np.searchsorted(start, at, "left")
    deep = _depths(start, end[closing], at)
    columns = ((rows, row), (start, at), (ends, until), (depth, deep))
    return CutPieces(*(np.insert(old, place, new) for old, new in columns))


def _cuts(start: I8, end: I8, depth: I8, closing: I8) -> tuple[I8, I8]:
    """Interval and time of every cut, ordered by (time, interval)."""
    outer, inner = _crossings(start, end, _pending(start, end, depth, closing))
    times = end[closing]
    moment = np.searchsorted(times, end[outer], "left")  # a number that fits beside a row's
    cuts, _ = distinct(moment * len(start) + inner)
    return cuts % len(start), times[cuts // len(start)]


def _pending(start: I8, end: I8, depth: I8, closing: I8) -> I8:
    """Intervals at whose end a later interval may still be open; a few too many.

    When an interval ends, the open ones are those around it less what ended since it started
    (each of which crosses it) plus what it is outlived by. The differences, added up in the order
    of ending, are the crossings of which only one of the two has ended.
    """
    opened = np.searchsorted(start, end[closing], "left")
    still_open = opened - np.arange(1, len(closing) + 1)
    rows: I8 = closing[np.cumsum(still_open - depth[closing]) > 0]
    return rows


def _crossings(start: I8, end: I8, outer: I8) -> tuple[I8, I8]:
    """All pairs of an interval in ``outer`` and a later one that starts in it and ends after it."""
    maxima = _Maxima(end)
    starts = np.append(start, np.iinfo(np.int64).max)
    crossings: list[tuple[I8, I8]] = []
    inner = outer
    while len(outer):
        inner = maxima.next_above(inner + 1, end[outer])
        crossing = starts[inner] < end[outer]
        outer, inner = outer[crossing], inner[crossing]
        crossings.append((outer, inner))
    empty = np.zeros(0, np.int64)
    pairs = list(zip(*crossings, strict=True)) or [(empty,), (empty,)]
    return np.concatenate(pairs[0]), np.concatenate(pairs[1])


def _ends(row: I8, at: I8, end: I8) -> tuple[I8, I8]:
    """Where the pieces that start at the cuts end, and the first pieces of all intervals."""
    order = np.argsort(row, kind="stable")
    first = run_starts(row[order])
    following = np.append(at[order][1:], 0)
    last = np.append(first[1:], len(order)) - 1
    following[last] = end[row[order[last]]]
    until = np.empty_like(at)
    until[order] = following
    ends = end.copy()
    ends[row[order[first]]] = at[order[first]]
    return until, ends


def _depths(start: I8, ends: I8, at: I8) -> I8:
    """Depth of the pieces that start at the cuts: those of one time are the innermost open."""
    opened = np.searchsorted(start, at, "left") - np.searchsorted(ends, at, "right")
    first = run_starts(at)
    size = np.diff(np.append(first, len(at)))
    place: I8 = np.arange(len(at)) - np.repeat(first + size, size)
    return opened + place


class _Maxima:
    """A pyramid of maxima over a column, to find the next larger value."""

    def __init__(self, values: I8) -> None:
        size = 1 << len(values).bit_length()
        largest = np.iinfo(np.int64).max
        base = np.full(size, largest)  # so that there always is a larger one
        base[: len(values)] = values
        self._levels = [base]
        while len(self._levels[-1]) > 1:
            self._levels.append(self._levels[-1].reshape(-1, 2).max(axis=1))

    def next_above(self, at: I8, limit: I8) -> I8:
        """Find the first place from ``at`` on with a value above ``limit``; the length if none."""
        node, height = at.copy(), np.full(len(at), len(self._levels) - 1)
        climbing = np.arange(len(at))
        for level, maxima in enumerate(self._levels[:-1]):
            odd = climbing[(node[climbing] & 1) == 1]
            holds = maxima[node[odd]] > limit[odd]
            height[odd[holds]] = level
            node[odd[~holds]] += 1
            climbing = _without(climbing, odd[holds])
            node[climbing] >>= 1
        return self._descend(node, height, limit)

    def _descend(self, node: I8, height: Column, limit: I8) -> I8:
        for level in range(len(self._levels) - 1, 0, -1):
            rows = np.flatnonzero(height >= level)
            left = node[rows] * 2
            node[rows] = left + (self._levels[level - 1][left] <= limit[rows])
        return node


def _without(rows: I8, taken: I8) -> I8:
    return np.setdiff1d(rows, taken, assume_unique=True) if len(taken) else rows
