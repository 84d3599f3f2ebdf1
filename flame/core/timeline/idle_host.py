"""Tell what the host ran while a GPU waited for it: the innermost function or range of a thread."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.attribution.thread_pieces import innermost_pieces
from flame.core.columns import I8, Bool
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


def idle_host(profile: Profile, parts: IdleParts, chosen: Bool) -> IdleHost:
    """Cut the ``chosen`` idle parts (bool[n]) by the innermost Python function, else range."""
    table = profile.activities
    rows = np.flatnonzero(chosen & (parts.after[parts.gap] >= 0))
    thread = table.thread[parts.after[parts.gap[rows]]]
    low, high = parts.low[rows], parts.high[rows]
    pieces = profile.functions or profile.ranges
    if pieces is None or not len(pieces):
        none = np.full(len(rows), NONE, np.int64)
        return IdleHost(rows, none, low, high)
    inner = innermost_pieces(pieces)  # by thread and time
    open_ = LaneIntervals(inner.thread.astype(np.int64), inner.start, inner.end)
    found = open_.cut(thread, low, high)
    frame = np.append(inner.frame, NONE).astype(np.int64)[found.by]
    return IdleHost(rows[found.source], frame, found.begin, found.end)
