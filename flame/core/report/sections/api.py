"""Tell how long threads were in which API calls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flame.core.analysis.distribution import Distributions, distributions
from flame.core.columns import I8, distinct, sum_by, unique_rows
from flame.core.model.calls import CallClass
from flame.core.report.host_calls import NO_CALLS, RECORD_CALLS, HostCalls
from flame.core.report.measures.times import ratios, times_cells, times_columns
from flame.core.report.scope import Scope
from flame.core.report.table import Place, Section, Table, TableColumn, picked, share

NAME, TITLE = "api", "API calls of the host"


@dataclass(frozen=True, eq=False)
class CallTimes:
    """Sum up the outermost calls by shown name, i8[n] each.

    ``kind`` is the `CallClass`, ``threads`` how many make such calls, ``thread_time`` how long
    these were recorded in all, ns; ``longest`` is the place of the longest in ``calls``.
    """

    calls: HostCalls
    shown: I8
    kind: I8
    times: Distributions
    threads: I8
    thread_time: I8
    longest: I8


def call_times(scope: Scope) -> CallTimes | None:
    """Sum up the calls of ``scope``; None where there are none."""
    calls = scope.calls
    if calls is None or not len(calls):
        return None
    shown, place = distinct(calls.shown)
    size = len(shown)
    kind = np.zeros(size, np.int64)
    kind[place] = calls.kind
    pair, _ = unique_rows([place, calls.thread])
    of_thread = scope.thread_times[calls.thread[pair]]
    return CallTimes(
        calls,
        shown,
        kind,
        distributions(place, calls.length, size),
        np.bincount(place[pair], minlength=size).astype(np.int64),
        sum_by(place[pair], of_thread, size),
        calls.longest(place, size),
    )


_COLUMNS = (
    TableColumn("name", "call"),
    TableColumn("class", ""),
    *times_columns("calls"),
    TableColumn("worst", "", "ratio"),
    TableColumn("threads", "", "count"),
    TableColumn("thread_percent", "of threads", "percent"),
)


def api_section(scope: Scope) -> Section:
    """Tell the outermost calls by name."""
    found = call_times(scope)
    if found is None:
        return Section(NAME, TITLE, why=NO_CALLS, how=RECORD_CALLS)
    order = np.argsort(-found.times.total, kind="stable")
    pairs = zip(found.times.total.tolist(), found.thread_time.tolist(), strict=True)
    cells = (
        found.calls.names(found.shown),
        [CallClass(kind).name.lower() for kind in found.kind.tolist()],
        *times_cells(found.times),
        ratios(found.times.maximum, found.times.p50),
        found.threads,
        [share(*pair) for pair in pairs],
    )
    windows = [
        Place(window=(int(found.calls.start[at]), int(found.calls.end[at])))
        for at in found.longest[order].tolist()
    ]
    table = Table.of("rows", "", _COLUMNS, picked(order, *cells), windows)
    facts = {"calls": len(found.calls), "total_ns": int(found.times.total.sum())}
    return Section(NAME, TITLE, facts, (table,), (_OUTERMOST,))


_OUTERMOST = "calls within other calls are part of these"
