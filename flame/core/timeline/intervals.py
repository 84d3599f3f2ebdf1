"""A trace over time: rows of intervals for threads and streams, in columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from flame.core.columns import I4, I8, U1, Bool, Column, pack, runs, sum_by, unique_rows
from flame.core.model.activities import Activities, RangePieces, has_times
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile

MOST_LEVELS = 8
"""Rows for the activities of one stream that lie within others; deeper ones share the last."""


_LONGEST_SOURCE = 10


class Window(NamedTuple):
    """A stretch of time, [low, high), in ns since the beginning of the trace."""

    low: int
    high: int

    @property
    def length(self) -> int:
        """Nanoseconds."""
        return self.high - self.low


class Lane(NamedTuple):
    """One row: intervals [first, last) of a timeline.

    ``label`` says whose it is; it is the same in all lanes of a thread or stream, of which
    ``level`` 0 is the outermost. ``ranges``: ranges of a thread, else work on a GPU, or samples.
    """

    label: str
    level: int
    first: int
    last: int
    ranges: bool


@dataclass(frozen=True, eq=False)
class Busy:
    """Stretches that do not overlap: starts (i8[n]), and lengths summed from anywhere (i8[n+1])."""

    low: I8
    before: I8

    @classmethod
    def between(cls, low: I8, high: I8) -> Busy:
        """The stretches from ``low`` to ``high``."""
        return cls(low, np.concatenate([[0], np.cumsum(high - low)]))

    def until(self, time: int) -> int:
        """How much lies before ``time``, ns."""
        at = int(np.searchsorted(self.low, time, "right")) - 1
        if at < 0:
            return 0
        length = int(self.before[at + 1] - self.before[at])
        left = int(self.before[at] - self.before[0])
        return left + min(time - int(self.low[at]), length)

    def share(self, window: Window) -> float:
        """The part of ``window`` that is covered, 0..1."""
        return (self.until(window.high) - self.until(window.low)) / max(window.length, 1)


@dataclass(frozen=True, eq=False)
class Timeline:
    """All ranges and activities as intervals, lane by lane and ordered by start in each.

    Of stacks that a file has resolved the innermost frames, by thread.

    | column | dtype | meaning |
    |---|---|---|
    | source | i4 | row of the activities, or of the range pieces where ``kind`` is NVTX |
    | frame | i4 | frame id |
    | kind | u1 | `Kind` of the frame |
    | low | i8 | where it becomes visible: its start, or where earlier ones of its lane end |
    | before | i8 | n+1: summed visible lengths of all intervals to the left |

    Visible parts do not overlap within a lane. Times are ns since ``origin``, the first
    recorded time that there are rows of; the whole trace is ``whole``. ``devices`` says when each
    GPU runs anything, by its name.
    """

    origin: int
    whole: Window
    lanes: tuple[Lane, ...]
    source: I4
    frame: I4
    kind: U1
    low: I8
    before: I8
    devices: tuple[tuple[str, Busy], ...]
    table: Activities = field(repr=False)
    pieces: RangePieces | None = field(repr=False)

    def __len__(self) -> int:
        return len(self.low)

    def high(self, item: int) -> int:
        """Where the visible part of ``item`` ends."""
        return int(self.low[item] + self.before[item + 1] - self.before[item])

    def window(self, item: int) -> Window:
        """From the recorded start of ``item`` to its end."""
        row = int(self.source[item])
        if self.kind[item] == Kind.NVTX and self.pieces is not None:
            start, end = int(self.pieces.start[row]), int(self.pieces.end[row])
        else:
            start = int(self.table.start[row])
            end = start + int(self.table.duration[row])
        return Window(start - self.origin, end - self.origin)

    def busy(self, lane: Lane) -> Busy:
        """When ``lane`` is busy."""
        first, last = lane.first, lane.last
        return Busy(self.low[first:last], self.before[first : last + 1])

    def shown_in(self, lane: Lane, window: Window) -> bool:
        """Whether any visible part in ``lane`` lies in ``window``."""
        last = lane.first + int(np.searchsorted(self.low[lane.first : lane.last], window.high))
        return last > lane.first and self.high(last - 1) > window.low

    def lane_of(self, item: int) -> int:
        """The number of the lane that ``item`` is in."""
        return next(
            number for number, lane in enumerate(self.lanes) if lane.first <= item < lane.last
        )


class _Part(NamedTuple):
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
        whole=Window(0, max(profile.end - profile.rows_begin, 1)),
        lanes=tuple(lane for part in parts for lane in part.lanes),
        source=np.concatenate([part.source for part in parts]).astype(np.int32),
        frame=np.concatenate([part.frame for part in parts]).astype(np.int32),
        kind=np.concatenate([part.kind for part in parts]).astype(np.uint8),
        low=low,
        before=Busy.between(low, high).before,
        devices=tuple(_devices(profile)),
        table=table,
        pieces=pieces,
    )


# Ranges


def _range_part(profile: Profile, pieces: RangePieces) -> _Part:
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
    return _Part(source, pieces.frame[source], kind, start, end, lanes)


def _ranks(profile: Profile) -> I8:
    """Place of every thread when those that launched the most GPU time come first, i8[threads]."""
    table, size = profile.activities, len(profile.threads)
    known = table.thread >= 0
    launched = sum_by(table.thread[known], table.duration[known], size)
    rank = np.empty(size, np.int64)
    rank[np.argsort(-launched, kind="stable")] = np.arange(size)
    return rank


def _thread_label(profile: Profile, thread: int) -> str:
    if thread < 0:
        return "samples"
    one = profile.threads[thread]
    name = one.name or (profile.processes[one.process].name if one.process >= 0 else "")
    source = profile.processes[one.process].source if one.process >= 0 else 0
    return f"{_source_label(profile, source)}{name or 'thread'} [{one.tid}]"


def _source_label(profile: Profile, source: int) -> str:
    """What comes before labels of one of several files: the end of its own, which tells most."""
    if len(profile.sources) < 2:
        return ""
    label = profile.sources[source].label
    return f"{label} " if len(label) <= _LONGEST_SOURCE else f"…{label[1 - _LONGEST_SOURCE :]} "


def _bounds(columns: list[Column]) -> Iterator[tuple[int, int]]:
    """The stretches [first, last) of rows in which none of ``columns`` changes."""
    starts = runs(pack(columns)).tolist()
    yield from zip(starts, [*starts[1:], len(columns[0])], strict=False)


# Work on GPUs


def _work_part(profile: Profile, offset: int) -> _Part:
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
    reach = _reach([stream, level], end)
    low = np.maximum(start, reach)
    shared = _shared_devices(table)
    lanes = [
        Lane(
            _work_label(profile, int(rows[a]), shared),
            int(level[a]),
            a + offset,
            b + offset,
            False,
        )
        for a, b in _bounds([stream, level])
    ]
    frame, kind = _drawn(profile, rows)
    return _Part(rows, frame, kind, low, np.maximum(end, low), lanes)


def _drawn(profile: Profile, rows: I8) -> tuple[Column, Column]:
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
    label = f"{_device_label(profile, device)} stream {stream if stream >= 0 else '?'}"
    known = shared[device] and process >= 0
    return f"{label} [{profile.processes[process].pid}]" if known else label


def _device_label(profile: Profile, device: int) -> str:
    if device < 0:
        return "GPU"
    one = profile.devices[device]
    return f"{_source_label(profile, one.source)}GPU{one.id}"


def _devices(profile: Profile) -> Iterator[tuple[str, Busy]]:
    if profile.resolved:
        return
    table = profile.activities
    has_time = has_times(table)
    for device in np.unique(table.device).tolist():
        rows = np.flatnonzero((table.device == device) & has_time)
        start = table.start[rows] - profile.rows_begin
        yield _device_label(profile, device), _union(start, start + table.duration[rows])


def _union(start: I8, end: I8) -> Busy:
    """The stretches in which any of the intervals is open."""
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    reach = _reach([np.zeros(len(end), np.int8)], end)
    first = np.flatnonzero(start > reach)
    stop = np.append(reach[first[1:]], np.max(end, initial=0))[: len(first)]
    return Busy.between(start[first], stop)
