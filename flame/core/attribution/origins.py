"""Find where GPU work came from: the Python stack and the ranges of its launch, or of its place."""

from __future__ import annotations

import numpy as np

from flame.core.attribution.graph_capture import NodeCaptures
from flame.core.attribution.nvtx_ranges import RangeIndex
from flame.core.attribution.open_at import OpenIntervals
from flame.core.attribution.python_calls import FunctionIndex
from flame.core.columns import I4, I8, Bool, Column, pack
from flame.core.model.activities import NONE
from flame.core.model.raw import RawActivities, RawOperators, RawRanges, RawTrace, close_open_ends
from flame.core.model.stack_joins import CAPTURED, FORWARD, PLACED, StackJoiner
from flame.core.model.stacks import EMPTY


class Origins:
    """Find the stacks of the launches, graph captures and GPU ranges of a trace."""

    def __init__(self, raw: RawTrace, functions: FunctionIndex) -> None:
        self.ranges = RangeIndex(raw.ranges, raw.last_time, raw.stacks)
        self._raw = raw
        self.joiner = StackJoiner(raw.frames, raw.stacks)
        self._functions = functions
        self._paths = functions.paths(raw.stacks)
        operators = raw.operators or _no_operators(raw.ranges)
        self._python = np.append(operators.python, EMPTY)
        self._forward = np.append(operators.forward, NONE)
        self._recorded = _RangeSubset(raw, operators.python != EMPTY)
        self._linked = _RangeSubset(raw, operators.forward >= 0)

    def launch_stacks(
        self, thread: Column, time: I8, python: I4, ranges: I4 | None = None
    ) -> tuple[I4, I4]:
        """Find Python and range stacks of launches on ``thread`` (-1: none) at ``time``, i4[n].

        ``python`` and ``ranges`` are what was recorded with the launch, and are kept. Where an
        operator of a backward pass is around the launch and its forward operator is known, the
        ranges around the forward operator stand outside.
        """
        python = np.where(python != EMPTY, python, self._python_at(thread, time))
        if ranges is None:
            ranges = self.ranges.open_at(thread, time)
        forward = self._forward[self._linked.innermost(thread, time)]
        rows = np.flatnonzero(forward >= 0)
        row = forward[rows]
        on, start = self._raw.ranges.thread[row], self._raw.ranges.start[row]
        forward_python = self._python_at(on, start)
        python[rows] = np.where(python[rows] != EMPTY, python[rows], forward_python)
        outer, same = self.ranges.stacks_of(row), on == thread[rows]
        ranges[rows] = self.joiner.join_below(outer, ranges[rows], same, FORWARD)
        return python.astype(np.int32), ranges

    def _python_at(self, thread: Column, time: I8) -> I4:
        """The stack of the innermost function, else that of the innermost operator with one."""
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


class _RangeSubset:
    """Some of a trace's ranges, to find the one opened last of those open."""

    def __init__(self, raw: RawTrace, chosen: Bool) -> None:
        rows, ranges = np.flatnonzero(chosen), raw.ranges
        end = close_open_ends(ranges.end[rows], raw.last_time)
        self._rows = np.append(rows, -1)
        self._open = OpenIntervals(ranges.thread[rows], ranges.start[rows], end)

    def __len__(self) -> int:
        return len(self._rows) - 1

    def innermost(self, thread: Column, time: I8) -> I8:
        """Find rows of the ranges, -1 where none of them is open."""
        if not len(self):
            return np.full(len(thread), -1)
        return self._rows[self._open.innermost(thread, time)]


def _no_operators(ranges: RawRanges) -> RawOperators:
    nothing = np.full(len(ranges.start), NONE)
    return RawOperators(np.full(len(nothing), EMPTY, np.int32), nothing)


def _number_keys(keys: I8, wanted: I8) -> tuple[I4, I4]:
    """Small numbers for ``keys`` and for the ``wanted`` keys, -1 for those not in ``keys``."""
    distinct_keys = np.unique(keys)
    place = np.searchsorted(distinct_keys, wanted)
    number = np.where(np.append(distinct_keys, -1)[place] == wanted, place, -1)
    return np.searchsorted(distinct_keys, keys).astype(np.int32), number.astype(np.int32)
