"""Lay a trace out over time: lanes of intervals for threads and streams, in columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from flame.core.columns import I4, I8, U1, Bool, Column, pack, run_starts, sum_by, unique_rows
from flame.core.model.activities import Activities, RangePieces, has_times
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.timeline.busy_time import BusyTime, TimeWindow
from flame.core.timeline.devices import device_label, device_times, source_label

MOST_LEVELS = 8
"""Lanes for the activities of one stream that lie within others; deeper ones share the last."""


class Lane(NamedTuple):
    """Bound a lane: intervals [first, last) of a timeline, drawn in a row.

    ``label`` names its thread or stream; it is the same in all lanes of that, of which ``level`` 0
    is the outermost. ``ranges``: ranges of a thread, else work on a GPU, or samples.
    """

    label: str
    level: int
    first: int
    last: int
    ranges: bool


@dataclass(frozen=True, eq=False)
class Timeline:
    """Hold all ranges and activities as intervals, lane by lane and ordered by start in each.

    In files of ready-made stacks the intervals are the innermost frames, by thread.

    | column | dtype | meaning |
    |---|---|---|
    | source | i4 | row of the activities, or of the range pieces where ``kind`` is NVTX |
    | frame | i4 | frame id |
    | kind | u1 | `Kind` of the frame |
    | low | i8 | where it becomes visible: its start, or where earlier intervals of its lane end |
    | before | i8 | n+1: summed visible lengths of all intervals to the left |

    Visible parts do not overlap within a lane. Times are ns since ``origin``, the first
    recorded time that there are rows of; the whole trace is ``whole``. ``devices`` says when each
    GPU runs anything, by its name.
    """

    origin: int
    whole: TimeWindow
    lanes: tuple[Lane, ...]
    source: I4
    frame: I4
    kind: U1
    low: I8
    before: I8
    devices: tuple[tuple[str, BusyTime], ...]
    table: Activities = field(repr=False)
    pieces: RangePieces | None = field(repr=False)

    def __len__(self) -> int:
        return len(self.low)

    def high(self, item: int) -> int:
        """Get the time where the visible part of ``item`` ends."""
        return int(self.low[item] + self.before[item + 1] - self.before[item])

    def window(self, item: int) -> TimeWindow:
        """Make the window from the recorded start of ``item`` to its end."""
        row = int(self.source[item])
        if self.kind[item] == Kind.NVTX and self.pieces is not None:
            start, end = int(self.pieces.start[row]), int(self.pieces.end[row])
        else:
            start = int(self.table.start[row])
            end = start + int(self.table.duration[row])
        return TimeWindow(start - self.origin, end - self.origin)

    def busy(self, lane: Lane) -> BusyTime:
        """Get the stretches in which ``lane`` is busy."""
        first, last = lane.first, lane.last
        return BusyTime(self.low[first:last], self.before[first : last + 1])

    def is_visible_in(self, lane: Lane, window: TimeWindow) -> bool:
        """Tell whether any visible part in ``lane`` lies in ``window``."""
        last = lane.first + int(np.searchsorted(self.low[lane.first : lane.last], window.high))
        return last > lane.first and self.high(last - 1) > window.low

    def lane_of(self, item: int) -> int:
        """Find the number of the lane that ``item`` is in."""
        return next(
            number for number, lane in enumerate(self.lanes) if lane.first <= item < lane.last
        )


class _LaneColumns(NamedTuple):
    """Columns of a timeline before they are put together, and its lanes' labels and levels."""

    source: Column
    frame: Column
    kind: Column
    low: I8
    high: I8
    lanes: list[Lane]


def timeline(profile: Profile) -> Timeline:
    """Lay ``profile`` out over time: threads that launched the most GPU time first, then GPUs."""
    table, pieces = profile.activities, profile.ranges
    ranges = _range_part(profile, pieces) if pieces is not None and len(pieces) else None
    work = _work_part(profile, len(ranges.low) if ranges else 0)
    parts = [ranges, work] if ranges else [work]
    low = np.concatenate([part.low for part in parts])
    high = np.concatenate([part.high for part in parts])
    return Timeline(
        origin=profile.rows_begin,
        whole=TimeWindow(0, max(profile.end - profile.rows_begin, 1)),
        lanes=tuple(lane for part in parts for lane in part.lanes),
        source=np.concatenate([part.source for part in parts]).astype(np.int32),
        frame=np.concatenate([part.frame for part in parts]).astype(np.int32),
        kind=np.concatenate([part.kind for part in parts]).astype(np.uint8),
        low=low,
        before=BusyTime.between(low, high).before,
        devices=tuple((each.label, each.busy) for each in device_times(profile)),
        table=table,
        pieces=pieces,
    )


# Ranges


def _range_part(profile: Profile, pieces: RangePieces) -> _LaneColumns:
    rank = _ranks(profile)[pieces.thread]
    # Pieces are ordered by (thread, depth, start) already.
    source = np.argsort(rank, kind="stable")
    thread, depth = pieces.thread[source], pieces.depth[source]
    lanes = [
        Lane(_thread_label(profile, int(thread[first])), int(depth[first]), first, last, True)
        for first, last in _bounds([thread, depth])
    ]
    start, end = pieces.start[source] - profile.rows_begin, pieces.end[source] - profile.rows_begin
    kind = np.full(len(source), Kind.NVTX)
    return _LaneColumns(source, pieces.frame[source], kind, start, end, lanes)


