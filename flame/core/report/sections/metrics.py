"""Tell what the counters of GPUs measured, in all and while ranges, iterations and kernels ran."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from flame.core.analysis.distribution import distributions
from flame.core.analysis.iterations import iteration_of_activities
from flame.core.analysis.utilization import Utilization
from flame.core.columns import I8, distinct
from flame.core.model.activities import has_times
from flame.core.model.frames import Kind
from flame.core.model.side_tables.gpu_metrics import GpuMetrics
from flame.core.report.measures.counter_samples import (
    CLASSES,
    ENOUGH,
    CounterSamples,
    by_class,
    counters_of,
)
from flame.core.report.measures.launching_calls import in_launch_order
from flame.core.report.measures.range_work import shown_ranges
from flame.core.report.scope import Scope
from flame.core.report.table import Place, Section, Table, TableColumn, Value
from flame.core.timeline.lane_intervals import LaneIntervals

NAME, TITLE = "metrics", "Counters of the GPUs"

WHY = "no counter of a GPU was sampled"
HOW = "nsys profile --gpu-metrics-devices=all samples them"

_ALL = (
    TableColumn("gpu", "GPU"),
    TableColumn("metric", "counter"),
    TableColumn("count", "samples", "count"),
    TableColumn("mean", "mean", "number"),
    TableColumn("p50", "p50", "number"),
    TableColumn("p95", "p95", "number"),
    TableColumn("max", "max", "number"),
)
_SHARES = (
    TableColumn("samples", "samples", "count"),
    TableColumn("sm_percent", "SM active", "percent"),
    TableColumn("tensor_percent", "tensor", "percent"),
    TableColumn("dram_percent", "DRAM", "percent"),
    TableColumn("dram_read_percent", "read", "percent"),
    TableColumn("dram_write_percent", "write", "percent"),
)


class Spans(NamedTuple):
    """Say when each of something ran on a GPU; ``lane`` is a place in ``names``."""

    names: list[str]
    lane: I8
    begin: I8
    end: I8


def metrics_section(scope: Scope) -> Section:
    """Tell each counter of each GPU over its windows, and some of them by what ran."""
    metrics = scope.profile.gpu_metrics
    if metrics is None or not len(metrics):
        return Section(NAME, TITLE, why=WHY, how=HOW)
    found = {gpu.device: _samples(metrics, gpu) for gpu in scope.gpus}
    what = (
        ("ranges", "by range, while what it launched ran", "range", range_spans),
        ("kernels", "by kernel", "kernel", kernel_spans),
        ("iterations", "by iteration", "iteration", iteration_spans),
    )
    tables = [Table.of("rows", "", _ALL, _rows(scope, found))]
    for key, title, word, spans in what:
        columns = (TableColumn("gpu", "GPU"), TableColumn("name", word), *_SHARES)
        in_order = spans is iteration_spans
        rows = [
            row
            for gpu in scope.gpus
            for row in _by(gpu, found[gpu.device], spans(scope, gpu), in_order)
        ]
        places = [Place(("kernel",), (str(row[1]),)) for row in rows] if key == "kernels" else ()
        tables.append(Table.of(key, title, columns, rows, places))
    facts = {"samples": len(metrics), "left_out": metrics.left_out}
    return Section(NAME, TITLE, facts, tuple(tables), tuple(_notes(scope, metrics)))


def _samples(metrics: GpuMetrics, gpu: Utilization) -> list[CounterSamples]:
    """The counters of a GPU in its windows."""
    if not len(gpu.windows):
        return []
    at = np.searchsorted(gpu.windows.low, metrics.time, "right") - 1
    inside = (at >= 0) & (metrics.time < gpu.windows.high[at])
    return counters_of(metrics, gpu.device, inside)


def _rows(scope: Scope, found: dict[int, list[CounterSamples]]) -> Iterator[tuple[Value, ...]]:
    for gpu in scope.gpus:
        for one in found[gpu.device]:
            zero = np.zeros(len(one.value), np.int64)
            each = distributions(zero, one.value, 1)
            mean = round(float(one.value.astype(np.float64).mean()), 3)
            values = (int(column[0]) for column in (each.p50, each.p95, each.maximum))
            yield gpu.label, one.name, len(one.value), mean, *values


def _by(
    gpu: Utilization, counters: list[CounterSamples], spans: Spans, in_order: bool
) -> Iterator[tuple[Value, ...]]:
    """Rows of `_SHARES` of what has enough samples, most of them first, or ``in_order``."""
    classes, size = by_class(counters), len(spans.names)
    if not classes or not size:
        return
    runs = LaneIntervals.union(spans.lane, spans.begin, spans.end)
    found = {key: one.means(runs, size) for key, one in classes.items()}
    number = np.max([count for count, _ in found.values()], axis=0)
    means: dict[str, Sequence[float | None]] = {key: [None] * size for key in CLASSES}
    for key, (_, mean) in found.items():
        means[key] = [None if one != one else round(one, 3) for one in mean.tolist()]
    order = np.arange(size) if in_order else np.argsort(-number, kind="stable")
    for at in order[number[order] >= ENOUGH].tolist():
        read, write = means["dram_read"][at], means["dram_write"][at]
        both = None if read is None or write is None else round(read + write, 3)
        shares = (means["sm"][at], means["tensor"][at], both, read, write)
        yield gpu.label, spans.names[at], int(number[at]), *shares


def range_spans(scope: Scope, gpu: Utilization) -> Spans:
    """Tell when the work of each instance of a range ran on a GPU, from the first to the last."""
    table, none = scope.profile.activities, np.zeros(0, np.int64)
    if scope.ranges is None:
        return Spans([], none, none, none)
    rows = scope.rows[(table.device == gpu.device)[scope.rows] & has_times(table)[scope.rows]]
    work = scope.ranges.launched(table, in_launch_order(scope.profile, rows))
    some = np.flatnonzero(work.activities > 0)
    frame = shown_ranges(scope)[scope.ranges.frame[some]].astype(np.int64)
    return _spans(scope, frame, work.first[some], work.last[some])


def kernel_spans(scope: Scope, gpu: Utilization) -> Spans:
    """Tell when kernels of each name ran on a GPU."""
    table = scope.profile.activities
    kernels = (table.device == gpu.device) & (table.kind == Kind.KERNEL) & has_times(table)
    rows = scope.rows[kernels[scope.rows]]
    frame = scope.labels.shown[table.frame[rows]].astype(np.int64)
    return _spans(scope, frame, table.start[rows], table.start[rows] + table.duration[rows])


def iteration_spans(scope: Scope, gpu: Utilization) -> Spans:
    """Tell when the work of each iteration ran on a GPU, from the first to the last."""
    table, found = scope.profile.activities, scope.profile.iterations
    mine = (table.device == gpu.device) & has_times(table)
    rows = scope.rows[mine[scope.rows]]
    of = iteration_of_activities(scope.profile)[rows]
    rows, of = rows[of >= 0], of[of >= 0]
    first, last = np.full(len(found), np.iinfo(np.int64).max), np.full(len(found), -1 << 62)
    np.minimum.at(first, of, table.start[rows])
    np.maximum.at(last, of, table.start[rows] + table.duration[rows])
    some = np.flatnonzero(last >= first)
    numbers, lane = distinct(found.number[some])
    return Spans([str(number) for number in numbers.tolist()], lane, first[some], last[some])


def _spans(scope: Scope, frame: I8, begin: I8, end: I8) -> Spans:
    frames, lane = distinct(frame)
    return Spans([scope.labels.text[at] for at in frames.tolist()], lane, begin, end)


def _notes(scope: Scope, metrics: GpuMetrics) -> Iterator[str]:
    shown = {gpu.device for gpu in scope.gpus}
    others = {(one.source, one.gpu) for one in metrics.counters if one.device not in shown}
    if others:
        yield f"counters of {len(others):,} GPUs on which nothing ran, or not shown, are left out"
    if metrics.left_out:
        yield f"{metrics.left_out:,} samples have no time that makes sense: left out"
