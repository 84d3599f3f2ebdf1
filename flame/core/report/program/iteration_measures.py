"""Measure each iteration of each process: how long, what it launched, where its time went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np

from flame.core.analysis.iterations import iteration_of_activities
from flame.core.columns import I4, I8, LATEST, Bool, Column, run_starts, sum_by, taken, unique
from flame.core.compiled.nesting import LaneTimes
from flame.core.kept_results import kept
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import NONE, has_times
from flame.core.model.calls import CallClass
from flame.core.model.frames import Kind
from flame.core.model.iterations import Iterations
from flame.core.model.meta import process_of_threads
from flame.core.model.profile import Profile
from flame.core.projection.weights import Weights
from flame.core.report.host_calls import calls_left_out
from flame.core.report.labels import PART_NAMES
from flame.core.report.measures.chosen_iterations import chosen_iterations
from flame.core.report.measures.launching_calls import first_of_launches
from flame.core.report.scope import Scope, weights_of
from flame.core.timeline.busy_time import BusyTime
from flame.core.timeline.call_classes import call_classes
from flame.core.timeline.exposure import class_times
from flame.core.timeline.idle_parts import IdleCause, IdleParts, idle_parts
from flame.core.timeline.lane_intervals import measure_lanes
from flame.core.timeline.thread_states.states import find_collections

LEADS = tuple(f"before it, idle: {cause.title}" for cause in IdleCause)
"""The parts of the gap before the first work of an iteration, as ``IterationColumns.lead`` has it.
"""


_MOST_I4 = (1 << 31) - 1


@dataclass(frozen=True, eq=False)
class IterationColumns:
    """Hold iterations, one row for each process that has it, by process and start; i8[n], ns.

    | column | meaning |
    |---|---|
    | number, process | which iteration of whom |
    | start, host | when it began, how long the host was in it |
    | period | from its start to the start of the next one; of the last one ``host`` |
    | gpu_time, activities, kernels | what was launched in it, of what passes the filters |
    | launches, launch_ns | calls that launched it, and how long these took |
    | busy | how long that ran, the union on each GPU |
    | span | from its first start to its last stop |
    | window | on each GPU from its first start to that of the next; of the last to its last stop |
    | parts | i8[parts, n] `PART_NAMES` of ``window``, by all that ran there; they add up to it |
    | lead | i8[causes, n] the gap that its first work ended, in the window of the one before |
    | syncs, sync_ns, allocs, alloc_ns | blocking calls, and allocations and frees, begun in it |
    | collections, collection_ns | garbage collections begun in it |

    The last six are None where no calls, or no collections, were recorded.
    """

    number: I8
    process: I8
    start: I8
    host: I8
    period: I8
    gpu_time: I8
    activities: I8
    kernels: I8
    launches: I8
    launch_ns: I8
    busy: I8
    span: I8
    window: I8
    parts: I8
    lead: I8
    syncs: I8 | None
    sync_ns: I8 | None
    allocs: I8 | None
    alloc_ns: I8 | None
    collections: I8 | None
    collection_ns: I8 | None

    def __len__(self) -> int:
        return len(self.number)

    def take(self, rows: I8) -> IterationColumns:
        """Take some of the rows."""
        columns: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        known = {name: one[..., rows] for name, one in columns.items() if one is not None}
        return IterationColumns(**columns | known)


def measure_scope(scope: Scope) -> IterationColumns:
    """Measure the iterations that the filters of ``scope`` leave."""
    profile, found = scope.profile, scope.profile.iterations
    columns: dict[str, Any] = {
        **_times(found)._asdict(),
        "host": found.end - found.start,
        **_work(scope, found),
        **_budget(profile, found),
        **_calls(profile, found),
        **_collections(profile, found),
    }
    return IterationColumns(**columns).take(np.flatnonzero(chosen_iterations(scope)))


class IterationTimes(NamedTuple):
    """Hold of iterations the columns of `IterationColumns` that need no activities, i8[n]."""

    number: I8
    process: I8
    start: I8
    period: I8

    def take(self, rows: I8) -> IterationTimes:
        """Take some of the rows."""
        return IterationTimes(*(column[rows] for column in self))

    @property
    def slowest(self) -> I8:
        """The row of each number that has the longest period, in order of start."""
        order = np.lexsort((-self.period, self.number))
        rows = order[run_starts(self.number[order])]
        return rows[np.lexsort((self.number[rows], self.start[rows]))]


@kept
def measure_times(scope: Scope) -> IterationTimes:
    """Measure when the iterations were that the filters of ``scope`` leave, as `measure_scope`."""
    return _times(scope.profile.iterations).take(np.flatnonzero(chosen_iterations(scope)))


class Periods(NamedTuple):
    """Hold the ``number`` and the ``period`` (ns) of each iteration, by start; i8[n]."""

    number: I8
    period: I8


@kept
def measure_periods(scope: Scope) -> Periods:
    """Measure no more of the iterations that the filters leave than their longest period."""
    every = measure_times(scope)
    times = every.take(every.slowest)
    return Periods(times.number, times.period)


def _times(found: Iterations) -> IterationTimes:
    process = found.process.astype(np.int64)
    return IterationTimes(found.number, process, found.start, _periods(found))


def _periods(found: Iterations) -> I8:
    """From each start to the next of its process; of the last until its end."""
    until = found.end.copy()
    same = found.process[1:] == found.process[:-1]
    until[:-1][same] = found.start[1:][same]
    return until - found.start


def _work(scope: Scope, found: Iterations) -> dict[str, I8]:
    """Sum what passes the filters, by the iteration that launched it."""
    profile, table, size = scope.profile, scope.profile.activities, len(found) + 1
    of = _iteration_of_passing(scope)
    place = of + 1  # what is in none is at the first
    activities = np.bincount(place, minlength=size)[1:]

    def count(marks: Bool) -> I8:
        return activities if marks.all() else np.bincount(place[marks], minlength=size)[1:]

    return {
        "gpu_time": sum_by(place, table.duration, size)[1:],
        "activities": activities,
        "kernels": count(table.kind == Kind.KERNEL),
        "launches": count(first_of_launches(profile)),
        "launch_ns": sum_by(place, table.launch_share, size)[1:],
        **_extent(profile, of),
    }


def _iteration_of_passing(scope: Scope) -> I4:
    """The iteration that each activity was launched in, i4[n]; -1 where that is none, or hidden."""
    of, rows = iteration_of_activities(scope.profile), scope.rows
    if len(rows) == len(of):
        return of
    passing = np.full(len(of), NONE, np.int32)
    passing[rows] = of[rows]
    return passing


def _extent(profile: Profile, of: I4) -> dict[str, I8]:
    """How long what is ``of`` iterations ran on each GPU, and from the first start to the end."""
    is_all = of is iteration_of_activities(profile)
    times = _work_times(profile) if is_all else _times_of(profile, of)
    first, last = times.first.min(axis=1), times.last.max(axis=1)
    return {
        "busy": times.busy.sum(axis=1),
        "span": np.where(last >= first, last - np.minimum(first, last), 0),
    }


@kept
def _work_times(profile: Profile) -> LaneTimes:
    """When all that was launched in each iteration ran, i8[iterations, devices + 1]."""
    return _times_of(profile, iteration_of_activities(profile))


def _times_of(profile: Profile, of: I4) -> LaneTimes:
    """When activities ran, by the iteration that each is ``of`` (i4[n], -1: none) and by device.

    The first is the one that is not known.
    """
    table, devices, size = profile.activities, len(profile.devices) + 1, len(profile.iterations)
    timed = has_times(table)
    lane: Column = of.astype(np.int32 if size * devices <= _MOST_I4 else np.int64)
    lane *= devices  # below 0 where it was in none
    lane += table.device
    lane += 1
    if not timed.all():
        lane[~timed] = NONE
    found = measure_lanes(lane, table.start, table.start + table.duration, size * devices)
    return LaneTimes(*(column.reshape(size, devices) for column in found))


# Where the time of the GPUs went


def _budget(profile: Profile, found: Iterations) -> dict[str, I8]:
    """Divide the window of each iteration, on all GPUs that its work ran on."""
    window, parts = (
        np.zeros(len(found), np.int64),
        np.zeros((len(PART_NAMES), len(found)), np.int64),
    )
    lead = np.zeros((len(IdleCause), len(found)), np.int64)
    for idle in idle_parts(profile):
        rows, low, high = _windows(profile, found, idle.device)
        causes = _cause_times(idle)
        window[rows] += high - low
        parts[:, rows] += _divided(profile, idle.device, causes, low, high)
        lead[:, rows] += _within(causes, _gap_before(idle, low), low)
    return {"window": window, "parts": parts, "lead": lead}


def _gap_before(idle: IdleParts, times: I8) -> I8:
    """Where the gap begins that ends at each time; the time itself where none does."""
    if not len(idle.end):
        return times
    at = np.minimum(np.searchsorted(idle.end, times), len(idle.end) - 1)
    begin: I8 = np.where(idle.end[at] == times, idle.begin[at], times)
    return begin


def _windows(profile: Profile, found: Iterations, device: int) -> tuple[I8, I8, I8]:
    """(rows, from, until) of the iterations with work on ``device``: to the next of the process."""
    times = _work_times(profile)
    first, last = times.first[:, device + 1], times.last[:, device + 1]
    rows = np.flatnonzero(first < LATEST)
    low, high = first[rows], last[rows]
    same = found.process[rows][1:] == found.process[rows][:-1]
    high[:-1][same] = low[1:][same]
    return rows, low, np.maximum(low, high)


def _divided(profile: Profile, device: int, causes: list[BusyTime], low: I8, high: I8) -> I8:
    """The `PART_NAMES` of the windows from ``low`` to ``high`` on a GPU, i8[parts, n]."""
    compute, kernels, busy = _within(class_times(profile, device), low, high)
    return np.array([compute, kernels - compute, busy - kernels, *_within(causes, low, high)])


def _cause_times(idle: IdleParts) -> list[BusyTime]:
    """When a GPU was idle for each of `IdleCause`."""
    marks = (idle.cause == cause for cause in IdleCause)
    return [BusyTime.between(idle.low[one], idle.high[one]) for one in marks]


def _within(times: Sequence[BusyTime], low: I8, high: I8) -> I8:
    """How much of each of ``times`` lies from each ``low`` to ``high``, i8[times, n]."""
    return np.array([each.sums_until(high) - each.sums_until(low) for each in times])


# Calls


def _calls(profile: Profile, found: Iterations) -> dict[str, I8 | None]:
    """Count the calls that begin in each iteration, and sum how long they took."""
    calls, names = profile.calls, {"sync": CallClass.SYNC, "alloc": CallClass.ALLOC}
    if calls is None or not len(calls) or calls_left_out(profile):
        keys = [key for name in names for key in (f"{name}s", f"{name}_ns")]
        return dict.fromkeys(keys)
    classes = call_classes(profile)
    columns: dict[str, I8 | None] = {}
    for name, wanted in names.items():
        rows = np.flatnonzero(classes == wanted)
        of = found.at(process_of_threads(profile.threads)[calls.thread[rows]], calls.start[rows])
        rows, of = rows[of >= 0], of[of >= 0]
        length = calls.end[rows] - calls.start[rows]
        columns[f"{name}s"] = np.bincount(of, minlength=len(found))
        columns[f"{name}_ns"] = sum_by(of, length, len(found))
    return columns


def _collections(profile: Profile, found: Iterations) -> dict[str, I8 | None]:
    """Count the garbage collections that begin in each iteration, and sum how long they took."""
    known = find_collections(profile)
    if known is None:
        return dict.fromkeys(("collections", "collection_ns"))
    of = found.at(known.process, known.start)
    rows = np.flatnonzero(of >= 0)
    length = known.end[rows] - known.start[rows]
    return {
        "collections": np.bincount(of[rows], minlength=len(found)),
        "collection_ns": sum_by(of[rows], length, len(found)),
    }


def work_of(scope: Scope, numbers: I8) -> tuple[I8, I8]:
    """Find the rows that pass and were launched in an iteration: (rows, place in ``numbers``)."""
    of = taken(iteration_of_activities(scope.profile), scope.rows)
    place = scope.profile.iterations.places_among(numbers, of)
    inside = place >= 0
    return (scope.rows, place) if inside.all() else (scope.rows[inside], place[inside])


class IterationWork(NamedTuple):
    """Weigh what passes and was launched in iterations, by group; ``iterations`` is in how many."""

    weights: Weights
    iterations: int


@kept
def iteration_work(scope: Scope) -> IterationWork | None:
    """Sum up what was launched in iterations; None where there are none."""
    found = scope.profile.iterations
    if not len(found):
        return None
    of = taken(iteration_of_activities(scope.profile), scope.rows)
    inside = of >= 0
    every = bool(inside.all())
    launched = np.bincount(of if every else of[inside], minlength=len(found))
    used = len(unique(found.number[launched > 0]))
    if every:
        return IterationWork(scope.own_weights, max(used, 1))
    return IterationWork(weights_of(scope.profile.activities, scope.rows[inside]), max(used, 1))
