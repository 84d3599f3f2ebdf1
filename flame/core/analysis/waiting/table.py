"""Make the table of idle time: a row per piece, with what its thread did then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from flame.core.analysis.utilization import Utilization, utilizations
from flame.core.analysis.waiting.between_launches import LaunchFrames
from flame.core.attribution.nesting import MAX_MIXED_DEPTH
from flame.core.attribution.thread_pieces import innermost_pieces, nested_pieces
from flame.core.columns import I4, I8, Bool, Column
from flame.core.kept_results import kept
from flame.core.model.activities import NONE, Activities, ThreadPieces, off_gpu_columns
from flame.core.model.calls import IdleCause
from flame.core.model.frames import NO_LAUNCH, FrameTable, Kind
from flame.core.model.profile import Profile
from flame.core.model.stack_joins import join_stacks
from flame.core.model.stacks import EMPTY, StackBuilder
from flame.core.projection.filters import Filter
from flame.core.timeline.idle_parts import IdleParts, idle_parts
from flame.core.timeline.lane_intervals import LaneIntervals, Pieces

_OF_LAUNCH = (IdleCause.IN_LAUNCH, IdleCause.AFTER_LAUNCH, IdleCause.UNKNOWN)
"""Causes in which the API call is the launch of what came then."""


def waiting_table(profile: Profile, where: Sequence[Filter] = ()) -> Activities:
    """Make the table of idle time, within what filters ``where`` by time and step choose.

    A row is a piece of the idle time of a GPU that has one `IdleCause`. Its thread is the one that
    launched what ended the gap, its API call the one that was open, or the launch itself. Ranges,
    and Python functions on threads that have some with times, are those that the thread was in
    then; those of ``AFTER_LAUNCH`` at the launch, for the thread did other things since. Without
    such functions the Python frames are those of the launch in it and after it, and before it
    those that it has in common with the launch before; so are native frames. Kind, frame and
    stream are those of the activity that ended the gap. Where its launch is not known the stacks
    are its own.
    """
    return _within(_all_waiting(profile), utilizations(profile, tuple(where)))


@kept
def _all_waiting(profile: Profile) -> Activities:
    """The table of all idle time, from the first recorded event to the last."""
    return _table(profile, _IdleTime.concatenate(map(_of_gpu, idle_parts(profile))))


class _IdleTime(NamedTuple):
    """Pieces of idle time; ``after`` is the row of the activity that came then, or -1.

    ``call`` is the piece of `Profile.calls` that was open, -1 without one.
    """

    device: Column
    after: Column
    cause: Column
    call: Column
    low: I8
    high: I8

    @classmethod
    def concatenate(cls, parts: Iterable[_IdleTime]) -> _IdleTime:
        """Put ``parts`` behind each other."""
        none = np.zeros(0, np.int64)
        every = [cls(none, none, none, none, none, none), *parts]
        return cls(*map(np.concatenate, zip(*every, strict=True)))

    def take(self, rows: I8, low: I8, high: I8) -> _IdleTime:
        """Choose ``rows``, which last from ``low`` to ``high``."""
        device, after, cause, call = (column[rows] for column in self[:4])
        return _IdleTime(device, after, cause, call, low, high)


def _of_gpu(parts: IdleParts) -> _IdleTime:
    device = np.full(len(parts.low), parts.device, np.int32)
    after = parts.after[parts.gap]
    return _IdleTime(device, after, parts.cause, parts.call, parts.low, parts.high)


_ROW_COLUMNS = (
    *("kind", "process", "thread", "device", "stream"),
    *("python", "native", "launch", "nvtx", "nested", "frame", "cause"),
)


def _within(table: Activities, gpus: Iterable[Utilization]) -> Activities:
    """The part of ``table`` that lies in the windows of ``gpus``."""
    none = np.zeros(0, np.int64)
    chosen = [LaneIntervals.union(none, none, none)]
    for each in sorted(gpus, key=lambda one: one.device):  # the unknown one is -1
        lane = np.full(len(each.windows), each.device + 1)
        chosen.append(LaneIntervals.union(lane, each.windows.low, each.windows.high))
    columns = zip(*((one.lane, one.begin, one.end) for one in chosen), strict=True)
    windows = LaneIntervals(*map(np.concatenate, columns))
    inside = windows.cut(table.device + 1, table.start, table.start + table.duration)
    inside = inside.where(inside.by >= 0)
    taken = {
        name: getattr(table, name)[inside.source]
        for name in _ROW_COLUMNS
        if getattr(table, name) is not None
    }
    taken |= {"start": inside.begin, "duration": inside.lengths}
    columns_of_all = off_gpu_columns(len(inside.source)) | taken
    return Activities(**columns_of_all, stacks=table.stacks)


# What threads were in


class _OpenFrames(NamedTuple):
    """What was innermost on threads, of functions and ranges nested together, and its stacks.

    ``piece`` i4[intervals] are places in ``python``, ``nvtx`` and ``nested`` (i4 each), of which
    the last are empty. ``has_functions`` tells that of each thread, bool[threads + 1].
    """

    intervals: LaneIntervals
    piece: I4
    python: I4
    nvtx: I4
    nested: I4
    has_functions: Bool

    def stacks(self, by: I8) -> tuple[I4, I4, I4]:
        """Look up (python, nvtx, nested) in the intervals ``by``, -1 for none."""
        piece = np.append(self.piece, NONE)[by]
        return self.python[piece], self.nvtx[piece], self.nested[piece]


def _open_frames(profile: Profile, stacks: StackBuilder) -> _OpenFrames:
    """Nest what the threads of ``profile`` were in; what has equal times is in a function first."""
    mixed, is_function = _mixed(profile)
    of_stack = np.full((3, len(mixed) + 1), EMPTY, np.int32)
    kinds = (is_function, ~is_function, np.ones(len(mixed), bool))
    for rows in _by_depth(mixed.depth):
        of_stack[:, rows] = of_stack[:, mixed.parent[rows]]
        for column, chosen in zip(of_stack, kinds, strict=True):
            inner = rows[chosen[rows]]
            column[inner] = stacks.extend(column[inner], mixed.frame[inner])
    inner = innermost_pieces(mixed) if len(mixed) else mixed
    has_functions = np.zeros(len(profile.threads) + 1, bool)
    has_functions[mixed.thread[is_function]] = True
    intervals = LaneIntervals(inner.thread.astype(np.int64), inner.start, inner.end)
    python, nvtx, nested = of_stack
    return _OpenFrames(intervals, inner.parent, python, nvtx, nested, has_functions)


def _mixed(profile: Profile) -> tuple[ThreadPieces, Bool]:
    """Nest functions and ranges together; and which of the pieces are functions, bool[n]."""
    tables = [table for table in (profile.functions, profile.ranges) if table]
    if len(tables) == 1:  # nested as it is
        return tables[0], np.full(len(tables[0]), tables[0] is profile.functions)
    none = np.zeros(0, np.int64)
    thread, start, end, frame = (
        np.concatenate([none, *(getattr(table, name) for table in tables)])
        for name in ("thread", "start", "end", "frame")
    )
    place = np.arange(len(thread), dtype=np.int32)
    mixed = nested_pieces(thread, start, end, place, MAX_MIXED_DEPTH)
    is_function = mixed.frame < (len(tables[0]) if tables else 0)
    return replace(mixed, frame=frame[mixed.frame].astype(np.int32)), is_function


def _by_depth(depth: I4) -> Iterator[I8]:
    """The pieces of depth 0, 1, …."""
    order = np.argsort(depth, kind="stable")
    for low, high in pairwise([0, *np.cumsum(np.bincount(depth)).tolist()]):
        yield order[low:high]


# The table


def _table(profile: Profile, idle: _IdleTime) -> Activities:
    work, stacks = profile.activities, StackBuilder.from_table(profile.activities.stacks)
    frames = _open_frames(profile, stacks)
    found = _cut(profile, idle, frames.intervals)
    idle = idle.take(found.source, found.begin, found.end)
    row, known = np.maximum(idle.after, 0), idle.after >= 0
    launched = known & work.launched[row]
    thread = np.where(known, work.thread[row], NONE)
    timed = launched & frames.has_functions[thread]
    python, nvtx, nested = frames.stacks(found.by)
    recorded, native = _launch_frames(profile, idle, launched)
    python = np.where(timed, python, recorded)
    own_nvtx = work.nvtx if work.own_nvtx is None else work.own_nvtx
    of_work = np.where(known, own_nvtx[row], np.int32(EMPTY))
    nvtx = np.where(launched, nvtx, of_work)
    columns = {
        "kind": np.where(known, work.kind[row], Kind.LAUNCH).astype(np.uint8),
        "start": idle.low,
        "duration": idle.high - idle.low,
        "process": np.where(known, work.process[row], NONE).astype(np.int32),
        "thread": thread.astype(np.int32),
        "device": idle.device.astype(np.int32),
        "stream": np.where(known, work.stream[row], NONE).astype(np.int32),
        "python": python,
        "native": native,
        "launch": _calls(profile, idle),
        "nvtx": nvtx,
        "frame": np.where(known, work.frame[row], NONE).astype(np.int32),
        "cause": _cause_frames(profile.frames)[idle.cause],
        "is_cut": True,
    }
    if frames.has_functions.any():
        columns["nested"] = np.where(timed, nested, join_stacks(stacks, python, nvtx))
    return Activities(**off_gpu_columns(len(row)) | columns, stacks=stacks.build())


def _cut(profile: Profile, idle: _IdleTime, frames: LaneIntervals) -> Pieces:
    """Cut ``idle`` time by what the thread was in; what was launched before is looked up there."""
    work, row = profile.activities, np.maximum(idle.after, 0)
    launched = (idle.after >= 0) & work.launched[row]
    before = launched & (idle.cause == IdleCause.AFTER_LAUNCH)
    low = np.where(before, work.launch_start[row], idle.low)
    high = np.where(before, low + 1, idle.high)
    found = frames.cut(np.where(launched, work.thread[row], NONE), low, high)
    moved = before[found.source]
    begin = np.where(moved, idle.low[found.source], found.begin)
    end = np.where(moved, idle.high[found.source], found.end)
    return found._replace(begin=begin, end=end)


def _launch_frames(profile: Profile, idle: _IdleTime, launched: Bool) -> tuple[I4, I4]:
    """The frames recorded with launches, (python, native), that the thread was in."""
    work = profile.activities
    frames = LaunchFrames.of(work, profile.frames)
    python, native = frames.at(idle.after)
    rows = np.flatnonzero(launched & ~np.isin(idle.cause, _OF_LAUNCH))
    after = idle.after[rows]
    python[rows], native[rows] = frames.before(after, work.thread[after], idle.low[rows])
    return python, native


def _calls(profile: Profile, idle: _IdleTime) -> I4:
    """The frame of the API call that was open, or of the launch; -1 in no call."""
    row, calls = np.maximum(idle.after, 0), profile.calls
    of_launch = np.isin(idle.cause, _OF_LAUNCH)
    frame = np.where(of_launch, profile.activities.launch[row], NONE)
    if (idle.after < 0).any():
        frame[idle.after < 0] = _frames_of(profile.frames, Kind.LAUNCH).get(NO_LAUNCH, NONE)
    if calls is not None and len(calls):
        frame = np.where(idle.call >= 0, calls.frame[idle.call], frame)
    return frame.astype(np.int32)


def _cause_frames(frames: FrameTable) -> I4:
    """The frame of each `IdleCause`, i4[causes]."""
    known = _frames_of(frames, Kind.CAUSE)
    return np.array([known.get(cause.title, NONE) for cause in IdleCause], np.int32)


def _frames_of(frames: FrameTable, kind: Kind) -> dict[str, int]:
    """The frames of a kind, by name."""
    return {frames[at].name: at for at in np.flatnonzero(frames.kind == kind).tolist()}
