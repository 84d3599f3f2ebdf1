"""Find the NVTX ranges that are open on a thread at a time, as stacks."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from flame.core.attribution.nesting import MAX_DEPTH, Nesting
from flame.core.attribution.open_at import OpenIntervals
from flame.core.columns import I4, I8, Bool, Column
from flame.core.compiled.intervals import find_open
from flame.core.model.raw import RawRanges, close_open_ends
from flame.core.model.stacks import StackBuilder, StackTable


class RangeIndex:
    """Index the ranges of all threads, open from start to end, both included.

    Threads on which ranges nest are swept once by the compiled part; where they cross, and without
    it, numpy nests them.
    """

    def __init__(self, ranges: RawRanges, capture_end: int, stacks: StackBuilder) -> None:
        self._ranges = replace(ranges, end=close_open_ends(ranges.end, capture_end))
        self._stacks = stacks
        self._crossing: NestedRanges | None = None
        self._is_swept = False

    def open_at(self, thread: Column, time: I8) -> I4:
        """Find the stacks of ranges open on ``thread`` (-1: unknown, empty) at ``time``, i4[n]."""
        ranges = self._ranges
        spans = (ranges.thread, ranges.start, ranges.end, ranges.frame)
        found = find_open(spans, (thread, time), MAX_DEPTH)
        if found is None:
            return self._nested.open_at(thread, time)
        self._is_swept = True
        frames = np.arange(int(found.frame.max()) + 1, dtype=np.int32)
        table = StackTable.of_links(found.parent, found.frame)
        stack: I4 = self._stacks.absorb(table, frames)[found.path]
        if found.refused.any():
            rows = np.flatnonzero((thread >= 0) & found.refused[thread])
            stack[rows] = self._crossing_on(found.refused).open_at(thread[rows], time[rows])
        return stack

    def _crossing_on(self, threads: Bool) -> NestedRanges:
        """Nest the ranges of the marked ``threads``, bool[threads]."""
        if self._crossing is None:
            thread = self._ranges.thread
            rows = np.flatnonzero((thread >= 0) & threads[thread])
            self._crossing = NestedRanges(self._ranges.take(rows), self._stacks)
        return self._crossing

    @property
    def too_deep(self) -> int:
        """Count the ranges that are left out, nested deeper than `MAX_DEPTH`."""
        if self._crossing is not None:
            return self._crossing.nesting.too_deep
        return 0 if self._is_swept else self._nested.nesting.too_deep

    def stacks_of(self, rows: I8) -> I4:
        """Find the stacks of the ranges ``rows`` when they began, themselves included."""
        return self._nested.stacks_of(rows)

    @cached_property
    def _nested(self) -> NestedRanges:
        return NestedRanges(self._ranges, self._stacks)


class NestedRanges:
    """Nest ranges by numpy, whichever way they cross: the reference of the compiled part."""

    def __init__(self, ranges: RawRanges, stacks: StackBuilder) -> None:
        self._ranges = ranges
        self._stacks = stacks
        self._open = OpenIntervals(ranges.thread, ranges.start, ranges.end)
        self._frame = ranges.frame[self._open.rows]
        self.nesting = self._open.nesting
        self._paths = _paths(self.nesting, self._frame, stacks)

    def open_at(self, thread: Column, time: I8) -> I4:
        """Find the stacks of ranges open on ``thread`` (-1: unknown, empty) at ``time``, i4[n]."""
        before = self._open.open_before(thread, time)
        stack: I4 = self._paths[before]
        room = MAX_DEPTH - np.append(self.nesting.depth + 1, 0)[before]
        first, last = self._open.starting_at(thread, time)
        last = np.minimum(last, first + room)
        rows = np.flatnonzero(first < last)
        while len(rows):
            stack[rows] = self._stacks.extend(stack[rows], self._frame[first[rows]])
            first[rows] += 1
            rows = rows[first[rows] < last[rows]]
        return stack

    def stacks_of(self, rows: I8) -> I4:
        """Find the stacks of the ranges ``rows`` when they began, themselves included."""
        first = self._open.first_pieces(len(self._ranges.start))
        stack: I4 = self._paths[first[rows]]
        alone = np.flatnonzero(first[rows] < 0)  # without length: inside all that starts with them
        thread, start = self._ranges.thread[rows[alone]], self._ranges.start[rows[alone]]
        outer = self._paths[self.nesting.innermost(np.maximum(thread, 0), start)]
        stack[alone] = self._stacks.extend(outer, self._ranges.frame[rows[alone]])
        return stack


def _paths(nesting: Nesting, frame: I4, stacks: StackBuilder) -> I4:
    """The stack each piece stands for, itself included; the last entry, "no piece", is empty."""
    path = np.zeros(len(nesting) + 1, np.int32)
    for pieces in nesting.by_depth():
        path[pieces] = stacks.extend(path[nesting.parent[pieces]], frame[nesting.source[pieces]])
    return path
