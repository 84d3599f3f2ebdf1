"""Tell what the threads of the host spent their time with, and what they launched."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flame.core.columns import I8, Column, sum_by
from flame.core.lazy_dataclass import dataclass
from flame.core.model.calls import CallClass
from flame.core.model.profile import Profile
from flame.core.report.host.host_time import HostTime
from flame.core.report.host.os_time import thread_os_calls
from flame.core.report.labels import frame_place
from flame.core.report.measures.launching_calls import launches_by_group
from flame.core.report.range_instances import no_pieces
from flame.core.report.scope import Scope
from flame.core.report.table import Section, Table, TableColumn, Value, share
from flame.core.timeline.call_classes import call_classes
from flame.core.timeline.lane_intervals import LaneIntervals

NAME, TITLE = "threads", "What the threads of the host did"

_COLUMNS = (
    TableColumn("thread", "thread"),
    TableColumn("host_ns", "recorded", "ns"),
    TableColumn("code_ns", "host code", "ns"),
    TableColumn("launch_ns", "launch calls", "ns"),
    TableColumn("sync_ns", "blocked", "ns"),
    TableColumn("copy_ns", "copy calls", "ns"),
    TableColumn("alloc_ns", "allocations", "ns"),
    TableColumn("other_ns", "other calls", "ns"),
    TableColumn("os_ns", "in OS calls", "ns"),
    TableColumn("launches", "launches", "count"),
    TableColumn("gpu_time_ns", "GPU time launched", "ns"),
    TableColumn("percent", "of GPU time", "percent"),
)


_MOST_THREADS = 1 << 24
"""Of more the number of a thread and a class of calls may not fit 32 bits."""


@dataclass(frozen=True, eq=False)
class ThreadColumns:
    """Hold what each thread did, i8[threads], ns.

    ``code`` is the time in recorded ranges and functions outside of calls, ``calls`` i8[classes,
    threads] that in calls by the `CallClass` of the outermost. ``gpu_time`` and
    ``launches`` are of what passes the filters. ``os`` is the time in calls of the operating
    system, within calls of the API or not, -1 where they were not recorded.
    """

    code: I8
    calls: I8
    launches: I8
    gpu_time: I8
    os: I8

    @property
    def host(self) -> I8:
        """The time in which anything was open."""
        total: I8 = self.code + self.calls.sum(axis=0)
        return total


def measure_threads(scope: Scope) -> ThreadColumns:
    """Divide the recorded time of each thread among calls by class, and host code."""
    profile, size = scope.profile, len(scope.profile.threads) + 1
    time = HostTime(scope)
    calls = _in_calls(profile, time, size)
    runs = _anything(profile)
    host = sum_by(runs.lane, time.within(runs.lane, runs.begin, runs.end), size)
    groups, weights = profile.activities.groups, scope.own_weights
    launched = np.flatnonzero(groups.launched)
    thread = groups.thread[launched]
    return ThreadColumns(
        host - calls.sum(axis=0),
        calls,
        sum_by(thread, launches_by_group(scope)[launched], size),
        sum_by(thread, weights.value[launched], size),
        _in_os_calls(scope, time, size),
    )


def _in_calls(profile: Profile, time: HostTime, size: int) -> I8:
    """How long each of so many threads was in calls of each class, i8[classes, threads]."""
    made = profile.calls or no_pieces()
    length = time.within(made.thread, made.start, made.end)
    key: Column = call_classes(profile).astype(np.intp if size > _MOST_THREADS else np.int32)
    key *= size
    key += made.thread
    sums = sum_by(key, length, (max(CallClass) + 1) * size)
    return sums.reshape(-1, size)[list(CallClass)]


def _anything(profile: Profile) -> LaneIntervals:
    """When anything was open on each thread: a call, a range or a function."""
    kinds = (profile.ranges or no_pieces(), profile.functions or no_pieces())
    found = [(each, np.flatnonzero(each.depth == 0)) for each in kinds]
    columns = [(each.thread[top], each.start[top], each.end[top]) for each, top in found]
    outer = LaneIntervals.union(*map(np.concatenate, zip(*columns, strict=True)))
    calls = profile.calls or no_pieces()
    rest = np.flatnonzero(~outer.cover(calls.thread, calls.start, calls.end))
    columns = [(calls.thread[rest], calls.start[rest], calls.end[rest])]
    columns.append((outer.lane, outer.begin, outer.end))
    return LaneIntervals.union(*map(np.concatenate, zip(*columns, strict=True)))


def _in_os_calls(scope: Scope, time: HostTime, size: int) -> I8:
    made, recorded = thread_os_calls(scope.profile)
    length = time.within(made.lane, made.begin, made.end)
    return np.where(np.append(recorded, False), sum_by(made.lane, length, size), -1)


def threads_section(scope: Scope) -> Section:
    """Tell what each thread did, most GPU time launched first."""
    profile = scope.profile
    if profile.resolved or not profile.threads:
        return Section(NAME, TITLE, why="the trace knows no threads")
    found = measure_threads(scope)
    order = _order(found)
    threads = profile.grouping.thread.tolist()
    places = [
        frame_place(scope, "thread", threads[at]) if found.gpu_time[at] else None for at in order
    ]
    table = Table.of("rows", "", _COLUMNS, _rows(scope, found, order), places)
    return Section(NAME, TITLE, tables=(table,))


def _order(found: ThreadColumns) -> list[int]:
    """The threads that did anything, most GPU time first."""
    order = np.lexsort((-found.host, -found.gpu_time))
    did = (found.host > 0) | (found.gpu_time > 0)
    did[-1] = False
    threads: list[int] = order[did[order]].tolist()
    return threads


def _rows(scope: Scope, found: ThreadColumns, order: list[int]) -> Iterator[tuple[Value, ...]]:
    profile, host = scope.profile, found.host
    whole = int(scope.own_weights.value.sum())
    for at in order:
        frame = int(profile.grouping.thread[at])
        by_class = dict(zip(CallClass, found.calls[:, at].tolist(), strict=True))
        gpu_time = int(found.gpu_time[at])
        yield (
            *(profile.frames[frame].name, int(host[at]), int(found.code[at])),
            *(by_class[one] for one in _ORDER),
            int(found.os[at]) if found.os[at] >= 0 else None,
            *(int(found.launches[at]), gpu_time, share(gpu_time, whole)),
        )


_ORDER = (CallClass.LAUNCH, CallClass.SYNC, CallClass.COPY, CallClass.ALLOC, CallClass.OTHER)
"""The order of the columns of calls."""
