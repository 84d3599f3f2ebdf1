"""Lay a trace out over time: lanes of intervals for threads and streams, in columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from flame.core.columns import I4, I8, U1, Bool, Column, order_by, pack, unique_rows
from flame.core.gpu_metrics.samples import SampledMetric
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import Activities, has_times
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.model.threads.states import StateSpans
from flame.core.timeline.busy_time import BusyTime, TimeWindow
from flame.core.timeline.devices import device_label, device_times
from flame.core.timeline.host_lanes import Pieces, host_columns, host_pieces
from flame.core.timeline.lanes import (
    STATES,
    Lane,
    LaneColumns,
    Track,
    bounds,
    no_columns,
    thread_label,
)
from flame.core.timeline.memory_lanes import MemoryLane, memory_columns, memory_lanes

MOST_LEVELS = 8
"""Lanes for the activities of one stream that lie within others; deeper ones share the last."""


@dataclass(frozen=True, eq=False)
class Timeline:
    """Hold what threads and GPUs did as intervals, lane by lane and ordered by start in each.

    In files of ready-made stacks the intervals are the innermost frames, by thread.

    | column | dtype | meaning |
    |---|---|---|
    | track | u1 | `Track` of its lane |
    | source | i4 | row of its track's table: ``table``, ``states``, ``memory`` or ``pieces`` |
    | frame | i4 | frame id; -1 of states and memory, which are no frames |
    | kind | u1 | `Kind` of the frame, of API calls `CallClass`, of states `StateKind` |
    | low | i8 | where it becomes visible: its start, or where earlier intervals of its lane end |
    | before | i8 | n+1: summed visible lengths of all intervals to the left |

    Visible parts do not overlap within a lane. Times are ns since ``origin``, the first
    recorded time that there are rows of; the whole trace is ``whole``. ``devices`` says when each
    GPU runs anything, by its name; ``memory`` how much lived on each of which that is known, and
    ``metrics`` what was sampled, on the trace's clock.
    """

    origin: int
    whole: TimeWindow
    lanes: tuple[Lane, ...]
    track: U1
    source: I4
    frame: I4
    kind: U1
    low: I8
    before: I8
    devices: tuple[tuple[str, BusyTime], ...]
    table: Activities = field(repr=False)
    pieces: Pieces = field(repr=False)
    memory: tuple[MemoryLane, ...] = field(repr=False, default=())
    states: StateSpans | None = field(repr=False, default=None)
    metrics: tuple[SampledMetric, ...] = field(repr=False, default=())

    def __len__(self) -> int:
        return len(self.low)

    def high(self, item: int) -> int:
        """Get the time where the visible part of ``item`` ends."""
        return int(self.low[item] + self.before[item + 1] - self.before[item])

    def window(self, item: int) -> TimeWindow:
        """Make the window from the recorded start of ``item`` to its end."""
        row, track = int(self.source[item]), Track(int(self.track[item]))
        if track == Track.MEMORY:
            return TimeWindow(int(self.low[item]), self.high(item))
        if track == Track.WORK:
            start = int(self.table.start[row])
            end = start + int(self.table.duration[row])
        else:
            spans = self._states if track in STATES else self.pieces[track]
            start, end = int(spans.start[row]), int(spans.end[row])
        return TimeWindow(start - self.origin, end - self.origin)

    def name(self, item: int, text: Sequence[str]) -> str:
        """Name ``item``, a frame by its ``text``, and what is no frame as the trace does."""
        frame = int(self.frame[item])
        if frame >= 0:
            return text[frame]
        if self.track[item] == Track.MEMORY:
            return "live memory"
        return self._states.names[int(self._states.name[self.source[item]])]

    @property
    def _states(self) -> StateSpans:
        assert self.states is not None
        return self.states

    def memory_of(self, lane: Lane) -> MemoryLane:
        """Get what lived on the GPU of ``lane``, which is of that track."""
        return next(each for each in self.memory if each.device == lane.owner)

    def metric_of(self, lane: Lane) -> SampledMetric:
        """Get what ``lane`` shows, which is of that track."""
        return self.metrics[lane.owner]

    def busy(self, lane: Lane) -> BusyTime:
        """Get the stretches in which ``lane`` is busy."""
        first, last = lane.first, lane.last
        return BusyTime(self.low[first:last], self.before[first : last + 1])

    def is_visible_in(self, lane: Lane, window: TimeWindow) -> bool:
        """Tell whether any visible part in ``lane`` lies in ``window``."""
        last = lane.first + int(np.searchsorted(self.low[lane.first : lane.last], window.high))
        return last > lane.first and self.high(last - 1) > window.low

    def items_in(self, lane: Lane, window: TimeWindow) -> I8:
        """Find the intervals of ``lane`` of which any visible part lies in ``window``."""
        low = self.low[lane.first : lane.last]
        first, last = (int(np.searchsorted(low, time)) for time in window)
        if first and self.high(lane.first + first - 1) > window.low:
            first -= 1
        return np.arange(lane.first + first, lane.first + last)

    def lengths_within(self, items: I8, window: TimeWindow) -> I8:
        """Measure the visible part of each of ``items`` that lies in ``window``, ns."""
        low = self.low[items]
        high = low + self.before[items + 1] - self.before[items]
        inside: I8 = np.minimum(high, window.high) - np.maximum(low, window.low)
        return np.maximum(inside, 0)

    def lane_of(self, item: int) -> int:
        """Find the number of the lane that ``item`` is in."""
        return next(
            number for number, lane in enumerate(self.lanes) if lane.first <= item < lane.last
        )


def timeline(profile: Profile) -> Timeline:
    """Lay ``profile`` out over time: threads that launched the most GPU time first, then GPUs."""
    pieces = host_pieces(profile)
    host = host_columns(profile, pieces)
    work = _work_columns(profile, len(host.low))
    memory = memory_lanes(profile)
    whole = TimeWindow(0, max(profile.end - profile.rows_begin + bool(memory), 1))
    offset = len(host.low) + len(work.low)
    parts = (host, work, memory_columns(profile, memory, whole.high, offset))
    low = np.concatenate([part.low for part in parts])
    high = np.concatenate([part.high for part in parts])
    lanes = tuple(lane for part in parts for lane in part.lanes)
    sizes = [lane.last - lane.first for lane in lanes]
    return Timeline(
        origin=profile.rows_begin,
        whole=whole,
        lanes=lanes,
        track=np.repeat(np.array([lane.track for lane in lanes], np.uint8), sizes),
        source=np.concatenate([part.source for part in parts]).astype(np.int32),
        frame=np.concatenate([part.frame for part in parts]).astype(np.int32),
        kind=np.concatenate([part.kind for part in parts]).astype(np.uint8),
        low=low,
        before=BusyTime.between(low, high).before,
        devices=tuple((each.label, each.busy) for each in device_times(profile)),
        table=profile.activities,
        pieces=pieces,
        memory=memory,
    )


# Work on GPUs


def _work_columns(profile: Profile, offset: int) -> LaneColumns:
    """Activities by GPU, process and stream; ``offset`` is where they begin in the timeline."""
    table = profile.activities
    if profile.resolved and profile.memory is not None:
        return no_columns()  # allocations: how many lived at a time is what matters
    rows = np.flatnonzero(has_times(table))
    on_gpu = [table.device, table.process, table.stream]
    places = [table.thread] if profile.resolved else on_gpu
    stream = pack([place[rows] for place in places])
    order = order_by([table.start[rows], stream])
    rows, stream = rows[order], stream[order]
    start = table.start[rows] - profile.rows_begin
    end = start + table.duration[rows]
    level = nested_levels(stream, start, end)
    if level.any():
        order = order_by([level, stream])
        rows, stream, start, end, level = (c[order] for c in (rows, stream, start, end, level))
    low = np.maximum(start, reach_before([stream, level], end))
    lanes = _work_lanes(profile, rows, stream, level, offset)
    frame, kind = _frames_and_kinds(profile, rows)
    return LaneColumns(rows, frame, kind, low, np.maximum(end, low), lanes)


def _work_lanes(profile: Profile, rows: I8, stream: I8, level: I8, offset: int) -> list[Lane]:
    """Lanes of the activities ``rows``, ordered by ``stream`` and ``level``."""
    table = profile.activities
    shared, owner = _shared_devices(table), table.thread if profile.resolved else table.device
    lanes = []
    for first, last in bounds([stream, level]):
        label = _work_label(profile, int(rows[first]), shared)
        place = (first + offset, last + offset, Track.WORK)
        lanes.append(Lane(label, int(level[first]), *place, int(owner[rows[first]])))
    return lanes


def _frames_and_kinds(profile: Profile, rows: I8) -> tuple[Column, Column]:
    """(frame, kind) of the activities ``rows``; of samples the innermost frame."""
    table = profile.activities
    if not profile.resolved:
        return table.frame[rows], table.kind[rows]
    frame = table.stacks.frame[table.stack[rows]]
    kind = profile.frames.kind[frame]
    # Ranges are pieces of threads; a sample's frame is one of its stack.
    return frame, np.where(kind == Kind.NVTX, Kind.FRAME, kind)


def nested_levels(stream: I8, start: I8, end: I8) -> I8:
    """Level intervals, ordered by stream and start: 0 what outlasts earlier ones, more within."""
    level = np.zeros(len(stream), np.int64)
    rows = np.arange(len(stream))
    for deeper in range(1, MOST_LEVELS):
        within = (end[rows] <= reach_before([stream[rows]], end[rows])) & (end[rows] > start[rows])
        rows = rows[within]
        if not len(rows):
            break
        level[rows] = deeper
    return level


def reach_before(lane: list[Column], end: I8) -> I8:
    """Find the latest end of earlier rows in the same lane; the least there is without any."""
    reach = np.empty(len(end), np.int64)
    for first, last in bounds(lane):
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
        return thread_label(profile, int(profile.activities.thread[row]))
    return _stream_label(profile, row, shared)


def _stream_label(profile: Profile, row: int, shared: Bool) -> str:
    table = profile.activities
    device, stream, process = (
        int(column[row]) for column in (table.device, table.stream, table.process)
    )
    of_files = device >= 0 and profile.devices[device].further and process >= 0
    source = profile.processes[process].source if of_files else None
    label = f"{device_label(profile, device, source)} stream {stream if stream >= 0 else '?'}"
    has_pid = shared[device] and process >= 0
    return f"{label} [{profile.processes[process].pid}]" if has_pid else label
