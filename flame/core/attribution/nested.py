"""Nest Python functions and ranges together, as they were open in time on their thread."""

from __future__ import annotations

import numpy as np

from flame.core.attribution.nesting import MAX_MIXED_DEPTH
from flame.core.attribution.open_at import OpenIntervals
from flame.core.attribution.origins import ForwardLinks
from flame.core.columns import I4, I8, Column, unique_rows
from flame.core.lazy_dataclass import dataclass
from flame.core.model.frames import FrameBuilder
from flame.core.model.nested import NestedStacks
from flame.core.model.raw import RawOperators, RawPythonCalls, RawRanges, close_open_ends
from flame.core.model.stack_joins import StackJoiner, count_shared, put_beyond
from flame.core.model.stacks import EMPTY, StackBuilder, StackTable


@dataclass(frozen=True, eq=False)
class NestedSource:
    """Hold functions and ranges as recorded; ``stacks`` has those recorded with ``operators``.

    ``end`` is when the capture ended, ns. Called with ``thread`` and ``time`` of launches it finds
    their stacks.
    """

    ranges: RawRanges
    functions: RawPythonCalls
    operators: RawOperators | None
    stacks: StackTable
    end: int

    def __call__(self, thread: Column, time: I8) -> NestedStacks:
        """Find the stacks of launches on ``thread`` at ``time``."""
        index = NestedIndex(self)
        own, linked = index.open_at(thread, time), None
        if self.operators is not None:
            links = ForwardLinks(self.ranges, self.end, self.operators.forward)
            rows, row = links.forward_of(thread, time)
            linked = own.copy()
            same = self.ranges.thread[row] == thread[rows]
            linked[rows] = index.join_below(index.begun(row), own[rows], same)
        return NestedStacks(index.stacks.build(), own, own if linked is None else linked)


class NestedIndex:
    """Index functions and ranges of all threads, open from start to end, both included.

    The earlier is outside, then the longer one, then functions, of these those with the lower
    numbers. Of a range whose Python stack was recorded, and that no function is around, that stands
    outside, less what stands there already of the range around it.
    """

    def __init__(self, source: NestedSource) -> None:
        self.stacks = StackBuilder.from_table(source.stacks)
        ranges, functions = source.ranges, source.functions
        order = np.argsort(functions.call, kind="stable")
        self._functions = len(order)
        self._thread = np.concatenate([functions.thread[order], ranges.thread])
        self._start = np.concatenate([functions.start[order], ranges.start])
        end = close_open_ends(np.concatenate([functions.end[order], ranges.end]), source.end)
        self._frame = np.concatenate([functions.frame[order], ranges.frame])
        self._open = OpenIntervals(self._thread, self._start, end, MAX_MIXED_DEPTH)
        none = np.full(self._functions, EMPTY, np.int32)
        self._recorded = np.append(none, _recorded_stacks(source))
        self._known = source.stacks
        self._paths, self._python = self._piece_paths()

    def open_at(self, thread: Column, time: I8) -> I4:
        """Find the stacks of what is open on ``thread`` (-1: unknown, empty) at ``time``, i4[n]."""
        before = self._open.open_before(thread, time)
        stack, python = self._paths[before], self._python[before]
        room = MAX_MIXED_DEPTH - np.append(self._open.nesting.depth + 1, 0)[before]
        first, last = self._open.starting_at(thread, time)
        last = np.minimum(last, first + room)
        rows = np.flatnonzero(first < last)
        while len(rows):
            inner = self._open.rows[first[rows]]
            stack[rows], python[rows] = self._put(stack[rows], python[rows], inner)
            first[rows] += 1
            rows = rows[first[rows] < last[rows]]
        return stack

    def begun(self, ranges: I8) -> I4:
        """Find the stacks of the ``ranges`` (rows) when they began, themselves included, i4[n]."""
        rows = ranges + self._functions
        first = self._open.first_pieces(len(self._start))[rows]
        stack = self._paths[first]
        alone = np.flatnonzero(first < 0)  # without length: inside all that starts with them
        at = rows[alone]
        nesting = self._open.nesting
        outer = nesting.innermost(np.maximum(self._thread[at], 0), self._start[at])
        stack[alone], _ = self._put(self._paths[outer], self._python[outer], at)
        return stack

    def join_below(self, outer: I4, inner: I4, same: Column) -> I4:
        """Put frames of ``inner`` on top of ``outer``, common ones once on the ``same`` thread."""
        return StackJoiner(FrameBuilder(), self.stacks).join_below(outer, inner, same, None)

    def _piece_paths(self) -> tuple[I4, I4]:
        """The stack of each piece, and the Python stack recorded last; the last two are empty."""
        nesting = self._open.nesting
        path = np.full(len(nesting) + 1, EMPTY, np.int32)
        python = path.copy()
        for pieces in nesting.by_depth():
            above, inner = nesting.parent[pieces], self._open.rows[nesting.source[pieces]]
            path[pieces], python[pieces] = self._put(path[above], python[above], inner)
        return path, python

    def _put(self, stack: I4, python: I4, inner: I8) -> tuple[I4, I4]:
        """Put the intervals ``inner`` on each ``stack``, on which ``python`` was recorded last."""
        recorded = self._recorded[inner]
        rows = np.flatnonzero((recorded != EMPTY) & (recorded != python))
        if len(rows):
            stack = stack.copy()
            stack[rows] = self._put_python(stack[rows], python[rows], recorded[rows])
        put = self.stacks.extend(stack, self._frame[inner])
        return put, np.where(recorded != EMPTY, recorded, python)

    def _put_python(self, stack: I4, before: I4, recorded: I4) -> I4:
        first, place = unique_rows([stack, before, recorded])
        paths = self._known.paths(recorded[first])
        shared = count_shared(self._known.paths(before[first]), paths)
        return put_beyond(self.stacks, stack[first], paths, shared)[place]


def _recorded_stacks(source: NestedSource) -> I4:
    """The Python stack recorded with each range that no Python function is around, i4[ranges]."""
    ranges, functions = source.ranges, source.functions
    if source.operators is None:
        return np.full(len(ranges.start), EMPTY, np.int32)
    recorded = source.operators.python
    if not len(functions.start) or not recorded.any():
        return recorded
    end = close_open_ends(functions.end, source.end)
    around = OpenIntervals(functions.thread, functions.start, end)
    return np.where(around.innermost(ranges.thread, ranges.start) >= 0, EMPTY, recorded)
