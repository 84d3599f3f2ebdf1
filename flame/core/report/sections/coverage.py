"""Tell how much of the GPU time has a launch, ranges and functions, process by process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from flame.core.analysis.words.formats import coverage_of
from flame.core.columns import I4, I8, Bool, Column, places_on_lanes, sum_by
from flame.core.lazy_dataclass import dataclass
from flame.core.lazy_regex import lazy_regex
from flame.core.model.calls import CallClass
from flame.core.model.frames import Kind
from flame.core.model.grouping import process_name
from flame.core.model.meta import process_of_threads
from flame.core.report.host_calls import HostCalls
from flame.core.report.measures.launching_calls import early_rows
from flame.core.report.scope import Scope
from flame.core.report.table import Section, Table, TableColumn, Value, share

NAME, TITLE = "coverage", "How much is known"

LOW = 70
"""Percent below which shares per range say little of the whole."""

_HOST_FUNCTION = lazy_regex(r"\w*LaunchHostFunc\w*")


@dataclass(frozen=True, eq=False)
class Coverage:
    """Sum up what is known of the activities of each process, i8[n + 1] each, times in ns.

    The last place is of those whose process is not known. ``covered`` has GPU time and number of
    what has a launch, ranges and so on, as `Profile.coverage`. ``before_launch`` counts activities
    that begin before their launch, by an error of clocks; ``opaque`` is the time of graphs that
    were traced as a whole. ``without_work`` counts launch calls during which nothing was launched
    that was recorded.
    """

    gpu_time: I8
    activities: I8
    covered: Mapping[str, tuple[I8, I8]]
    before_launch: I8
    opaque: I8
    without_work: I8


def coverage(scope: Scope) -> Coverage:
    """Sum up the activities of ``scope`` by process."""
    groups, table = scope.shown.activities.groups, scope.profile.activities
    size = len(scope.profile.processes) + 1
    process = _places(groups.process, size)
    time, count = scope.weights
    early = early_rows(scope.profile)
    if len(early) and len(scope.rows) < len(table):
        early = np.intersect1d(early, scope.rows, assume_unique=True)
    opaque = groups.kind == Kind.GRAPH
    return Coverage(
        sum_by(process, time, size),
        sum_by(process, count, size),
        {
            key: (sum_by(process, time * mask, size), sum_by(process, count * mask, size))
            for key, mask in scope.shown.covered_groups.items()
        },
        np.bincount(_places(table.process[early], size), minlength=size),
        sum_by(process, time * opaque, size),
        _without_work(scope, size),
    )


def _places(process: Column, size: int) -> I8:
    return np.where(process < 0, size - 1, process).astype(np.int64)


def _without_work(scope: Scope, size: int) -> I8:
    """Count the launch calls that launched nothing recorded, by process."""
    calls, table = scope.calls, scope.profile.activities
    if calls is None or not len(calls):
        return np.zeros(size, np.int64)
    thread = calls.thread[_launches_nothing(calls, table.thread, table.launch_start)]
    process = process_of_threads(scope.profile.threads)[thread]
    return np.bincount(_places(process, size), minlength=size)


def _launches_nothing(calls: HostCalls, thread: I4, time: I8) -> Bool:
    """Mark launch calls during which nothing was launched by a ``thread`` at a ``time``."""
    place = places_on_lanes(calls.thread, calls.start, thread, time, "right") - 1
    inside = (place >= 0) & (calls.thread[place] == thread) & (time < calls.end[place])
    marked: Bool = (calls.kind == CallClass.LAUNCH) & ~calls.named(_HOST_FUNCTION)
    marked[place[inside]] = False
    return marked


def coverage_section(scope: Scope) -> Section:
    """Tell the coverage of each process, and of all."""
    if scope.profile.resolved or not len(scope.rows):
        return Section(NAME, TITLE, why="no GPU activity was recorded")
    found, titles = coverage(scope), _titles(scope)
    used = np.flatnonzero(found.activities).tolist()
    names = [process_name(process) for process in scope.profile.processes] + ["unknown process"]
    rows = [(names[at], *_row(found, at, titles)) for at in used]
    whole = {key: _share(found, sums) for key, sums in found.covered.items() if key in titles}
    facts = {
        "all": whole,
        "before_launch": int(found.before_launch.sum()),
        "opaque_graphs_ns": int(found.opaque.sum()),
        "calls_without_work": int(found.without_work.sum()),
    }
    table = Table.of("processes", "by process", _columns(titles), rows)
    return Section(NAME, TITLE, facts, (table,), tuple(_notes(found, used, titles)))


def _titles(scope: Scope) -> dict[str, str]:
    """What is told, by key: not what was not recorded."""
    known = coverage_of(scope.profile)
    return {key: title for key, (title, whole) in known.items() if whole.ns or key == "launch"}


def _share(found: Coverage, sums: tuple[I8, I8]) -> dict[str, object]:
    ns, count = (int(column.sum()) for column in sums)
    return {"ns": ns, "percent": share(ns, int(found.gpu_time.sum())), "activities": count}


def _columns(titles: Mapping[str, str]) -> Iterator[TableColumn]:
    yield TableColumn("process", "process")
    yield TableColumn("gpu_time_ns", "GPU time", "ns")
    yield TableColumn("activities", "activities", "count")
    for key, title in titles.items():
        yield TableColumn(f"{key}_ns", "", "ns")
        yield TableColumn(f"{key}_percent", title, "percent")
        yield TableColumn(f"{key}_activities", "", "count")
    yield TableColumn("before_launch", "before launch", "count")
    yield TableColumn("opaque_graphs_ns", "opaque graphs", "ns")
    yield TableColumn("calls_without_work", "", "count")


def _row(found: Coverage, at: int, titles: Mapping[str, str]) -> Iterator[Value]:
    whole = int(found.gpu_time[at])
    yield whole
    yield int(found.activities[at])
    for key in titles:
        ns, count = (int(column[at]) for column in found.covered[key])
        yield from (ns, share(ns, whole), count)
    yield from (int(found.before_launch[at]) or None, int(found.opaque[at]) or None)
    yield int(found.without_work[at])


def _notes(found: Coverage, used: list[int], titles: Mapping[str, str]) -> Iterator[str]:
    """Say where little is known, of what is known of anything."""
    for key, title in titles.items():
        covered = found.covered[key][0]
        low = [at for at in used if 100 * int(covered[at]) < LOW * int(found.gpu_time[at])]
        if low:
            where = f" in {len(low)} of {len(used)} processes" if len(used) > 1 else ""
            yield f"low coverage by {title}{where}: shares are of the known part"
