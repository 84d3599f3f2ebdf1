"""Measure how long each thread held the GIL, and waited for it."""

from __future__ import annotations

import numpy as np

from flame.core.columns import I8, Bool, Column, sum_by
from flame.core.lazy_dataclass import dataclass
from flame.core.model.threads.events import EventThread, ThreadEvents
from flame.core.report.host.state_times import idle_in, lengths_within
from flame.core.report.scope import Scope
from flame.core.timeline.lane_intervals import LaneIntervals
from flame.core.timeline.thread_states.states import gil_times


@dataclass(frozen=True, eq=False)
class GilColumns:
    """Hold what ``threads`` did with the GIL, i8[threads] each, times in ns.

    ``time`` is how long each was recorded, ``held`` and ``waited`` the unions of its ranges;
    ``idle`` is how long GPUs of its process were idle meanwhile, of those in ``uses_gpu``;
    ``waits`` counts, ``longest`` is the place of the longest in ``waiting``, -1 without any.
    """

    threads: tuple[EventThread, ...]
    time: I8
    held: I8
    waited: I8
    idle: I8
    uses_gpu: Bool
    waits: I8
    longest: I8
    waiting: ThreadEvents

    @property
    def order(self) -> I8:
        """The places of those that did anything, longest wait first."""
        order: I8 = np.lexsort((-self.held, -self.waited))
        return order[(self.held + self.waited)[order] > 0]


def measure_gil(scope: Scope) -> GilColumns | None:
    """Measure what ``scope`` leaves; None where the trace does not tell of the GIL."""
    found = gil_times(scope.events)
    if found is None:
        return None
    holding, waiting = found.holding, found.waiting
    threads, size = waiting.threads, len(waiting.threads)
    held, waits = (
        LaneIntervals.union(one.thread, one.start, one.end) for one in (holding, waiting)
    )
    process = np.array([thread.process for thread in threads], np.int64)
    groups = scope.profile.activities.groups
    inside = lengths_within(scope, waiting.start, waiting.end)
    return GilColumns(
        threads,
        time=_times(scope, threads, (holding, waiting)),
        held=_sums(scope, held, size),
        waited=_sums(scope, waits, size),
        idle=sum_by(waits.lane, idle_in(scope, process[waits.lane], waits.begin, waits.end), size),
        uses_gpu=(process >= 0) & np.isin(process, groups.process),
        waits=np.bincount(waiting.thread[inside > 0], minlength=size).astype(np.int64),
        longest=_longest(waiting.thread, inside, size),
        waiting=waiting,
    )


def _sums(scope: Scope, lanes: LaneIntervals, size: int) -> I8:
    return sum_by(lanes.lane, lengths_within(scope, lanes.begin, lanes.end), size)


def _times(scope: Scope, threads: tuple[EventThread, ...], tables: tuple[ThreadEvents, ...]) -> I8:
    """How long each thread was recorded: from the first that it did to the last."""
    limits = np.iinfo(np.int64)
    known = np.array([thread.thread for thread in threads], np.int64)
    first, last = (
        np.append(spans, none)[known]
        for spans, none in zip(scope.thread_spans, (limits.max, limits.min), strict=True)
    )
    for table in tables:
        np.minimum.at(first, table.thread, table.start)
        np.maximum.at(last, table.thread, table.end)
    return lengths_within(scope, np.minimum(first, last), last)


def _longest(thread: Column, length: I8, size: int) -> I8:
    some = np.flatnonzero(length > 0)
    order = some[np.lexsort((length[some], thread[some]))]
    found = np.full(size, -1, np.int64)
    found[thread[order]] = order
    return found