def _ranks(profile: Profile) -> I8:
    """Place of every thread when those that launched the most GPU time come first, i8[threads]."""
    table, size = profile.activities, len(profile.threads)
    rows = table.thread >= 0
    launched = sum_by(table.thread[rows], table.duration[rows], size)
    rank = np.empty(size, np.int64)
    rank[np.argsort(-launched, kind="stable")] = np.arange(size)
    return rank


def _thread_label(profile: Profile, thread: int) -> str:
    if thread < 0:
        return "samples"
    thread_ = profile.threads[thread]
    process = profile.processes[thread_.process] if thread_.process >= 0 else None
    name = thread_.name or (process.name if process else "")
    source = process.source if process else 0
    return f"{source_label(profile, source)}{name or 'thread'} [{thread_.tid}]"


def _bounds(columns: list[Column]) -> Iterator[tuple[int, int]]:
    """The stretches [first, last) of rows in which none of ``columns`` changes."""
    starts = run_starts(pack(columns)).tolist()
    yield from zip(starts, [*starts[1:], len(columns[0])], strict=False)


# Work on GPUs


def _work_part(profile: Profile, offset: int) -> _LaneColumns:
    """Activities by GPU, process and stream; ``offset`` is where they begin in the timeline."""
    table = profile.activities
    rows = np.flatnonzero(has_times(table))
    on_gpu = [table.device, table.process, table.stream]
    places = [table.thread] if profile.resolved else on_gpu
    stream = pack([place[rows] for place in places])
    order = np.lexsort((table.start[rows], stream))
    rows, stream = rows[order], stream[order]
    start = table.start[rows] - profile.rows_begin
    end = start + table.duration[rows]
    level = _levels(stream, start, end)
    if level.any():
        order = np.lexsort((level, stream))
        rows, stream, start, end, level = (c[order] for c in (rows, stream, start, end, level))
    low = np.maximum(start, _reach([stream, level], end))
    lanes = _work_lanes(profile, rows, stream, level, offset)
    frame, kind = _frames_and_kinds(profile, rows)
    return _LaneColumns(rows, frame, kind, low, np.maximum(end, low), lanes)


def _work_lanes(profile: Profile, rows: I8, stream: I8, level: I8, offset: int) -> list[Lane]:
    """Lanes of the activities ``rows``, ordered by ``stream`` and ``level``."""
    shared = _shared_devices(profile.activities)
    lanes = []
    for first, last in _bounds([stream, level]):
        label = _work_label(profile, int(rows[first]), shared)
        lanes.append(Lane(label, int(level[first]), first + offset, last + offset, False))
    return lanes


def _frames_and_kinds(profile: Profile, rows: I8) -> tuple[Column, Column]:
    """(frame, kind) of the activities ``rows``; of samples the innermost frame."""
    table = profile.activities
    if not profile.resolved:
        return table.frame[rows], table.kind[rows]
    frame = table.stacks.frame[table.stack[rows]]
    kind = profile.frames.kind[frame]
    # What is called a range in a timeline is a piece of `RangePieces`.
    return frame, np.where(kind == Kind.NVTX, Kind.FRAME, kind)


def _levels(stream: I8, start: I8, end: I8) -> I8:
    """0 for activities that outlast earlier ones of their stream, more for those within others."""
    level = np.zeros(len(stream), np.int64)
    rows = np.arange(len(stream))
    for deeper in range(1, MOST_LEVELS):
        within = (end[rows] <= _reach([stream[rows]], end[rows])) & (end[rows] > start[rows])
        rows = rows[within]
        if not len(rows):
            break
        level[rows] = deeper
    return level


def _reach(lane: list[Column], end: I8) -> I8:
    """The latest end of earlier rows in the same lane; the least there is without any."""
    reach = np.empty(len(end), np.int64)
    for first, last in _bounds(lane):
        reach[first] = np.iinfo(np.int64).min
        np.maximum.accumulate(end[first : last - 1], out=reach[first + 1 : last])
    return reach


def _shared_devices(table: Activities) -> Bool:
    """For every device (and, last, the unknown one) whether several processes run on it."""
    pairs, _ = unique_rows([table.device, table.process])
    used = np.bincount(table.device[pairs] + 1, minlength=1)
    return np.roll(used > 1, -1)


def _work_label(profile: Profile, row: int, shared: Bool) -> str:
    if profile.resolved:
        return _thread_label(profile, int(profile.activities.thread[row]))
    return _stream_label(profile, row, shared)


def _stream_label(profile: Profile, row: int, shared: Bool) -> str:
    table = profile.activities
    device, stream, process = (
        int(column[row]) for column in (table.device, table.stream, table.process)
    )
    label = f"{device_label(profile, device)} stream {stream if stream >= 0 else '?'}"
    has_pid = shared[device] and process >= 0
    return f"{label} [{profile.processes[process].pid}]" if has_pid else label
