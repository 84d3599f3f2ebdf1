"""Find where GPU work came from: the Python stack and the ranges of its launch, or of its place."""

from __future__ import annotations

import numpy as np

from flame.core.attribution.graph_capture import NodeCaptures
from flame.core.attribution.nvtx_ranges import RangeIndex
from flame.core.attribution.open_at import OpenIntervals
from flame.core.attribution.python_calls import FunctionIndex
from flame.core.columns import I4, I8, Bool, Column, pack, unique
from flame.core.model.activities import NONE
from flame.core.model.raw import RawActivities, RawOperators, RawRanges, RawTrace, close_open_ends
from flame.core.model.stack_joins import CAPTURED, FORWARD, PLACED, StackJoiner
from flame.core.model.stacks import EMPTY

_NO_OPERATORS = RawOperators(np.zeros(0, np.int32), np.zeros(0, np.int64))


class Origins:
    """Find the stacks of the launches, graph captures and GPU ranges of a trace."""

    def __init__(self, raw: RawTrace, functions: FunctionIndex) -> None:
        self.ranges = RangeIndex(raw.ranges, raw.last_time, raw.stacks)
        self._raw = raw
        self.joiner = StackJoiner(raw.frames, raw.stacks)
        self._functions = functions
        self._paths = functions.paths(raw.stacks)
        operators = raw.operators or _NO_OPERATORS
        self._python = np.append(operators.python, EMPTY)
        self._recorded = RangeSubset(raw.ranges, raw.last_time, operators.python != EMPTY)
        self._links = ForwardLinks(raw.ranges, raw.last_time, operators.forward)

    def launch_stacks(
        self, thread: Column, time: I8, python: I4, ranges: I4 | None = None
    ) -> tuple[I4, I4]:
        """Find Python and range stacks of launches on ``thread`` (-1: none) at ``time``, i4[n].

        ``python`` and ``ranges`` are what was recorded with the launch, and are kept.
        """
        found = self._python_at(thread, time)
        python = np.where(python != EMPTY, python, found) if python.any() else found
        if ranges is None:
            ranges = self.ranges.open_at(thread, time)
        return python.astype(np.int32, copy=False), ranges

    def add_forward(self, thread: Column, time: I8, python: I4, ranges: I4) -> tuple[I4, I4] | None:
        """Put the ranges around the forward operator outside of those of a backward pass.

        For launches as in `launch_stacks`, of the stacks that gives: where an operator of a
        backward pass is around the launch and its forward operator is known. A launch without
        Python frames gets those of the forward operator. None where there is no such launch.
        """
        rows, row = self._links.forward_of(thread, time)
        if not len(rows):
            return None
        python, ranges = python.copy(), ranges.copy()
        on, start = self._raw.ranges.thread[row], self._raw.ranges.start[row]
        forward_python = self._python_at(on, start)
        python[rows] = np.where(python[rows] != EMPTY, python[rows], forward_python)
        outer, same = self.ranges.stacks_of(row), on == thread[rows]
        ranges[rows] = self.joiner.join_below(outer, ranges[rows], same, FORWARD)
        return python, ranges

    def _python_at(self, thread: Column, time: I8) -> I4:
        """The stack of the innermost function, else that of the innermost operator with one."""
        stack: I4 = np.full(len(thread), EMPTY, np.int32)
        if len(self._functions):
            stack = self._paths[self._functions.innermost(thread, time)]
        if not len(self._recorded):
            return stack
        recorded = self._python[self._recorded.innermost(thread, time)]
        return np.where(stack != EMPTY, stack, recorded)

    def capture_stacks(self, captures: NodeCaptures) -> tuple[I4, I4]:
        """Find Python and range stacks of the code that captured graph nodes, marked as such."""
        paths = self._raw.paths
        python = paths.nodes.python if paths else np.zeros_like(self._raw.nodes.thread)
        python = np.append(python, np.int32(EMPTY))[captures.row]
        if paths is None or paths.calls is None:
            ranges = self.ranges.open_at(captures.thread, captures.time)
        else:
            ranges = np.append(paths.nodes.nvtx, np.int32(EMPTY))[captures.row]
        return self.joiner.mark(python, CAPTURED), self.joiner.mark(ranges, CAPTURED)

    def gpu_range_stacks(self, work: RawActivities, rows: I8) -> I4:
        """Find the GPU's own ranges open on the stream when ``rows`` of ``work`` started."""
        ranges = self._raw.gpu_ranges
        lanes = pack(
            [
                np.append(ranges.device, work.device[rows]),
                np.append(ranges.stream, work.stream[rows]),
            ]
        )
        lane, wanted = _number_keys(lanes[: len(ranges.start)], lanes[len(ranges.start) :])
        on = RawRanges(ranges.start, ranges.end, lane, ranges.frame)
        index = RangeIndex(on, self._raw.last_time, self._raw.stacks)
        return self.joiner.mark(index.open_at(wanted, work.start[rows]), PLACED)


def _number_keys(keys: I8, wanted: I8) -> tuple[I4, I4]:
    """Small numbers for ``keys`` and for the ``wanted`` keys, -1 for those not in ``keys``."""
    distinct_keys = unique(keys)
    place = np.searchsorted(distinct_keys, wanted)
    number = np.where(np.append(distinct_keys, -1)[place] == wanted, place, -1)
    return np.searchsorted(distinct_keys, keys).astype(np.int32), number.astype(np.int32)


class RangeSubset:
    """Index the ``chosen`` ones (bool[n]) of ``ranges``, to find the one opened last."""

    def __init__(self, ranges: RawRanges, capture_end: int, chosen: Bool) -> None:
        rows = np.flatnonzero(chosen)
        end = close_open_ends(ranges.end[rows], capture_end)
        self._rows = np.append(rows, -1)
        self._open = OpenIntervals(ranges.thread[rows], ranges.start[rows], end)

    def __len__(self) -> int:
        return len(self._rows) - 1

    def innermost(self, thread: Column, time: I8) -> I8:
        """Find rows of the ranges open on ``thread`` at ``time``, -1 where none of them is."""
        if not len(self):
            return np.full(len(thread), -1)
        return self._rows[self._open.innermost(thread, time)]


class ForwardLinks:
    """Index the operators whose ``forward`` operator is known: i8[ranges], its row or -1."""

    def __init__(self, ranges: RawRanges, capture_end: int, forward: I8) -> None:
        self._forward = np.append(forward, NONE)
        self._linked = RangeSubset(ranges, capture_end, forward >= 0)

    def forward_of(self, thread: Column, time: I8) -> tuple[I8, I8]:
        """Find which launches on ``thread`` at ``time`` have a forward operator, and its row.

        It is that of the innermost linked operator around the launch.
        """
        if not len(self._linked):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        forward = self._forward[self._linked.innermost(thread, time)]
        rows = np.flatnonzero(forward >= 0)
        return rows, forward[rows]
