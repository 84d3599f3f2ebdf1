"""Tell how fast kernels were launched, and how long each launch waited."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from flame.core.analysis.distribution import Distributions, distribution, distributions
from flame.core.analysis.utilization import Utilization
from flame.core.columns import I8, Column, sum_by, unique_rows
from flame.core.model.frames import Kind
from flame.core.report.scope import Scope
from flame.core.report.table import Place, Section, Table, TableColumn, Value, picked, share
from flame.core.timeline.devices import device_label
from flame.core.timeline.lanes import thread_label

NAME, TITLE = "launches", "Launches"

SHORT = (5_000, 10_000, 20_000)
"""Lengths, ns, below which kernels are counted."""

STORMS = ((50_000, 10_000), (100_000, 20_000))
"""A storm of launches: at least so many kernels in a second, of which half are at most so long."""

NOT_QUEUED = 10_000
"""A kernel that starts sooner after its launch call, ns, found the GPU waiting."""

_S = 1_000_000_000


class LaunchRate(NamedTuple):
    """Say how many kernels ran on a GPU, and how long they were, ns.

    ``short`` counts those below each of `SHORT`. ``calls`` are the API calls that launched
    ``launched`` of the kernels. ``iterations`` is how many kernels an iteration has, as a median.
    """

    gpu: Utilization
    kernels: int
    p50: int
    p90: int
    p99: int
    short: tuple[int, ...]
    calls: int
    launched: int
    iterations: int | None

    @property
    def per_second(self) -> float | None:
        """Kernels in a second of the window."""
        return round(self.kernels * _S / self.gpu.length, 1) if self.gpu.length else None

    @property
    def storm(self) -> bool:
        """Whether people call it a storm, which says nothing of whether the GPU waited."""
        length = self.gpu.length
        return any(
            self.kernels * _S >= rate * length and self.p50 <= long for rate, long in STORMS
        ) and bool(length)


def launch_rates(scope: Scope) -> tuple[LaunchRate, ...]:
    """Count the kernels that each GPU ran."""
    rows = scope.rows_of(Kind.KERNEL)
    device = scope.profile.activities.device[rows]
    rates = (_rate(scope, gpu, rows[device == gpu.device]) for gpu in scope.gpus)
    return tuple(rate for rate in rates if rate is not None)


def _rate(scope: Scope, gpu: Utilization, rows: I8) -> LaunchRate | None:
    table = scope.profile.activities
    times = distributions(np.zeros(len(rows), np.int64), table.duration[rows], 1)
    if not len(rows):
        return None
    launched = rows[table.launched[rows]]
    calls, _ = unique_rows([table.thread[launched], table.launch_start[launched]])
    return LaunchRate(
        gpu,
        len(rows),
        *(int(one[0]) for one in (times.p50, times.p90, times.p99)),
        short=tuple(int((table.duration[rows] < length).sum()) for length in SHORT),
        calls=len(calls),
        launched=len(launched),
        iterations=_per_iteration(scope, rows),
    )


def _per_iteration(scope: Scope, rows: I8) -> int | None:
    found, table = scope.profile.iterations, scope.profile.activities
    of = found.of(table)[rows] if len(found) else np.zeros(0, np.int64)
    number = distribution(np.bincount(of[of >= 0], minlength=len(found)))
    return number.p50 if number else None


# From the launch to the end


@dataclass(frozen=True, eq=False)
class LaunchedKernels:
    """Hold kernels with a recorded launch: ``rows`` of the activities, i8[n] each, times in ns.

    ``queue`` is the time from the end of the call to the start of the kernel, negative where that
    began before; ``total`` from the beginning of the call to the end of both.
    """

    rows: I8
    api: I8
    queue: I8
    kernel: I8
    total: I8

    @property
    def shorter(self) -> Column:
        """Which are shorter than the call that launched them, bool[n]."""
        return self.kernel < self.api


def launched_kernels(scope: Scope) -> LaunchedKernels:
    """Measure the kernels of ``scope`` whose launch was recorded."""
    rows, table = scope.rows_of(Kind.KERNEL), scope.profile.activities
    rows = rows[table.launched[rows]]
    begin, end, start = (
        column[rows] for column in (table.launch_start, table.launch_end, table.start)
    )
    kernel = table.duration[rows]
    return LaunchedKernels(
        rows,
        np.maximum(end - begin, 0),
        start - end,
        kernel,
        np.maximum(start + kernel, end) - begin,
    )


@dataclass(frozen=True, eq=False)
class Executions:
    """Sum up launched kernels by process, thread, GPU, call and kernel as shown.

    ``rows`` i8[n] is an activity of each group. ``queue`` is of those that queued: which did not
    begin before their call ended. ``shares`` i8[n] is the time of the calls, of which each counts
    once however many kernels it launched.
    """

    rows: I8
    shares: I8
    api: Distributions
    queue: Distributions
    kernel: Distributions
    total: Distributions

    @property
    def order(self) -> I8:
        """The places, by the time from launch to end."""
        order: I8 = np.argsort(-self.total.total, kind="stable")
        return order


def executions(scope: Scope, found: LaunchedKernels) -> Executions:
    """Sum up the kernels of ``found``."""
    table, shown, rows = scope.profile.activities, scope.labels.shown, found.rows
    keys = [column[rows] for column in (table.process, table.thread, table.device)]
    keys += [shown[column[rows]] for column in (table.launch, table.frame)]
    first, group = unique_rows(keys)
    size, queued = len(first), found.queue >= 0
    return Executions(
        rows[first],
        sum_by(group, table.launch_share[rows], size),
        distributions(group, found.api, size),
        distributions(group[queued], found.queue[queued], size),
        distributions(group, found.kernel, size),
        distributions(group, found.total, size),
    )


@dataclass(frozen=True, eq=False)
class FirstLaunches:
    """Compare the first launch of each kernel in its process with its others, i8[n] each.

    ``rows`` are the activities that were first, ``api`` how long their calls took, ns; ``usual``
    the median of the others, which are ``others`` many, and ``excess`` what the first took longer:
    code is loaded when it is first launched. Kernels that were launched once are left out.
    """

    rows: I8
    api: I8
    usual: I8
    others: I8

    @property
    def excess(self) -> I8:
        """What the first took longer, ns."""
        return np.maximum(self.api - self.usual, 0)


def first_launches(scope: Scope, found: LaunchedKernels) -> FirstLaunches:
    """Compare first launches; of several kernels of one call the first counts."""
    table = scope.profile.activities
    order = np.lexsort((table.start[found.rows], table.launch_start[found.rows]))
    rows, api = found.rows[order], found.api[order]
    first, group = unique_rows([table.process[rows], table.frame[rows]])
    rest = np.ones(len(rows), bool)
    rest[first] = False
    others = distributions(group[rest], api[rest], len(first))
    some = others.count > 0
    return FirstLaunches(rows[first][some], api[first][some], others.p50[some], others.count[some])


# Pace


class Pace(NamedTuple):
    """Hold the time from the end of a kernel to the start of the next of its name on its GPU.

    By shown ``frame`` i8[n]; of kernels that run at once it is 0.
    """

    frame: I8
    between: Distributions


def pace(scope: Scope) -> Pace:
    """Measure how evenly the kernels of each name follow each other."""
    rows, table = scope.rows_of(Kind.KERNEL), scope.profile.activities
    shown = scope.labels.shown[table.frame[rows]].astype(np.int64)
    order = np.lexsort((table.start[rows], table.device[rows], shown))
    rows, shown = rows[order], shown[order]
    device, start = table.device[rows], table.start[rows]
    same = (shown[1:] == shown[:-1]) & (device[1:] == device[:-1])
    wait = np.maximum(start[1:] - (start + table.duration[rows])[:-1], 0)[same]
    first, group = unique_rows([shown[1:][same]])
    return Pace(shown[1:][same][first], distributions(group, wait, len(first)))


# Tables

_RATE = (
    TableColumn("gpu", "GPU"),
    TableColumn("kernels", "kernels", "count"),
    TableColumn("per_second", "a second", "count"),
    TableColumn("p50_ns", "p50", "ns"),
    TableColumn("p90_ns", "p90", "ns"),
    TableColumn("p99_ns", "p99", "ns"),
    TableColumn("under_5us", "", "count"),
    TableColumn("under_10us", "", "count"),
    TableColumn("under_20us", "", "count"),
    TableColumn("under_10us_percent", "below 10 µs", "percent"),
    TableColumn("launch_calls", "launch calls", "count"),
    TableColumn("kernels_per_call", "kernels each", "ratio"),
    TableColumn("per_iteration_p50", "an iteration", "count"),
    TableColumn("storm", "is"),
)
_SPREADS = ("ns", "mean_ns", "p50_ns", "min_ns", "max_ns")
_EXEC = (
    TableColumn("thread", ""),
    TableColumn("pid", "", "count"),
    TableColumn("tid", "", "count"),
    TableColumn("gpu", "GPU"),
    TableColumn("call", "call"),
    TableColumn("kernel", "kernel"),
    TableColumn("count", "number", "count"),
    TableColumn("queued", "queued", "count"),
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
    return f"{percent:.1f} % of the kernels are shorter than the call that launched them"


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
    cells = (names, found.api, found.usual, found.others, found.excess, begin)
    order = np.argsort(-found.excess, kind="stable")
    places = [Place(window=(int(begin[at]), int(end[at]))) for at in order.tolist()]
    return Table.of("first", "first launches", _FIRST, picked(order, *cells), places)


def _pace_table(scope: Scope, found: Pace) -> Table:
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
