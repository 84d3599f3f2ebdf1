"""Tell which recorded frames of launches a thread was in: at a launch, and before it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.attribution.nesting import LaneClock, lane_clock
from flame.core.columns import I4, I8, Bool, Column, distinct
from flame.core.model.activities import NONE, Activities
from flame.core.model.frames import FrameTable, Kind
from flame.core.model.stack_joins import count_shared
from flame.core.model.stacks import EMPTY, StackTable


class LaunchFrames(NamedTuple):
    """Hold the stacks of launches: ``python`` and ``native`` (i4 each) by activity.

    They are below no forward operator, without what was open when a graph was captured, and end
    where the API call begins. ``rows`` are the launched activities by thread and time, which is
    ``time`` (i8) on ``clock``.
    """

    stacks: StackTable
    python: I4
    native: I4
    rows: I8
    time: I8
    clock: LaneClock

    @classmethod
    def of(cls, table: Activities, frames: FrameTable) -> LaunchFrames:
        """Find those of ``table``."""
        rows = np.flatnonzero(table.launched & (table.thread >= 0))
        thread, start = table.thread[rows], table.launch_start[rows]
        clock = lane_clock(thread, start, start + 1)
        time = clock.shift(thread, start)
        order = np.argsort(time, kind="stable")
        python = table.python if table.own_python is None else table.own_python
        kept = _until(table.stacks, _is_inner(frames))
        own, native = kept[python], kept[table.native]
        return cls(table.stacks, own, native, rows[order], time[order], clock)

    def at(self, row: Column) -> tuple[I4, I4]:
        """Look up (python, native) at the launch of each activity ``row``; empty of -1."""
        known, row = row >= 0, np.maximum(row, 0)
        python, native = (
            np.where(known, column[row], np.int32(EMPTY)) for column in (self.python, self.native)
        )
        return python, native

    def before(self, row: Column, thread: Column, time: I8) -> tuple[I4, I4]:
        """Find (python, native) at ``time``, at which ``thread`` was on its way to launch ``row``.

        They are the frames that the launch has in common with the one before, empty without one.
        """
        last = self.at(self._last(thread, time))
        python, native = (self._shared(*pair) for pair in zip(last, self.at(row), strict=True))
        return python, native

    def _last(self, thread: Column, time: I8) -> I8:
        """The activity whose launch on ``thread`` began last at ``time`` or before, or -1."""
        if not len(self.rows):
            return np.full(len(time), NONE, np.int64)
        low, high = self.clock.base, self.clock.base + self.clock.span - 1
        at = self.clock.shift(thread, np.clip(time, low, high))
        place = np.searchsorted(self.time, at, "right") - 1
        first = np.searchsorted(self.time, self.clock.shift(thread, np.full(len(time), low)))
        return np.where((place >= first) & (time >= low), self.rows[place], NONE)

    def _shared(self, one: I4, other: I4) -> I4:
        """The outermost frames that two stacks have in common."""
        pairs, place = distinct((one.astype(np.int64) << 32) | other)
        one, other = (pairs >> 32).astype(np.int32), (pairs & 0xFFFFFFFF).astype(np.int32)
        shared = count_shared(self.stacks.paths(one), self.stacks.paths(other))
        while (deeper := self.stacks.depth[other] > shared).any():
            other[deeper] = self.stacks.parent[other[deeper]]
        return other[place]


def _is_inner(frames: FrameTable) -> Bool:
    """Mark the frames of API calls, and those of the capture of a graph, bool[frames]."""
    calls = {frames[at].name for at in np.flatnonzero(frames.kind == Kind.LAUNCH).tolist()}
    marked = np.zeros(len(frames), bool)
    for at in np.flatnonzero(np.isin(frames.kind, (Kind.PYTHON, Kind.NATIVE))).tolist():
        frame = frames[at]
        marked[at] = bool(frame.get("captured")) or (
            frame.kind == Kind.NATIVE and frame.name in calls
        )
    return marked


def _until(stacks: StackTable, marked: Bool) -> I4:
    """The part of each stack above the first of its ``marked`` frames, i4[stacks]."""
    kept = np.arange(len(stacks), dtype=np.int32)
    for rows in stacks.by_depth() if marked.any() else ():
        above = stacks.parent[rows]
        ended = (kept[above] != above) | marked[stacks.frame[rows]]
        kept[rows] = np.where(ended, kept[above], rows)
    return kept
