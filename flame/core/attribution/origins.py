"""Where GPU work came from: the Python stack and the ranges of its launch, or of its place."""

from __future__ import annotations

import numpy as np

from flame.core.attribution.graph_capture import Captures
from flame.core.attribution.nvtx_ranges import RangeIndex
from flame.core.attribution.open_at import OpenIntervals
from flame.core.attribution.python_calls import FunctionIndex
from flame.core.columns import I4, I8, Bool, Column, pack
from flame.core.model.activities import NONE
from flame.core.model.raw import RawActivities, RawOperators, RawRanges, RawTrace, close_open_ends
from flame.core.model.stack_joins import CAPTURED, FORWARD, PLACED, StackJoiner
from flame.core.model.stacks import EMPTY


class Origins:
    """Answers for the launches of one trace."""

    def __init__(self, raw: RawTrace, functions: FunctionIndex) -> None:
        self.ranges = RangeIndex(raw.ranges, raw.last_time, raw.stacks)
        self._raw = raw
        self.joiner = StackJoiner(raw.frames, raw.stacks)
        self._functions = functions
        self._paths = functions.paths(raw.stacks)
        known = raw.operators or _no_operators(raw.ranges)
        self._python, self._forward = np.append(known.python, EMPTY), np.append(known.forward, NONE)
        self._recorded = _RangeSubset(raw, known.python != EMPTY)
        self._linked = _RangeSubset(raw, known.forward >= 0)

    def of_launches(
        self, thread: Column, time: I8, python: I4, ranges: I4 | None = None
    ) -> tuple[I4, I4]:
        """Python and range stacks of launches on ``thread`` (-1: none) at ``time``, i4[n] each.

        ``python`` and ``ranges`` are what was recorded with the launch, and are kept. Where an
        operator of a backward pass is around the launch and its forward operator is known, the
        ranges around that one stand outside.
        """
        python = np.where(python != EMPTY, python, self._python_at(thread, time))
        if ranges is None:
            ranges = self.ranges.open_at(thread, time)
        forward = self._forward[self._linked.innermost(thread, time)]
        rows = np.flatnonzero(forward >= 0)
        row = forward[rows]
        on, start = self._raw.ranges.thread[row], self._raw.ranges.start[row]
        found = self._python_at(on, start)
        python[rows] = np.where(python[rows] != EMPTY, python[rows], found)
        outer, same = self.ranges.around(row), on == thread[rows]
        ranges[rows] = self.joiner.join_below(outer, ranges[rows], same, FORWARD)
        return python.astype(np.int32), ranges

    def _python_at(self, thread: Column, time: I8) -> I4:
        """The stack of the innermost function, else that of the innermost operator with one."""
        found = self._paths[self._functions.innermost(thread, time)]
        if not len(self._recorded):
            return found
        recorded = self._python[self._recorded.innermost(thread, time)]
        return np.where(found != EMPTY, found, recorded)

    def of_captures(self, captured: Captures) -> tuple[I4, I4]:
        """Python and range stacks of the code that captured graph nodes, marked as such."""
        known = self._raw.paths
        python = known.nodes.python if known else np.zeros_like(self._raw.nodes.thread)
        python = np.append(python, np.int32(EMPTY))[captured.row]
        if known is None or known.calls is None:
            ranges = self.ranges.open_at(captured.thread, captured.time)
        else:
            ranges = np.append(known.nodes.nvtx, np.int32(EMPTY))[captured.row]
        return self.joiner.mark(python, CAPTURED), self.joiner.mark(ranges, CAPTURED)

    def placed(self, work: RawActivities, rows: I8) -> I4:
        """The GPU's own ranges open on its stream when each of ``rows`` of ``work`` started."""
        ranges = self._raw.gpu_ranges
        lanes = pack(
            [
                np.append(ranges.device, work.device[rows]),
                np.append(ranges.stream, work.stream[rows]),
            ]
        )
        lane, wanted = _numbered(lanes[: len(ranges.start)], lanes[len(ranges.start) :])
        on = RawRanges(ranges.start, ranges.end, lane, ranges.frame)
        index = RangeIndex(on, self._raw.last_time, self._raw.stacks)
        return self.joiner.mark(index.open_at(wanted, work.start[rows]), PLACED)


class _RangeSubset:
    """Some of a trace's ranges: which of them was opened last of those open."""

    def __init__(self, raw: RawTrace, chosen: Bool) -> None:
        rows, ranges = np.flatnonzero(chosen), raw.ranges
        end = close_open_ends(ranges.end[rows], raw.last_time)
        self._rows = np.append(rows, -1)
        self._moments = OpenIntervals(ranges.thread[rows], ranges.start[rows], end)

    def __len__(self) -> int:
        return len(self._rows) - 1

    def innermost(self, thread: Column, time: I8) -> I8:
        """Rows of the ranges, -1 where none of them is open."""
        if not len(self):
            return np.full(len(thread), -1)
        return self._rows[self._moments.innermost(thread, time)]


def _no_operators(ranges: RawRanges) -> RawOperators:
    nothing = np.full(len(ranges.start), NONE)
    return RawOperators(np.full(len(nothing), EMPTY, np.int32), nothing)


def _numbered(known: I8, wanted: I8) -> tuple[I4, I4]:
    """Small numbers for the ``known`` keys and for ``wanted`` ones, -1 for those not known."""
    keys = np.unique(known)
    place = np.searchsorted(keys, wanted)
    found = np.where(np.append(keys, -1)[place] == wanted, place, -1)
    return np.searchsorted(keys, known).astype(np.int32), found.astype(np.int32)
