"""Measure how long threads were in something, in the time and on the threads that filters leave."""

from __future__ import annotations

import numpy as np

from flame.core.columns import I8, Bool, Column, sum_by
from flame.core.model.meta import process_of_threads
from flame.core.model.profile import Profile
from flame.core.projection.filters import Filter, Pids, Ranks, Steps, Tids, Time
from flame.core.report.scope import Scope
from flame.core.timeline.lane_intervals import LaneIntervals


class HostTime:
    """Measure intervals of threads as far as the filters of a scope leave them.

    Filters by time and step choose windows, those by process, thread and rank choose threads; all
    others are of activities and choose nothing here.
    """

    def __init__(self, scope: Scope) -> None:
        self._processes = process_of_threads(scope.profile.threads)
        self._threads = _chosen_threads(scope.profile, scope.selection.where)
        times = [each for each in scope.selection.where if isinstance(each, Time)]
        self._begin = max((t.begin for t in times if t.begin is not None), default=None)
        self._end = min((t.end for t in times if t.end is not None), default=None)
        self._steps = _step_windows(scope.profile, scope.selection.where)

    @property
    def is_all(self) -> bool:
        """Whether the filters leave all the time of all threads."""
        cut = (self._begin, self._end, self._steps)
        return bool(self._threads.all()) and all(one is None for one in cut)

    def within(self, thread: Column, start: I8, end: I8) -> I8:
        """Measure what counts of each interval, i8[n] in ns."""
        low = start if self._begin is None else np.maximum(start, self._begin)
        high = end if self._end is None else np.minimum(end, self._end)
        length: I8 = high - low
        np.maximum(length, 0, out=length)
        if not self._threads.all():
            length[~self._threads[thread]] = 0
        if self._steps is None:
            return length
        some = np.flatnonzero(length)
        pieces = self._steps.cut(self._processes[thread[some]], low[some], high[some])
        inside = pieces.where(pieces.by >= 0)
        return sum_by(some[inside.source], inside.lengths, len(start))

    def union(self, thread: Column, start: I8, end: I8) -> int:
        """Measure how long threads were in any of the intervals, summed over threads, ns."""
        runs = LaneIntervals.union(thread, start, end)
        return int(self.within(runs.lane, runs.begin, runs.end).sum())


def _chosen_threads(profile: Profile, where: tuple[Filter, ...]) -> Bool:
    """Mark the threads that ``where`` leaves, bool[threads + 1]; the last is not known."""
    kept = np.ones(len(profile.threads) + 1, bool)
    for filter_ in where:
        if isinstance(filter_, Tids):
            kept[:-1] &= [thread.tid in filter_.ids for thread in profile.threads]
        elif isinstance(filter_, Pids | Ranks):
            kept &= _of_processes(profile, filter_)
    return kept


def _of_processes(profile: Profile, chosen: Pids | Ranks) -> Bool:
    fits = [
        process.pid in chosen.ids
        if isinstance(chosen, Pids)
        else chosen.fits(profile.sources[process.source])
        for process in profile.processes
    ]
    return np.append(np.array(fits, bool), False)[process_of_threads(profile.threads)]


def _step_windows(profile: Profile, where: tuple[Filter, ...]) -> LaneIntervals | None:
    """When each process was in the chosen steps; None where all of the time counts."""
    steps = [each for each in where if isinstance(each, Steps)]
    if not steps:
        return None
    found = profile.iterations
    rows = np.logical_and.reduce([each.chosen(found.number) for each in steps])
    return LaneIntervals.union(found.process[rows], found.start[rows], found.end[rows])
