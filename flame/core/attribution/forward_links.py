"""Find the forward operators of what a backward pass launched."""

from __future__ import annotations

import numpy as np

from flame.core.attribution.open_at import OpenIntervals
from flame.core.columns import I8, Bool, Column
from flame.core.model.activities import NONE
from flame.core.model.raw import RawRanges, close_open_ends


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
