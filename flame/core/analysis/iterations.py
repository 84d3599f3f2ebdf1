"""Measure each iteration: how long it took, what was launched in it, how busy the GPUs were."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from flame.core.analysis.distribution import distribution
from flame.core.columns import I4, I8, Bool, distinct, run_starts, sum_by
from flame.core.kept_results import kept
from flame.core.lazy_dataclass import dataclass
from flame.core.model.iterations import Iterations
from flame.core.model.launches import launch_times
from flame.core.model.profile import Profile
from flame.core.timeline.devices import device_times

_SLOW = 1.2
"""Times the median, from which on an iteration is slow."""


class Work(NamedTuple):
    """Sum up activities: their GPU time in ns, and how many they are."""

    gpu_time: int
    activities: int


class Outside(NamedTuple):
    """Sum up what was launched in no iteration.

    ``before`` the first of its process, ``between`` two, ``after`` the last, or ``elsewhere``: in a
    process without iterations, or in one that is not known.
    """

    before: Work
    between: Work
    after: Work
    elsewhere: Work

    @property
    def total(self) -> Work:
        """The sum of all parts."""
        return Work(sum(part.gpu_time for part in self), sum(part.activities for part in self))


@dataclass(frozen=True, eq=False)
class IterationTable:
    """Hold the iterations of a trace by their numbers, in order of time, and what lies outside.

    | column | meaning, each i8[n], times in ns |
    |---|---|
    | number | that of the iteration; the same in several processes is one |
    | row | the row of ``iterations`` that lasts longest |
    | start | when it began in the first of its processes, on the trace's clock |
    | duration | its longest in any process |
    | gpu_time, activities | what was launched in it: what the filter by steps keeps |
    | window | its time on every GPU that its processes use, added up |
    | busy | the part of that in which the GPU ran anything, on whichever stream |

    With those of ``outside``, ``gpu_time`` and ``activities`` add up to those of the trace.
    """

    iterations: Iterations
    number: I8
    row: I8
    start: I8
    duration: I8
    gpu_time: I8
    activities: I8
    window: I8
    busy: I8
    outside: Outside

    def __len__(self) -> int:
        return len(self.number)

    @property
    def idle(self) -> I8:
        """The part of ``window`` in which the GPU ran nothing, ns."""
        return self.window - self.busy

    @cached_property
    def median(self) -> int:
        """Median of ``duration`` by nearest rank, ns; 0 without iterations."""
        found = distribution(self.duration)
        return found.p50 if found else 0

    @property
    def slowest(self) -> int:
        """The place of the longest, of equals the first."""
        return int(np.argmax(self.duration))

    @property
    def slow(self) -> Bool:
        """Mark those that take more than 1.2 times the median, bool[n]."""
        marks: Bool = self.duration > _SLOW * self.median
        return marks


def iteration_of_activities(profile: Profile) -> I4:
    """Find the iteration that each activity was launched in, i4[n]; -1: in none."""
    return profile.iterations.of(profile.activities)


@kept
def measure_iterations(profile: Profile) -> IterationTable:
    """Measure the iterations of ``profile``; kept as long as the profile is."""
    found, table = profile.iterations, profile.activities
    numbers, place = distinct(found.number)
    size = len(numbers)
    by_length = np.lexsort((-(found.end - found.start), place))
    row = by_length[run_starts(place[by_length])]
    start = np.full(size, np.iinfo(np.int64).max)
    np.minimum.at(start, place, found.start)
    of = iteration_of_activities(profile)
    inside = np.flatnonzero(of >= 0)
    number_of = place[of[inside]]
    busy, window = _busy(profile, place, size)
    columns = {
        "number": numbers,
        "row": row,
        "start": start,
        "duration": (found.end - found.start)[row],
        "gpu_time": sum_by(number_of, table.duration[inside], size),
        "activities": np.bincount(number_of, minlength=size).astype(np.int64),
        "window": window,
        "busy": busy,
    }
    order = np.lexsort((numbers, start))
    ordered = {name: column[order] for name, column in columns.items()}
    return IterationTable(found, **ordered, outside=_outside(profile, of))


def _busy(profile: Profile, place: I8, size: int) -> tuple[I8, I8]:
    """(busy, length) of the iterations at each ``place`` on all GPUs, i8[size], ns."""
    found, groups = profile.iterations, profile.activities.groups
    busy, window = np.zeros(size, np.int64), np.zeros(size, np.int64)
    for each in device_times(profile):
        rows = np.flatnonzero(np.isin(found.process, groups.process[groups.device == each.device]))
        rows, low, high = _union(found, rows, place)
        low, high = low - profile.rows_begin, high - profile.rows_begin
        ran = each.busy.sums_until(high) - each.busy.sums_until(low)
        busy += sum_by(place[rows], ran, size)
        window += sum_by(place[rows], high - low, size)
    return busy, window


def _union(found: Iterations, rows: I8, place: I8) -> tuple[I8, I8, I8]:
    """The ``rows`` without what others of the same place cover: rows, starts and ends.

    Processes that use one GPU are in an iteration at the same time.
    """
    rows = rows[np.lexsort((found.start[rows], place[rows]))]
    low, high = found.start[rows], found.end[rows]
    # The latest end so far of the same place: ranks of ends, those of each place behind the last.
    ends, rank = distinct(high)
    first = place[rows] * len(ends)
    reach = ends[np.maximum.accumulate(first + rank) - first]
    low[1:] = np.maximum(low[1:], np.where(np.diff(place[rows]) == 0, reach[:-1], low[1:]))
    return rows, low, np.maximum(low, high)


def _outside(profile: Profile, of: I4) -> Outside:
    """Sum up the activities that are ``of`` no iteration, by where they lie."""
    found, table = profile.iterations, profile.activities
    rows = np.flatnonzero(of < 0)
    process, time = table.process[rows], launch_times(table)[rows]
    part = np.full(len(rows), Outside._fields.index("elsewhere"))
    for first, last in found.of_processes():
        own = process == found.process[first]
        part[own] = np.select(
            [time[own] < found.start[first], time[own] < found.end[last - 1]], [0, 1], 2
        )
    gpu_time = sum_by(part, table.duration[rows], len(Outside._fields))
    activities = np.bincount(part, minlength=len(Outside._fields))
    return Outside(*map(Work, gpu_time.tolist(), activities.tolist()))


def iteration_name(profile: Profile, row: int) -> str:
    """Name a ``row`` of the iterations of ``profile``: `ProfilerStep#12`, or as its range is."""
    found = profile.iterations
    if found.source == "profiler":
        return f"ProfilerStep#{found.number[row]}"
    return profile.frames[int(found.frame[row])].name
