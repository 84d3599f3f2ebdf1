"""Make Python stacks of recorded function calls: by recorded callers, else by time on a thread."""

from __future__ import annotations

import itertools

import numpy as np

from flame.core.attribution.nesting import MAX_DEPTH
from flame.core.attribution.open_at import OpenIntervals
from flame.core.columns import I4, I8, Bool, Column, pack
from flame.core.model.raw import RawPythonCalls, close_open_ends
from flame.core.model.stacks import EMPTY, StackBuilder


class FunctionIndex:
    """Index function calls of all threads; each caller is as recorded, where time allows it.

    A recorded caller must have started before on the same thread and not have ended before; time
    decides otherwise, which ``contradicted`` counts. ``too_deep`` counts calls left out for
    `MAX_DEPTH`. ``start``, ``end``, ``thread`` and ``frame`` are columns ordered by the calls'
    numbers, so that of calls with equal times the outer comes first.
    """

    def __init__(self, functions: RawPythonCalls, thread_process: I4, capture_end: int) -> None:
        order = np.argsort(functions.call, kind="stable")
        self.start, self.thread = functions.start[order], functions.thread[order]
        self.end = close_open_ends(functions.end[order], capture_end)
        self.frame = functions.frame[order]
        self._open = OpenIntervals(self.thread, self.start, self.end)
        process = np.append(thread_process, np.int32(-1))[self.thread]
        recorded = _recorded_callers(process, functions.call[order], functions.caller[order])
        fits = self._fits(recorded)
        self.contradicted = int((~fits & (recorded != _ABSENT)).sum())
        alone = np.flatnonzero(~fits)
        recorded[alone] = self._enclosing(alone)
        self._caller = recorded
        self._depth = _depth(self._caller)
        self.too_deep = int((self._depth >= MAX_DEPTH).sum())

    def __len__(self) -> int:
        return len(self.start)

    def innermost(self, thread: Column, time: I8) -> I8:
        """Find the call opened last of those open on ``thread`` (-1: unknown), or -1."""
        return self._open.innermost(thread, time)

    def paths(self, stacks: StackBuilder) -> I4:
        """Make the stack of every call, itself included, i4[n + 1]; the last, no call, is empty."""
        path = np.full(len(self) + 1, EMPTY, np.int32)
        order = np.argsort(np.minimum(self._depth, MAX_DEPTH).astype(np.uint16), kind="stable")
        bounds = np.searchsorted(self._depth[order], np.arange(MAX_DEPTH + 1))
        for low, high in itertools.pairwise(bounds[: self._depth.max(initial=-1) + 2]):
            rows = order[low:high]
            path[rows] = stacks.extend(path[self._caller[rows]], self.frame[rows])
        return path[self._shown()]

    def _shown(self) -> I8:
        """Each call, or the innermost of its callers that is not too deep; -1 for no call."""
        shown: I8 = np.append(np.arange(len(self)), -1)
        deep = np.flatnonzero(self._depth >= MAX_DEPTH)
        shown[deep] = self._caller[deep]
        while (self._depth[shown[deep]] >= MAX_DEPTH).any():
            shown = shown[shown]  # twice as far each time
        return shown

    def _fits(self, caller: I8) -> Bool:
        """Where time allows ``caller`` to be the caller."""
        place = np.full(len(self) + 1, -1)
        place[self._open.rows] = np.arange(len(self._open.rows))
        earlier = (place[caller] >= 0) & (place[caller] < place[:-1])
        row = np.maximum(caller, 0)
        same = self.thread[row] == self.thread
        fits: Bool = (caller >= 0) & earlier & same & (self.end[row] >= self.start)
        return fits

    def _enclosing(self, calls: I8) -> I8:
        """The calls around ``calls`` by time, or -1."""
        nesting, rows = self._open.nesting, np.append(self._open.rows, -1)
        own = self._open.first_pieces(len(self))[calls]
        piece = np.append(nesting.parent, -1)[own]
        short = np.flatnonzero((own < 0) & (self.thread[calls] >= 0))  # no time is theirs
        at = calls[short]
        piece[short] = nesting.innermost(self.thread[at], self.start[at])
        enclosing: I8 = rows[np.append(nesting.source, -1)[piece]]
        return enclosing


_ABSENT = -1
_AMBIGUOUS = -2


def _recorded_callers(process: Column, call: I8, caller: I8) -> I8:
    """The row of each call's recorded caller; `_ABSENT`, or `_AMBIGUOUS` for one of several."""
    numbered = np.flatnonzero(call > 0)
    if not len(numbered):
        return np.full(len(call), _ABSENT)
    keys = pack([np.append(process[numbered], process), np.append(call[numbered], caller)])
    have, want = keys[: len(numbered)], keys[len(numbered) :]
    order = np.argsort(have, kind="stable")
    ordered, rows = np.append(have[order], -1), np.append(numbered[order], _ABSENT)
    twice = np.flatnonzero(ordered[:-1] == ordered[1:])
    rows[twice] = _AMBIGUOUS  # the search finds the first of them
    place = np.searchsorted(ordered[:-1], want)
    return np.where((ordered[place] == want) & (caller > 0), rows[place], _ABSENT)


def _depth(caller: I8) -> I8:
    """How many callers each call has, by pointer doubling."""
    above = np.append(caller, -1)
    depth = (above >= 0).astype(np.int64)
    while (above >= 0).any():
        depth, above = depth + depth[above], above[above]
    return depth[:-1]
