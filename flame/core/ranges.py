"""Which NVTX ranges are open on a thread at a moment, as stacks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from flame.core.columns import I4, I8, Bool, Column, pack
from flame.core.nesting import MAX_DEPTH, Nesting, nest
from flame.core.raw import OPEN, Ranges
from flame.core.stacks import EMPTY, StackBuilder


class RangeIndex:
    """Ranges of all threads, nested. A range is open from its start to its end, both included.

    Nesting is worked out on half-open intervals, in which ranges that merely touch do not cross;
    the moments at which a range ends are looked up again, as the moment before.
    """

    def __init__(self, ranges: Ranges, capture_end: int, stacks: StackBuilder) -> None:
        self._ranges = ranges
        self._stacks = stacks
        self._thread, self._end = np.maximum(ranges.thread, 0), _ends(ranges, capture_end)
        self.nesting = nest(self._thread, ranges.start, np.maximum(self._end, ranges.start))
        self._paths = _paths(self.nesting, ranges.frame, stacks)

    def open_at(self, thread: Column, time: I8) -> I4:
        """The stack of ranges open on ``thread`` (-1: unknown, no stack) at ``time``, i4[n]."""
        on = np.maximum(thread, 0)
        found = self._paths[self.nesting.innermost(on, time)]
        rows = np.flatnonzero(self._any_at(self._end, on, time))
        found[rows] = self._paths[self.nesting.innermost(on[rows], time[rows] - 1)]
        rows = rows[self._any_at(self._ranges.start, on[rows], time[rows])]
        for row in rows.tolist():
            found[row] = self._started(int(found[row]), int(on[row]), int(time[row]))
        return np.where(thread >= 0, found, EMPTY).astype(np.int32)

    def _any_at(self, edges: I8, thread: Column, time: I8) -> Bool:
        """Whether some range of ``thread`` has its edge (start or end) exactly at ``time``."""
        keys = pack([np.concatenate([self._thread, thread]), np.concatenate([edges, time])])
        there, asked = np.sort(keys[: len(edges)]), keys[len(edges) :]
        place = np.searchsorted(there, asked)
        found: Bool = np.append(there, -1)[place] == asked
        return found

    def _started(self, stack: int, thread: int, time: int) -> int:
        """``stack`` with the ranges on top that start at ``time``."""
        order, threads, starts = self._by_start
        low, high = np.searchsorted(threads, [thread, thread + 1])
        first, last = np.searchsorted(starts[low:high], [time, time + 1])
        starting = order[low + first : low + last]
        closed = starting[self._end[starting] >= time]
        return self._stacks.path(self._ranges.frame[closed].tolist(), stack)

    @cached_property
    def _by_start(self) -> tuple[I8, Column, I8]:
        """Ranges ordered by (thread, start, longest first): their rows, threads and starts."""
        order = np.lexsort((-self._end, self._ranges.start, self._thread))
        return order, self._thread[order], self._ranges.start[order]


@dataclass(frozen=True, eq=False)
class RangePieces:
    """Ranges over time, cut into pieces that nest; ordered by (thread, depth, start).

    ``thread``, ``depth`` (0: in no other one), ``frame``, ``parent`` (the piece around it, -1
    without one) are i4[n]; ``start`` and ``end`` (exclusive) i8[n], ns. Ranges without length
    and those of unknown threads are left out.
    """

    thread: I4
    depth: I4
    frame: I4
    start: I8
    end: I8
    parent: I4

    def __len__(self) -> int:
        return len(self.start)


def range_pieces(ranges: Ranges, capture_end: int) -> RangePieces:
    """The pieces of ``ranges``, of which those still open last until ``capture_end``."""
    thread, end = np.maximum(ranges.thread, 0), _ends(ranges, capture_end)
    nesting = nest(thread, ranges.start, np.maximum(end, ranges.start))
    on = thread[nesting.source].astype(np.int64)
    order = np.argsort(on * MAX_DEPTH + nesting.depth, kind="stable")
    place = np.empty(len(order) + 1, np.int32)
    place[order], place[-1] = np.arange(len(order)), -1
    return RangePieces(
        thread=on[order].astype(np.int32),
        depth=nesting.depth[order].astype(np.int32),
        frame=ranges.frame[nesting.source[order]],
        start=nesting.start[order],
        end=nesting.end[order],
        parent=place[nesting.parent[order]],
    )


def _ends(ranges: Ranges, capture_end: int) -> I8:
    """When each range ends, ns; before it starts if its thread is unknown."""
    end = np.where(ranges.end == OPEN, capture_end, ranges.end)
    return np.where(ranges.thread >= 0, end, ranges.start - 1)


def _paths(nesting: Nesting, frame: I4, stacks: StackBuilder) -> I4:
    """The stack each piece stands for, itself included; the last entry, "no piece", is empty."""
    path = np.zeros(len(nesting) + 1, np.int32)
    for pieces in nesting.by_depth():
        path[pieces] = stacks.extend(path[nesting.parent[pieces]], frame[nesting.source[pieces]])
    return path
