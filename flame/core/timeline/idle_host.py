"""Tell what the host ran while a GPU waited for it: the innermost function or range of a thread."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.attribution.thread_pieces import innermost_pieces
from flame.core.columns import I8, Bool, Column, places_on_lanes
from flame.core.model.activities import NONE
from flame.core.model.profile import Profile
from flame.core.timeline.idle_parts import IdleParts
from flame.core.timeline.lane_intervals import LaneIntervals


class IdleHost(NamedTuple):
    """Hold parts of idle time by what was innermost on the thread that launched next, i8[n] each.

    ``part`` is the place of the idle part that it is of, ``frame`` the frame, -1 where the thread
    was in none; ``low`` and ``high`` (exclusive) are on the trace's clock, ns.
    """

    part: I8
    frame: I8
    low: I8
    high: I8


class InnermostFrames(NamedTuple):
    """Say what was innermost on each thread: ``frame`` i8[n + 1] of ``open``, the last is -1."""

    open: LaneIntervals
    frame: I8


def innermost_frames(profile: Profile) -> InnermostFrames | None:
    """Find when which Python function, else range, was innermost; None where none are known."""
    pieces = profile.functions or profile.ranges
    if pieces is None or not len(pieces):
        return None
    inner = innermost_pieces(pieces)  # by thread and time
    open_ = LaneIntervals(inner.thread, inner.start, inner.end)
    return InnermostFrames(open_, np.append(inner.frame, NONE).astype(np.int64))


def frames_at(profile: Profile, thread: Column, time: I8) -> I8:
    """Find what was innermost on each ``thread`` at a ``time``, i8[n]; -1: nothing.

    For few times: nothing is worked out but what is open at these.
    """
    found, pieces = np.full(len(time), NONE, np.int64), profile.functions or profile.ranges
    if pieces is None or not len(pieces) or not len(time):
        return found
    levels = int(pieces.depth.max()) + 1
    lane = pieces.thread * levels + pieces.depth
    for depth in range(levels):
        on = thread.astype(np.int64) * levels + depth
        at = places_on_lanes(lane, pieces.start, on, time, "right") - 1
        opened = np.flatnonzero((at >= 0) & (lane[at] == on) & (pieces.end[at] > time))
        found[opened] = pieces.frame[at[opened]]
    return found


def idle_host(
    profile: Profile, parts: IdleParts, chosen: Bool, innermost: InnermostFrames | None
) -> IdleHost:
    """Cut the ``chosen`` idle parts (bool[n]) by what was innermost."""
    table = profile.activities
    rows = np.flatnonzero(chosen & (parts.after[parts.gap] >= 0))
    thread = table.thread[parts.after[parts.gap[rows]]]
    low, high = parts.low[rows], parts.high[rows]
    if innermost is None:
        none = np.full(len(rows), NONE, np.int64)
        return IdleHost(rows, none, low, high)
    found = innermost.open.cut(thread, low, high)
    return IdleHost(rows[found.source], innermost.frame[found.by], found.begin, found.end)
