"""Tell what allocating and freeing memory cost the host."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flame.core.analysis.distribution import Distributions, distributions
from flame.core.columns import I8, distinct, sum_by
from flame.core.model.calls import CallClass
from flame.core.report.host_calls import NO_CALLS, RECORD_CALLS, HostCalls
from flame.core.report.measures.allocator_memory import given_out
from flame.core.report.measures.times import times_cells, times_columns
from flame.core.report.scope import Scope
from flame.core.report.table import Place, Section, Table, TableColumn, picked, share

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


_GIVEN = (
    TableColumn("gpu", "GPU"),
    TableColumn("peak_bytes", "at most", "bytes"),
    TableColumn("percent", "of all", "percent"),
    TableColumn("peak_ns", "at", "ns"),
    TableColumn("first_bytes", "at first", "bytes"),
    TableColumn("last_bytes", "at the end", "bytes"),
    TableColumn("changes", "changes", "count"),
)


def allocator_table(scope: Scope) -> Table:
    """Tell how much PyTorch's allocator had given out, by GPU."""
    found = given_out(scope)
    rows = []
    for one in found:
        whole = scope.profile.devices[one.device].facts.memory
        part = share(one.most, whole) if whole else None
        rows.append((one.label, one.most, part, one.at, one.first, one.last, one.number))
    places = [Place(window=(one.at, one.until)) for one in found]
    return Table.of("allocator", "given out by PyTorch's allocator", _GIVEN, rows, places)


def memory_section(scope: Scope) -> Section:
    """Tell the calls that allocate or free memory, by name, and what an allocator gave out."""
    calls, given = scope.calls, allocator_table(scope)
    if calls is None or scope.lacks_calls:
        if given.rows:
            return Section(NAME, TITLE, tables=(given,))
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
    facts = {
        "calls": len(found.calls),
        "total_ns": int(found.times.total.sum()),
        "long": int(found.long.sum()),
        "long_ns": int(found.long_time.sum()),
        "per_iteration_p50": found.calls.per_iteration(),
    }
    notes = () if len(found.calls) else ("no call allocates or frees memory",)
    return Section(NAME, TITLE, facts, (table, given) if given.rows else (table,), notes)
