"""Tell what the host ran while a GPU waited for it: the innermost function or range of a thread."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.attribution.thread_pieces import innermost_pieces
from flame.core.columns import I8, Bool, Column, expand_ranges, places_on_lanes
from flame.core.model.activities import NONE, ThreadPieces
from flame.core.model.profile import Profile
from flame.core.timeline.idle_parts import IdleParts
from flame.core.timeline.lane_intervals import LaneIntervals


class IdleHost(NamedTuple):
    """Hold parts of idle time by what was innermost on the thread that launched next, i8[n] each.

    ``part`` is the place of the idle part that it is of, ``frame`` the frame and ``piece`` which of
    ``pieces``, -1 where the thread was in none; ``low`` and ``high`` (exclusive) are on the trace's
    clock, ns. ``pieces`` are those that were open then; None of none.
    """

    part: I8
    frame: I8
    piece: I8
    low: I8
    high: I8
    pieces: ThreadPieces | None

    def path(self, piece: int) -> tuple[int, ...]:
        """List the frames around a piece, outermost first, and its own."""
        found: list[int] = []
        while piece >= 0 and self.pieces is not None:
            found.append(int(self.pieces.frame[piece]))
            piece = int(self.pieces.parent[piece])
        return tuple(found[::-1])


def frames_at(profile: Profile, thread: Column, time: I8) -> I8:
    """Find what was innermost on each ``thread`` at a ``time``, i8[n]; -1: nothing.

    For few times: nothing is worked out but what is open at these.
    """
    found, pieces = np.full(len(time), NONE, np.int64), profile.functions or profile.ranges
    if pieces is None or not len(pieces) or not len(time):
        return found
    levels, lane = _lanes(pieces)
    for depth in range(levels):
        on = thread.astype(np.int64) * levels + depth
        at = places_on_lanes(lane, pieces.start, on, time, "right") - 1
        opened = np.flatnonzero((at >= 0) & (lane[at] == on) & (pieces.end[at] > time))
        found[opened] = pieces.frame[at[opened]]
    return found


def idle_host(profile: Profile, parts: IdleParts, chosen: Bool) -> IdleHost:
    """Cut the ``chosen`` idle parts (bool[n]) by the innermost Python function, else range."""
    table, pieces = profile.activities, profile.functions or profile.ranges
    rows = np.flatnonzero(chosen & (parts.after[parts.gap] >= 0))
    thread = table.thread[parts.after[parts.gap[rows]]]
    low, high = parts.low[rows], parts.high[rows]
    near = None if pieces is None else _open_during(pieces, thread, low, high)
    if not near:
        none = np.full(len(rows), NONE, np.int64)
        return IdleHost(rows, none, none, low, high, None)
    inner = innermost_pieces(near)  # by thread and time
    found = LaneIntervals(inner.thread, inner.start, inner.end).cut(thread, low, high)
    frame, piece = (
        np.append(column, NONE).astype(np.int64)[found.by] for column in (inner.frame, inner.parent)
    )
    return IdleHost(rows[found.source], frame, piece, found.begin, found.end, near)


def _open_during(pieces: ThreadPieces, thread: Column, low: I8, high: I8) -> ThreadPieces:
    """Choose the pieces that are open on a ``thread`` at any time between ``low`` and ``high``."""
    levels, lane = _lanes(pieces)
    found = np.zeros(len(pieces), bool)
    for depth in range(levels):
        on = thread.astype(np.int64) * levels + depth
        first = places_on_lanes(lane, pieces.end, on, low, "right")
        last = places_on_lanes(lane, pieces.start, on, high)
        found[expand_ranges(first, np.maximum(last - first, 0))] = True
    return pieces.where(found)


def _lanes(pieces: ThreadPieces) -> tuple[int, Column]:
    """How many depths there are, and a lane for each depth of each thread: none nest on one."""
    levels = int(pieces.depth.max(initial=-1)) + 1
    return levels, pieces.thread * levels + pieces.depth
