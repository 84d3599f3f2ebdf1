"""Find when threads collected garbage or waited for the GIL, and cut other times by that."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, Column
from flame.core.kept_results import kept
from flame.core.model.calls import IdleCause
from flame.core.model.profile import Profile
from flame.core.timeline.lane_intervals import LaneIntervals, Pieces
from flame.core.timeline.thread_states.states import find_collections, gil_times

HOLDUPS = (IdleCause.GARBAGE_COLLECTION, IdleCause.GIL)
"""What threads are held up by, as causes of idle time; where both hold the first counts."""


class Holdups(NamedTuple):
    """Hold when threads of a trace collected garbage, and waited for the GIL.

    Lanes are threads of the profile; None where the trace does not tell.
    """

    collecting: LaneIntervals | None
    waiting: LaneIntervals | None

    @property
    def known(self) -> list[tuple[IdleCause, LaneIntervals]]:
        """Those that the trace tells of, as causes of idle time."""
        return [(cause, one) for cause, one in zip(HOLDUPS, self, strict=True) if one is not None]


@kept
def find_holdups(profile: Profile) -> Holdups:
    """Find what the trace tells of its threads; kept as long as the profile is."""
    collections, gil = find_collections(profile), gil_times(profile.events)
    collecting = waiting = None
    if collections is not None:
        collecting = _lanes(profile, collections.thread, collections.start, collections.end)
    if gil is not None:
        events = gil.waiting
        waiting = _lanes(profile, events.of_threads("thread"), events.start, events.end)
    return Holdups(collecting, waiting)


def _lanes(profile: Profile, thread: Column, start: I8, end: I8) -> LaneIntervals:
    """The union on each known thread of what lies in the time of the trace."""
    rows = np.flatnonzero(thread >= 0)
    low, high = (np.clip(times[rows], profile.begin, profile.end) for times in (start, end))
    return LaneIntervals.union(thread[rows], low, high)


def split(pieces: Pieces, lane: Column, by: LaneIntervals) -> tuple[Pieces, Pieces]:
    """Cut ``pieces`` of some lanes (one for each) by others: (what lies in these, the rest).

    They stay pieces of what they were, and covered by what they were.
    """
    found = by.cut(lane, pieces.begin, pieces.end)
    cut = Pieces(pieces.source[found.source], pieces.by[found.source], found.begin, found.end)
    return cut.where(found.by >= 0), cut.where(found.by < 0)
