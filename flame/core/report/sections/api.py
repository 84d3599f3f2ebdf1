"""Tell how long threads were in which API calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from flame.core.analysis.distribution import Distributions, distributions
from flame.core.columns import I4, I8, Column, distinct, sum_by, unique, unique_rows
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import NONE
from flame.core.model.calls import CallClass
from flame.core.model.threads.call_rows import UNKNOWN_RESULT
from flame.core.names.call_results import NOT_READY, RENUMBERED, result_name
from flame.core.report.host.call_rows import (
    ShownCalls,
    ShownFailures,
    nested_calls,
    shown_calls,
    shown_failures,
)
from flame.core.report.host_calls import NO_CALLS, RECORD_CALLS, HostCalls
from flame.core.report.measures.times import ratios, times_cells, times_columns
from flame.core.report.scope import Scope
from flame.core.report.table import Place, Section, Table, TableColumn, Value, picked, share

NAME, TITLE = "api", "API calls of the host"


@dataclass(frozen=True, eq=False)
class CallTimes:
    """Sum up the outermost calls by shown name, i8[n] each.

    ``kind`` is the `CallClass`, ``threads`` how many make such calls, ``thread_time`` how long
    these were recorded in all, ns; ``longest`` is the place of the longest in ``calls``, -1 where
    all are within others. ``inside`` counts those, ``failed`` the calls of both kinds that did not
    return 0, None where the trace does not tell.
    """

    calls: HostCalls
    shown: I8
    kind: I8
    times: Distributions
    threads: I8
    thread_time: I8
    longest: I8
    inside: I8
    failed: I8 | None

    @property
    def order(self) -> I8:
        """The places of those that there is anything to tell of, longest first."""
        order: I8 = np.lexsort((self.shown, -self.times.total))
        told = (self.times.count > 0) | (self.inside > 0)
        if self.failed is not None:
            told |= self.failed > 0
        return order[told[order]]


def call_times(scope: Scope, failures: ShownFailures | None) -> CallTimes | None:
    """Sum up the calls of ``scope``, of which these are ``failures``; None where there are none."""
    calls = scope.calls
    if calls is None or not len(calls):
        return None
    nested = nested_calls(scope)
    failed = None if failures is None else failures.shown
    own, own_place, own_times = calls.by_name
    shown = unique(np.concatenate([own, nested, *([] if failed is None else [failed])]))
    size, place = len(shown), np.searchsorted(shown, own)
    times, own_longest = own_times.placed(place, size), calls.longest(own_place, len(own))
    longest = np.full(size, NONE, np.int64)
    longest[place] = own_longest
    place_of_pair, thread_of_pair = _pairs(own_place, calls.thread)
    place_of_pair = place[place_of_pair]
    of_thread = scope.thread_times[thread_of_pair]
    return CallTimes(
        calls,
        shown,
        scope.profile.frames.call_classes(shown).astype(np.int64),
        times,
        np.bincount(place_of_pair, minlength=size).astype(np.int64),
        sum_by(place_of_pair, of_thread, size),
        longest,
        _count(shown, nested),
        None if failed is None else _count(shown, failed),
    )


def _pairs(place: I4, thread: I4) -> tuple[I8, I8]:
    """Find the different pairs of ``place`` and ``thread``."""
    size = int(thread.max(initial=0)) + 1
    pairs = unique(place.astype(np.int64) * size + thread)
    return pairs // size, pairs % size


def _count(shown: I8, of: I8) -> I8:
    return np.bincount(_places(shown, of), minlength=len(shown)).astype(np.int64)


def _places(shown: I8, of: I8) -> I8:
    """Where each ``of`` is among the frames ``shown``, which have all of them."""
    place = np.zeros(int(shown[-1]) + 1, np.int64)
    place[shown] = np.arange(len(shown))
    return place[of]


def _columns(found: CallTimes, failed: bool) -> tuple[TableColumn, ...]:
    """List the columns; people see of those within others, and of errors, only where any are."""
    return (
        TableColumn("name", "call"),
        TableColumn("class", ""),
        *times_columns("calls"),
        TableColumn("worst", "", "ratio"),
        TableColumn("inside", "inside others" if found.inside.any() else "", "count"),
        TableColumn("errors", "errors" if failed else "", "count"),
        TableColumn("threads", "", "count"),
        TableColumn("thread_percent", "of threads", "percent"),
    )


_BY_ROW = (TableColumn("name", "call"), *times_columns("all"))
_RESULTS = (
    TableColumn("name", "call"),
    TableColumn("value", "returned", "number"),
    TableColumn("error", "that is"),
    TableColumn("count", "number", "count"),
    TableColumn("first_ns", "first at", "moment"),
)


def api_section(scope: Scope) -> Section:
    """Tell the outermost calls by name, and which calls did not return 0."""
    failures = shown_failures(scope)
    found = call_times(scope, failures)
    if found is None:
        return Section(NAME, TITLE, why=NO_CALLS, how=RECORD_CALLS)
    failed = failures is not None and bool((failures.value != NOT_READY).any())
    tables = [_table(found, failed)]
    results = [] if failures is None else _results(found.calls, failures)
    if results:
        tables.append(_result_table(results))
    if "row" in scope.details:
        tables.append(_by_row(found.calls, shown_calls(scope)))
    facts = {
        "calls": len(found.calls),
        "total_ns": int(found.times.total.sum()),
        "inside": int(found.inside.sum()),
        "errors": None if failures is None else len(failures.shown),
    }
    return Section(NAME, TITLE, facts, tuple(tables), tuple(_notes(results)))


def _table(found: CallTimes, failed: bool) -> Table:
    order = found.order
    pairs = zip(found.times.total.tolist(), found.thread_time.tolist(), strict=True)
    unknown = [None] * len(found.shown)
    cells: tuple[Any, ...] = (
        found.calls.names(found.shown),
        [CallClass(kind).name.lower() for kind in found.kind.tolist()],
        *_times_cells(found.times),
        ratios(found.times.maximum, found.times.p50),
        found.inside,
        unknown if found.failed is None else found.failed,
        found.threads,
        [share(*pair) for pair in pairs],
    )
    windows = [
        Place(window=(int(found.calls.start[at]), int(found.calls.end[at]))) if at >= 0 else None
        for at in found.longest[order].tolist()
    ]
    return Table.of("rows", "", _columns(found, failed), picked(order, *cells), windows)


def _times_cells(times: Distributions) -> Iterator[Column | Sequence[Value]]:
    """The cells of `times_columns`, None for how long those are of which there are none."""
    total, percent, count, *lengths = times_cells(times)
    yield from (total, percent, count)
    some = (times.count > 0).tolist()
    for column in lengths:
        cells = column.tolist() if isinstance(column, np.ndarray) else column
        yield [cell if known else None for cell, known in zip(cells, some, strict=True)]


class Result(NamedTuple):
    """Say how often calls of a ``name`` returned ``value``, not 0, and when they first did, ns."""

    name: str
    value: int
    times: int
    begin: int
    end: int

    @property
    def number(self) -> int | None:
        """What was returned; None where that is not known."""
        return None if self.value == UNKNOWN_RESULT else self.value

    @property
    def error(self) -> str | None:
        """What CUDA calls it."""
        return result_name(self.name, self.value)

    @property
    def of_runtime(self) -> bool:
        """Whether it is a cudaError."""
        return (self.error or "").startswith("cudaError")


def _results(calls: HostCalls, failures: ShownFailures) -> list[Result]:
    """Tell what calls returned instead of 0, by name and number, most first."""
    first, place = unique_rows([failures.shown, failures.value])
    count = np.bincount(place, minlength=len(first))
    order = np.argsort(-count, kind="stable")
    earliest = np.lexsort((failures.start, place))[np.cumsum(count) - count]
    names = calls.names(failures.shown[first[order]])
    columns = (failures.value[first], count, failures.start[earliest], failures.end[earliest])
    rows = zip(names, *(column[order].tolist() for column in columns), strict=True)
    return [Result(*row) for row in rows]


def _result_table(results: list[Result]) -> Table:
    rows = [(one.name, one.number, one.error, one.times, one.begin) for one in results]
    windows = [
        Place(window=(one.begin, one.end)) if one.end > one.begin else None for one in results
    ]
    return Table.of("results", "calls that did not return 0", _RESULTS, rows, windows)


def _by_row(calls: HostCalls, every: ShownCalls) -> Table:
    """Tell all calls by name, those within others counted as well."""
    shown, place = distinct(every.shown)
    times = distributions(place, every.length, len(shown))
    order = np.argsort(-times.total, kind="stable")
    rows = picked(order, calls.names(shown), *times_cells(times))
    return Table.of("by_row", "by row of the trace, calls within others too", _BY_ROW, rows)


def _notes(results: list[Result]) -> Iterator[str]:
    yield "calls within other calls are part of these"
    if any(one.value in RENUMBERED and one.of_runtime for one in results):
        yield "cudaError names are those of CUDA 10.1 (2019) and later"
    if any(one.value == NOT_READY for one in results):
        yield f"{NOT_READY} says that work goes on, and is no error"
