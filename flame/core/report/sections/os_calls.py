"""Tell how long threads were in which calls of the operating system."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flame.core.analysis.distribution import Distributions, distributions
from flame.core.columns import I4, I8, sum_by, unique_rows
from flame.core.lazy_dataclass import dataclass
from flame.core.model.side_tables.os_calls import OsCalls, OsThread
from flame.core.report.host.os_time import (
    idle_in_calls,
    outermost,
    outermost_of,
    passing_calls,
)
from flame.core.report.measures.times import times_cells, times_columns
from flame.core.report.scope import Scope
from flame.core.report.table import Place, Section, Table, TableColumn, Value, picked

NAME, TITLE = "os", "Calls of the operating system"

WHY = "no call of the operating system was recorded"
HOW = "nsys profile --trace=osrt,cuda,nvtx records them"

_COLUMNS = (
    TableColumn("name", "function"),
    *times_columns("these"),
    TableColumn("inside_ns", "inside others", "ns"),
    TableColumn("idle_ns", "GPU idle", "ns"),
    TableColumn("threads", "threads", "count"),
)
_THREADS = (
    TableColumn("thread", "thread"),
    TableColumn("pid", ""),
    TableColumn("tid", ""),
    TableColumn("ns", "in calls", "ns"),
    TableColumn("count", "number", "count"),
    TableColumn("idle_ns", "GPU idle", "ns"),
    TableColumn("most", "most in"),
)


@dataclass(frozen=True, eq=False)
class OsTimes:
    """Sum up calls by function, i8[names] each, times in ns.

    ``times`` are of all calls; ``outer`` is the time of those within no other, and ``idle`` the
    part of that in which a GPU of the process had a gap. ``longest`` is the place of the longest
    call. The rest is by thread, i8[threads]: ``most`` is the function with most of its time.
    """

    calls: OsCalls
    times: Distributions
    outer: I8
    idle: I8
    threads: I8
    longest: I8
    thread_time: I8
    thread_count: I8
    thread_idle: I8
    most: I8


def os_times(scope: Scope) -> OsTimes | None:
    """Sum up the calls that ``scope`` leaves; None where none were recorded."""
    calls = passing_calls(scope)
    if calls is None:
        return None
    names, threads = len(calls.names), len(calls.threads)
    whole = outermost_of(scope.profile) if calls is scope.profile.os_calls else None
    pieces = outermost(calls) if whole is None else whole
    length, idle = pieces.end - pieces.start, idle_in_calls(scope, calls, pieces)
    lasted = calls.end - calls.start
    pair, _ = unique_rows([calls.name, calls.thread]) if len(calls) else (calls.start, None)
    order = np.lexsort((-calls.start, lasted, calls.name))
    longest = np.zeros(names, np.int64)
    longest[calls.name[order]] = order
    return OsTimes(
        calls,
        distributions(calls.name, lasted, names),
        sum_by(pieces.frame, length, names),
        sum_by(pieces.frame, idle, names),
        np.bincount(calls.name[pair], minlength=names).astype(np.int64),
        longest,
        sum_by(pieces.thread, length, threads),
        np.bincount(calls.thread, minlength=threads).astype(np.int64),
        sum_by(pieces.thread, idle, threads),
        _most(pieces.thread, pieces.frame, length, threads),
    )


def _most(thread: I4, name: I4, length: I8, threads: int) -> I8:
    """The function in which each thread was longest; -1 without any."""
    found = np.full(threads, -1, np.int64)
    if len(thread):
        first, place = unique_rows([thread, name])
        sums = sum_by(place, length, len(first))
        order = np.argsort(sums, kind="stable")
        found[thread[first[order]]] = name[first[order]]
    return found


def os_section(scope: Scope) -> Section:
    """Tell the calls by function and by thread, with the part of them in gaps of GPUs."""
    found = os_times(scope)
    if found is None:
        return Section(NAME, TITLE, why=WHY, how=HOW)
    facts = {
        "calls": len(found.calls),
        "total_ns": int(found.times.total.sum()),
        "outermost_ns": int(found.outer.sum()),
        "left_out": found.calls.left_out,
    }
    tables = (_by_function(found), _by_thread(scope, found))
    return Section(NAME, TITLE, facts, tables, tuple(_notes(found)))


def _by_function(found: OsTimes) -> Table:
    calls, inside = found.calls, found.times.total - found.outer
    cells = (
        list(calls.names),
        *times_cells(found.times),
        inside if inside.any() else [None] * len(inside),
        found.idle,
        found.threads,
    )
    order = np.argsort(-found.times.total, kind="stable")
    order = order[found.times.count[order] > 0]
    places = [
        Place(window=(int(calls.start[at]), int(calls.end[at])))
        for at in found.longest[order].tolist()
    ]
    return Table.of("rows", "", _COLUMNS, picked(order, *cells), places)


def _by_thread(scope: Scope, found: OsTimes) -> Table:
    order = np.argsort(-found.thread_time, kind="stable")
    order = order[found.thread_count[order] > 0]
    threads, names = found.calls.threads, found.calls.names
    cells = (
        [_name(scope, one) for one in threads],
        [one.pid if one.pid >= 0 else None for one in threads],
        [one.tid if one.tid >= 0 else None for one in threads],
        found.thread_time,
        found.thread_count,
        found.thread_idle,
        [names[at] if at >= 0 else None for at in found.most.tolist()],
    )
    return Table.of("threads", "by thread", _THREADS, picked(order, *cells))


def _name(scope: Scope, one: OsThread) -> Value:
    if one.thread >= 0:
        profile = scope.profile
        return profile.frames[int(profile.grouping.thread[one.thread])].name
    if one.tid < 0:
        return "[unknown thread]"
    return f"tid {one.tid}" if one.tid == one.pid else f"tid {one.tid} of pid {one.pid}"


def _notes(found: OsTimes) -> Iterator[str]:
    if not len(found.calls):
        yield "no call began in the time, or on the threads, that the filters leave"
    if found.calls.left_out:
        yield f"{found.calls.left_out:,} calls have no times that make sense: left out"
