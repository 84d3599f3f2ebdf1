"""Tell what the host did while a GPU was idle: which calls, ranges and functions were open."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.analysis.utilization import IdleGap
from flame.core.columns import I8, Column, sum_by
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import NONE
from flame.core.model.profile import Profile
from flame.core.timeline.busy_time import TimeWindow
from flame.core.timeline.intervals import Timeline
from flame.core.timeline.lanes import Track


class HostPart(NamedTuple):
    """Say for how long (ns) of a gap ``frame`` was the innermost."""

    frame: int
    length: int


@dataclass(frozen=True)
class GapHost:
    """Say what a thread did in a gap: the one that launched what ran next, or else before.

    ``thread`` is `NONE` where neither launch was recorded. ``parts`` are longest first, of API
    calls the outermost, of ranges and functions the innermost ones; they add up to the time in
    which any was open. A track that the thread has nothing of at all is absent. ``late`` says how
    long after the gap began what ended it was launched (ns, negative: before), None if unknown.
    """

    thread: int
    launched_next: bool
    parts: dict[Track, tuple[HostPart, ...]]
    late: int | None


def gap_host(profile: Profile, timeline: Timeline, gap: IdleGap) -> GapHost:
    """Find what the thread that launched around ``gap`` did in it."""
    thread = _thread(profile, gap.after)
    late = None
    if thread >= 0:
        late = int(profile.activities.launch_start[gap.after]) - gap.begin
    launched_next = thread >= 0
    if not launched_next:
        thread = _thread(profile, gap.before)
    window = TimeWindow(gap.begin, gap.end).moved(-timeline.origin)
    tracks = (Track.CALLS, Track.RANGES, Track.INNERMOST)
    found = {track: _parts(timeline, thread, track, window) for track in tracks}
    parts = {track: part for track, part in found.items() if part is not None}
    return GapHost(thread, launched_next, parts, late)


def _thread(profile: Profile, row: int) -> int:
    """The thread that launched an activity, `NONE` where that was not recorded."""
    table = profile.activities
    return int(table.thread[row]) if row >= 0 and table.launched[row] else NONE


def _parts(
    timeline: Timeline, thread: int, track: Track, window: TimeWindow
) -> tuple[HostPart, ...] | None:
    """How long each frame was the innermost one in ``window``; None where the track is empty."""
    lanes = [lane for lane in timeline.lanes if (lane.track, lane.owner) == (track, thread)]
    if thread < 0 or not lanes:
        return None
    items = np.concatenate([timeline.items_in(lane, window) for lane in lanes])
    inside = timeline.lengths_within(items, window)
    pieces = timeline.pieces[track]
    source = timeline.source[items]
    if track != Track.RANGES:
        return _heaviest(pieces.frame[source], inside)
    # What is directly within a range is not its own time.
    parent = pieces.parent[source]
    inner = parent >= 0
    frames = np.append(pieces.frame[source], pieces.frame[parent[inner]])
    return _heaviest(frames, np.append(inside, -inside[inner]))


def _heaviest(frames: Column, length: I8) -> tuple[HostPart, ...]:
    names, place = np.unique(frames, return_inverse=True)
    sums = sum_by(place, length, len(names))
    order = np.argsort(-sums, kind="stable")
    return tuple(HostPart(int(names[at]), int(sums[at])) for at in order.tolist() if sums[at] > 0)
