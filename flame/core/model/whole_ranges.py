"""Put ranges together that were cut where another ended, and sum what was launched in each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from flame.core.columns import I4, I8, unique
from flame.core.model.activities import Activities, ThreadPieces


def launch_times(table: Activities) -> I8:
    """When each row of ``table`` was launched; those without a recorded launch: when they began."""
    times: I8 = np.where(table.launched, table.launch_start, table.start)
    return times


class WholeRanges(NamedTuple):
    """Ranges in the order of pieces, those whole again that were cut where another ended."""

    thread: I4
    frame: I4
    start: I8
    end: I8

    @classmethod
    def of(cls, pieces: ThreadPieces, frames: Sequence[int]) -> WholeRanges:
        """Put ``pieces`` of ``frames`` together, of which one begins where the other ends.

        They differ in depth; ranges that follow each other do not.
        """
        rows = np.flatnonzero(np.isin(pieces.frame, frames))
        keys = (pieces.start[rows], pieces.frame[rows], pieces.thread[rows])
        order = rows[np.lexsort(keys)]
        thread, frame, depth = (
            column[order] for column in (pieces.thread, pieces.frame, pieces.depth)
        )
        start, end = pieces.start[order], pieces.end[order]
        goes_on = (thread[1:] == thread[:-1]) & (frame[1:] == frame[:-1])
        goes_on &= (start[1:] == end[:-1]) & (depth[1:] != depth[:-1])
        first = np.flatnonzero(np.append(True, ~goes_on)[: len(order)])
        last = np.append(first[1:], len(order)) - 1 if len(first) else first
        return cls(thread[first], frame[first], start[first], end[last])


class LaunchedBefore(NamedTuple):
    """Sums of the GPU time launched, by process and time; ``process`` i4[n] and ``time`` i8[n]."""

    process: I4
    time: I8
    sums: I8

    @classmethod
    def of(cls, table: Activities) -> LaunchedBefore:
        """Sum up the durations of ``table``."""
        time = launch_times(table)
        order = np.lexsort((time, table.process))
        sums = np.concatenate([[0], np.cumsum(table.duration[order])])
        return cls(table.process[order], time[order], sums)

    @property
    def total(self) -> int:
        """The GPU time of all processes, ns."""
        return int(self.sums[-1])

    def between(self, process: I4, low: I8, high: I8) -> I8:
        """Sum what each ``process`` launched from ``low`` until before ``high``, i8[n] in ns."""
        sums = np.zeros(len(low), np.int64)
        for one in unique(process).tolist():
            first, last = np.searchsorted(self.process, [one, one + 1]).tolist()
            own, times = np.flatnonzero(process == one), self.time[first:last]
            edges = (np.searchsorted(times, at[own]) + first for at in (high, low))
            until, since = (self.sums[edge] for edge in edges)
            sums[own] = until - since
        return sums
