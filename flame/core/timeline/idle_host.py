"""Tell what the host ran while a GPU waited for it: the innermost function or range of a thread."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.attribution.nesting import lane_clock
from flame.core.attribution.thread_pieces import innermost_pieces
from flame.core.columns import I8, Bool, Column, expand_ranges, order_by
from flame.core.model.activities import NONE, ThreadPieces
from flame.core.model.profile import Profile
from flame.core.timeline.idle_parts import IdleParts
from flame.core.timeline.lane_intervals import LaneIntervals


class IdleHost(NamedTuple):
    """Hold parts of idle time by what was innermost on the thread that launched next, i8[n] each.

    ``part`` is the place of the idle part that it is of, ``frame`` the frame and ``piece`` which of
    `InnermostFrames.pieces`, -1 where the thread was in none; ``low`` and ``high`` (exclusive) are
    on the trace's clock, ns.
    """

    part: I8
    frame: I8
    piece: I8
    low: I8
    high: I8


class InnermostFrames(NamedTuple):
    """Say what was innermost on each thread, of ``pieces``.

    ``frame`` i8[n + 1] and ``piece`` i8[n + 1], the place in those, are of ``open``; the last: -1.
    """

    pieces: ThreadPieces
    open: LaneIntervals
    frame: I8
    piece: I8

    def path(self, piece: int) -> list[int]:
        """List the frames around a piece, outermost first, and its own."""
        found: list[int] = []
        while piece >= 0:
            found.append(int(self.pieces.frame[piece]))
            piece = int(self.pieces.parent[piece])
        return found[::-1]


def innermost_frames(profile: Profile) -> InnermostFrames | None:
    """Find when which Python function, else range, was innermost; None where none are known."""
    pieces = profile.functions or profile.ranges
    if pieces is None or not len(pieces):
        return None
    inner = innermost_pieces(pieces)  # by thread and time
    open_ = LaneIntervals(inner.thread.astype(np.int64), inner.start, inner.end)
    frame, piece = (
        np.append(column, NONE).astype(np.int64) for column in (inner.frame, inner.parent)
    )
    return InnermostFrames(pieces, open_, frame, piece)


def frames_at(profile: Profile, thread: Column, time: I8) -> I8:
    """Find what was innermost on each ``thread`` at a ``time``, i8[n]; -1: nothing.

    For few times: nothing is worked out but what is open at these.
    """
    found, pieces = np.full(len(time), NONE, np.int64), profile.functions or profile.ranges
    if pieces is None or not len(pieces) or not len(time):
        return found
    clock = lane_clock(pieces.thread, pieces.start, pieces.end)
    known = np.flatnonzero(clock.covers(time))
    at = clock.shift(thread[known], time[known])
    order = order_by([at])
    edges = (clock.shift(pieces.thread, one) for one in (pieces.start, pieces.end))
    first, last = (np.searchsorted(at[order], edge) for edge in edges)
    piece, place = (
        np.repeat(np.arange(len(pieces)), last - first),
        expand_ranges(first, last - first),
    )
    deepest = order_by([pieces.depth[piece]])
    found[known[order[place[deepest]]]] = pieces.frame[piece[deepest]]
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
        return IdleHost(rows, none, none, low, high)
    found = innermost.open.cut(thread, low, high)
    frame, piece = innermost.frame[found.by], innermost.piece[found.by]
    return IdleHost(rows[found.source], frame, piece, found.begin, found.end)
