"""Tell how fast kernels were launched, and how long each launch waited."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from flame.core.analysis.distribution import Distributions
from flame.core.columns import Column
from flame.core.report.measures.launch_times import (
    NOT_QUEUED,
    Executions,
    FirstLaunches,
    KernelPace,
    LaunchedKernels,
    LaunchRate,
    executions,
    first_launches,
    launch_rates,
    launched_kernels,
    pace,
)
from flame.core.report.scope import Scope
from flame.core.report.table import Place, Section, Table, TableColumn, Value, picked, share
from flame.core.timeline.devices import device_label
from flame.core.timeline.lanes import thread_label

NAME, TITLE = "launches", "Launches"

_RATE = (
    TableColumn("gpu", "GPU"),
    TableColumn("kernels", "kernels", "count"),
    TableColumn("per_second", "per s", "count"),
    TableColumn("p50_ns", "p50", "ns"),
    TableColumn("p90_ns", "", "ns"),
    TableColumn("p99_ns", "p99", "ns"),
    TableColumn("under_5us", "", "count"),
    TableColumn("under_10us", "", "count"),
    TableColumn("under_20us", "", "count"),
    TableColumn("under_10us_percent", "below 10 µs", "percent"),
    TableColumn("launch_calls", "calls", "count"),
    TableColumn("kernels_per_call", "a call", "ratio"),
    TableColumn("per_iteration_p50", "an iteration", "count"),
    TableColumn("storm", "is"),
)
_SPREADS = ("ns", "mean_ns", "p50_ns", "min_ns", "max_ns")
_EXEC = (
    TableColumn("thread", "thread"),
    TableColumn("pid", "", "count"),
    TableColumn("tid", "", "count"),
    TableColumn("gpu", "GPU"),
    TableColumn("call", "call"),
    TableColumn("kernel", "kernel"),
    TableColumn("count", "number", "count"),
    TableColumn("queued", "", "count"),
    TableColumn("api_once_ns", "", "ns"),
    *(
        TableColumn(f"{part}_{key}", title if key == "p50_ns" else "", "ns")
        for part, title in (
            ("api", "call p50"),
            ("queue", "queue p50"),
            ("kernel", "kernel p50"),
            ("total", ""),
        )
        for key in _SPREADS
    ),
)
_FIRST = (
    TableColumn("kernel", "kernel"),
    TableColumn("full_name", ""),
    TableColumn("first_ns", "first call", "ns"),
    TableColumn("p50_ns", "p50 of others", "ns"),
    TableColumn("others", "others", "count"),
    TableColumn("excess_ns", "longer by", "ns"),
    TableColumn("begin_ns", "", "ns"),
)
_PACE = (
    TableColumn("kernel", "kernel"),
    TableColumn("count", "pauses", "count"),
    TableColumn("p50_ns", "p50", "ns"),
    TableColumn("p99_ns", "p99", "ns"),
    TableColumn("max_ns", "max", "ns"),
)


def launches_section(scope: Scope) -> Section:
    """Tell the rate of kernels, and how long launches took and waited."""
    rates = launch_rates(scope)
    if not rates:
        return Section(NAME, TITLE, why="no kernel was recorded")
    found = launched_kernels(scope)
    tables = [Table.of("rate", "kernels", _RATE, map(_rate_row, rates))]
    notes: tuple[str, ...] = ("no launch was recorded",)
    facts: dict[str, object] = {"kernels": sum(rate.kernels for rate in rates)}
    if len(found.rows):
        first, notes = first_launches(scope, found), (_shorter_words(found),)
        facts |= _facts(found, first)
        tables += [_exec_table(scope, executions(scope, found)), _first_table(scope, first)]
    if "pace" in scope.details:
        tables.append(_pace_table(scope, pace(scope)))
    return Section(NAME, TITLE, facts, tuple(tables), notes)


def _facts(found: LaunchedKernels, first: FirstLaunches) -> dict[str, object]:
    shorter = found.shorter
    return {
        "launched": len(found.rows),
        "shorter_than_call": int(shorter.sum()),
        "shorter_and_not_queued": int((shorter & (found.queue < NOT_QUEUED)).sum()),
        "first_launch_excess_ns": int(first.excess.sum()),
    }


def _shorter_words(found: LaunchedKernels) -> str:
    percent = 100 * int(found.shorter.sum()) / len(found.rows)
    return f"{percent:.1f} % of the kernels are shorter than their launch"


def _rate_row(rate: LaunchRate) -> tuple[Value, ...]:
    return (
        rate.gpu.label,
        rate.kernels,
        rate.per_second,
        rate.p50,
        rate.p90,
        rate.p99,
        *rate.short,
        share(rate.short[1], rate.kernels),
        rate.calls or None,
        round(rate.launched / rate.calls, 3) if rate.calls else None,
        rate.iterations,
        "storm" if rate.storm else None,
    )


def _exec_table(scope: Scope, found: Executions) -> Table:
    table, profile = scope.profile.activities, scope.profile
    order = found.order
    threads = [scope.thread(thread) for thread in table.thread[found.rows].tolist()]
    names = _names(scope, table.frame[found.rows])
    cells: list[Any] = [
        [thread_label(profile, thread) for thread in table.thread[found.rows].tolist()],
        [one["pid"] for one in threads],
        [one["tid"] for one in threads],
        [device_label(profile, device) for device in table.device[found.rows].tolist()],
        _names(scope, table.launch[found.rows]),
        names,
        found.total.count,
        found.queue.count,
        found.shares,
    ]
    for times in (found.api, found.queue, found.kernel, found.total):
        cells += _spread(times)
    places = [Place(("kernel",), (names[at],)) for at in order.tolist()]
    return Table.of("exec", "from launch to end", _EXEC, picked(order, *cells), places)


def _spread(times: Distributions) -> Iterator[Sequence[Value]]:
    """The cells of `_SPREADS`; None where there is no value."""
    some = times.count > 0
    yield times.total.tolist()
    yield times.means
    for column in (times.p50, times.minimum, times.maximum):
        yield [value if one else None for value, one in zip(column.tolist(), some, strict=True)]


def _first_table(scope: Scope, found: FirstLaunches) -> Table:
    table = scope.profile.activities
    begin, end = table.launch_start[found.rows], table.launch_end[found.rows]
    names = _names(scope, table.frame[found.rows])
    kernels = [scope.profile.frames[frame] for frame in table.frame[found.rows].tolist()]
    full = [kernel.get("demangled") or kernel.name for kernel in kernels]
    cells = (names, full, found.api, found.usual, found.others, found.excess, begin)
    order = np.argsort(-found.excess, kind="stable")
    places = [Place(window=(int(begin[at]), int(end[at]))) for at in order.tolist()]
    return Table.of("first", "first launches", _FIRST, picked(order, *cells), places)


def _pace_table(scope: Scope, found: KernelPace) -> Table:
    between = found.between
    cells = (
        _names(scope, found.frame),
        between.count,
        between.p50,
        between.p99,
        between.maximum,
    )
    order = np.argsort(-between.p99, kind="stable")
    return Table.of("pace", "pauses between kernels of a name", _PACE, picked(order, *cells))


def _names(scope: Scope, frames: Column) -> list[str]:
    return [scope.labels.text[frame] for frame in frames.tolist()]
