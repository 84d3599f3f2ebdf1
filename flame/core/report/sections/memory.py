"""Tell what allocating and freeing memory cost the host."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flame.core.analysis.distribution import Distributions, distributions
from flame.core.columns import I8, distinct, sum_by
from flame.core.model.calls import CallClass
from flame.core.report.host_calls import NO_CALLS, RECORD_CALLS, HostCalls
from flame.core.report.measures.chosen_iterations import calls_per_iteration, iteration_notes
from flame.core.report.measures.times import times_cells, times_columns
from flame.core.report.scope import Scope
from flame.core.report.table import Place, Section, Table, TableColumn, picked

NAME, TITLE = "memory", "Allocations and frees"

LONG = 1_000_000
"""Calls that last longer, ns, are counted apart: an allocator's own take microseconds."""


@dataclass(frozen=True, eq=False)
class Allocations:
    """Sum up calls that allocate or free by shown name, i8[n] each.

    ``long`` counts those that last longer than `LONG`, ``long_time`` sums them up; ``longest`` is
    the place of the longest in ``calls``.
    """

    calls: HostCalls
    shown: I8
    times: Distributions
    long: I8
    long_time: I8
    longest: I8


def allocations(calls: HostCalls) -> Allocations:
    """Sum up those of ``calls`` that allocate or free memory."""
    calls = calls.of_class(CallClass.ALLOC)
    shown, place = distinct(calls.shown)
    size, is_long = len(shown), calls.length > LONG
    return Allocations(
        calls,
        shown,
        distributions(place, calls.length, size),
        np.bincount(place[is_long], minlength=size).astype(np.int64),
        sum_by(place[is_long], calls.length[is_long], size),
        calls.longest(place, size),
    )


_COLUMNS = (
    TableColumn("name", "call"),
    *times_columns("these"),
    TableColumn("long", "over 1 ms", "count"),
    TableColumn("long_ns", "", "ns"),
    TableColumn("longest_begin_ns", "", "ns"),
)


def memory_section(scope: Scope) -> Section:
    """Tell the calls that allocate or free memory, by name."""
    calls = scope.calls
    if calls is None or scope.lacks_calls:
        return Section(NAME, TITLE, why=scope.lacks_calls or NO_CALLS, how=RECORD_CALLS)
    found = allocations(calls)
    order = np.argsort(-found.times.total, kind="stable")
    begin, end = (time[found.longest] for time in (found.calls.start, found.calls.end))
    cells = (
        calls.names(found.shown),
        *times_cells(found.times),
        found.long,
        found.long_time,
        begin,
    )
    windows = [Place(window=(int(begin[at]), int(end[at]))) for at in order.tolist()]
    table = Table.of("rows", "", _COLUMNS, picked(order, *cells), windows)
    each = calls_per_iteration(scope, found.calls)
    facts = {
        "calls": len(found.calls),
        "total_ns": int(found.times.total.sum()),
        "long": int(found.long.sum()),
        "long_ns": int(found.long_time.sum()),
        "per_iteration_p50": each,
    }
    notes = iteration_notes(each)
    if not len(found.calls):
        notes = ("no call allocates or frees memory",)
    return Section(NAME, TITLE, facts, (table,), notes)
