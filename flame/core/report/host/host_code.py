"""Divide the idle time that passed with the host's code by what held its thread up then."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from flame.core.analysis.utilization import Utilization
from flame.core.columns import I8, Column, sum_by
from flame.core.model.profile import Profile
from flame.core.report.host.states import find_collections, gil_times
from flame.core.report.scope import Scope
from flame.core.timeline.idle_parts import IdleCause
from flame.core.timeline.lane_intervals import LaneIntervals, Pieces


class HostState(IntEnum):
    """Name what a moment of host code passed with; where several hold, the first counts."""

    COLLECTION = 0
    WAITING = 1
    OTHER = 2

    @property
    def title(self) -> str:
        """Spell the state as tables show it."""
        return _TITLES[self]


_TITLES = {
    HostState.COLLECTION: "garbage collection",
    HostState.WAITING: "waiting for the GIL",
    HostState.OTHER: "other",
}


class Holdups(NamedTuple):
    """Hold when threads of a trace collected garbage, and waited for the GIL.

    Lanes are threads of the profile; None where the trace does not tell.
    """

    collecting: LaneIntervals | None
    waiting: LaneIntervals | None

    @property
    def states(self) -> list[HostState]:
        """The states that are told apart."""
        known = zip((HostState.COLLECTION, HostState.WAITING), self, strict=True)
        return [*(state for state, lanes in known if lanes is not None), HostState.OTHER]


def find_holdups(profile: Profile) -> Holdups | None:
    """Find what the trace tells of its threads; None where that is nothing."""
    collections, gil = find_collections(profile), gil_times(profile.events)
    collecting = waiting = None
    if collections is not None:
        collecting = _lanes(profile, collections.thread, collections.start, collections.end)
    if gil is not None:
        events = gil.waiting
        waiting = _lanes(profile, events.of_threads("thread"), events.start, events.end)
    known = collecting is not None or waiting is not None
    return Holdups(collecting, waiting) if known else None


def _lanes(profile: Profile, thread: Column, start: I8, end: I8) -> LaneIntervals:
    """The union on each known thread of what lies in the time of the trace."""
    rows = np.flatnonzero(thread >= 0)
    low, high = (np.clip(times[rows], profile.begin, profile.end) for times in (start, end))
    return LaneIntervals.union(thread[rows], low, high)


def host_code(scope: Scope, gpu: Utilization, holdups: Holdups) -> I8:
    """Sum the idle time of ``gpu`` that passed with host code by `HostState`, i8[states] in ns.

    They add up to it. The thread is that which launched what ended the gap.
    """
    parts, table = scope.idle(gpu), scope.profile.activities
    rows = np.flatnonzero(parts.cause == IdleCause.HOST_CODE)
    thread = table.thread[parts.after[parts.gap[rows]]].astype(np.int64)
    none = np.full(len(rows), -1, np.int64)
    rest = Pieces(thread, none, parts.low[rows], parts.high[rows])
    sums = np.zeros(len(HostState), np.int64)
    for state, lanes in zip((HostState.COLLECTION, HostState.WAITING), holdups, strict=True):
        if lanes is not None:
            found = lanes.cut(rest.source, rest.begin, rest.end)
            found = found._replace(source=rest.source[found.source])
            sums[state] = _within(gpu, found.where(found.by >= 0))
            rest = found.where(found.by < 0)
    sums[HostState.OTHER] = _within(gpu, rest)
    return sums


def _within(gpu: Utilization, pieces: Pieces) -> int:
    inside = gpu.windows.sums_until(pieces.end) - gpu.windows.sums_until(pieces.begin)
    return int(sum_by(np.zeros(len(inside), np.int64), inside, 1)[0])
