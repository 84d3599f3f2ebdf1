"""List what NVTX tells besides ranges that nest: marks, and start/end ranges."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flame.core.analysis.distribution import distributions
from flame.core.columns import I8, sum_by, unique_rows
from flame.core.model.threads.events import EventStyle
from flame.core.report.measures.range_styles import NamedEvents, events_of
from flame.core.report.measures.times import times_cells, times_columns
from flame.core.report.scope import Scope
from flame.core.report.table import Place, Table, TableColumn, Value, picked

_NAMES = (TableColumn("name", "range"), TableColumn("domain", "domain"))
_START_END = (*_NAMES, *times_columns("these"), TableColumn("threads", "", "count"))
_MARKS = (
    TableColumn("name", "mark"),
    TableColumn("domain", "domain"),
    TableColumn("count", "number", "count"),
    TableColumn("threads", "threads", "count"),
    TableColumn("first_ns", "first at", "moment"),
    TableColumn("last_ns", "last at", "moment"),
)


def event_tables(scope: Scope) -> Iterator[Table]:
    """List the tables of start/end ranges and of marks that are not empty."""
    found = events_of(scope, EventStyle.START_END)
    if found is not None:
        yield _start_end(found)
    found = events_of(scope, EventStyle.MARK)
    if found is not None:
        yield _marks(found)


def _start_end(found: NamedEvents) -> Table:
    """Tell how long start/end ranges lasted: on the host alone, for they are of no thread."""
    events, size = found.events, len(found.name)
    length = events.end - events.start
    times = distributions(found.group, length, size)
    order = np.argsort(-times.total, kind="stable")
    longest = np.lexsort((length, found.group))[np.cumsum(times.count) - 1]
    places = [
        Place(window=(int(events.start[at]), int(events.end[at]))) if length[at] else None
        for at in longest[order].tolist()
    ]
    cells = (*_name_cells(found), *times_cells(times), _threads(found))
    return Table.of("start_end", "start/end ranges", _START_END, picked(order, *cells), places)


def _marks(found: NamedEvents) -> Table:
    events, size = found.events, len(found.name)
    count = np.bincount(found.group, minlength=size)
    by_time = np.lexsort((events.start, found.group))
    last = np.cumsum(count) - 1
    first_at, last_at = (events.start[by_time[place]] for place in (last - count + 1, last))
    order = np.argsort(-count, kind="stable")
    cells = (*_name_cells(found), count, _threads(found), first_at, last_at)
    return Table.of("marks", "marks", _MARKS, picked(order, *cells))


def _name_cells(found: NamedEvents) -> tuple[list[Value], list[Value]]:
    names = [one.name or "[no name]" for one in found.names]
    return [*names], [one.domain or None for one in found.names]


def _threads(found: NamedEvents) -> I8:
    """How many threads have each name."""
    first, _ = unique_rows([found.group, found.events.thread])
    return sum_by(found.group[first], np.ones(len(first), np.int64), len(found.name))
