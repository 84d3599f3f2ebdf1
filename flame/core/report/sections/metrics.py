"""Tell what GPU metrics measured, in all and while ranges, iterations and kernels ran."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from flame.core.analysis.distribution import distributions
from flame.core.analysis.iterations import iteration_of_activities
from flame.core.analysis.utilization import Utilization
from flame.core.columns import F8, I8, distinct
from flame.core.gpu_metrics.averages import average_over, metric_notes
from flame.core.gpu_metrics.kernels import LaneRows, kernel_times
from flame.core.gpu_metrics.names import NAMES, MetricKey
from flame.core.gpu_metrics.samples import sampled_metrics
from flame.core.memory import MemoryShortError
from flame.core.model.activities import has_times
from flame.core.model.frames import Kind
from flame.core.report.measures.launching_calls import in_launch_order
from flame.core.report.measures.range_work import shown_ranges
from flame.core.report.scope import Scope
from flame.core.report.table import Place, Section, Table, TableColumn, Value
from flame.core.timeline.lane_intervals import LaneIntervals

NAME, TITLE = "metrics", "GPU metrics"

WHY = "no metrics of a GPU were sampled"
HOW = "nsys profile --gpu-metrics-devices=all samples them, if the driver allows it: flame doctor"

_ALL = (
    TableColumn("gpu", "GPU"),
    TableColumn("metric", "metric"),
    TableColumn("unit", "unit"),
    TableColumn("exposure_ns", "sampled", "ns"),
    TableColumn("count", "samples", "count"),
    TableColumn("mean", "mean", "number"),
    TableColumn("p50", "p50", "number"),
    TableColumn("p95", "p95", "number"),
    TableColumn("max", "max", "number"),
)
_SHARES = (
    TableColumn("exposure_ns", "sampled", "ns"),
    TableColumn("samples", "samples", "count"),
    TableColumn("sm_percent", "SM active", "percent"),
    TableColumn("tensor_percent", "tensor", "percent"),
    TableColumn("dram_percent", "DRAM", "percent"),
    TableColumn("dram_read_percent", "read", "percent"),
    TableColumn("dram_write_percent", "write", "percent"),
)
_OF_KERNELS = (
    *_SHARES,
    TableColumn("dram_gb_per_s", "DRAM", "GB/s"),
    TableColumn("shared", "beside others"),
)
_KEYS = (MetricKey.SM, MetricKey.TENSOR, MetricKey.READ, MetricKey.WRITE)


class Spans(NamedTuple):
    """Say when each of something ran on a GPU; ``lane`` is a place in ``names``."""

    names: list[str]
    lane: I8
    begin: I8
    end: I8


def metrics_section(scope: Scope) -> Section:
    """Tell each metric of each GPU over its windows, and some of them by what ran."""
    try:
        metrics = scope.profile.gpu_metrics
    except MemoryShortError as error:
        return Section(NAME, TITLE, why=str(error))
    if metrics is None or not len(metrics):
        notes = tuple(metric_notes(scope.profile, set()))
        return Section(NAME, TITLE, notes=notes, why=WHY, how=HOW)
    what = (
        ("ranges", "by range, while what it launched ran", "range", range_spans),
        ("iterations", "by iteration", "iteration", iteration_spans),
    )
    tables = [Table.of("rows", "", _ALL, _rows(scope)), _kernels(scope)]
    for key, title, word, spans in what:
        columns = (TableColumn("gpu", "GPU"), TableColumn("name", word), *_SHARES)
        in_order = spans is iteration_spans
        rows = (row for gpu in scope.gpus for row in _by(scope, gpu, spans(scope, gpu), in_order))
        tables.append(Table.of(key, title, columns, rows))
    found = sampled_metrics(metrics)
    facts = {
        "samples": len(metrics),
        "left_out": metrics.left_out,
        "senseless": found.senseless,
        "repeated": found.repeated,
    }
    devices = {gpu.device for gpu in scope.gpus}
    notes = tuple(metric_notes(scope.profile, devices))
    return Section(NAME, TITLE, facts, tuple(tables), notes)


def _rows(scope: Scope) -> Iterator[tuple[Value, ...]]:
    for gpu in scope.gpus:
        windows = gpu.windows
        for one in average_over(scope.profile, gpu.device, windows.low, windows.high):
            each = distributions(np.zeros(len(one.values), np.int64), one.values, 1)
            columns = (each.p50, each.p95, each.maximum)
            factor = one.metric.scale.factor
            values = (_scaled(int(column[0]), factor) for column in columns)
            mean = None if one.mean is None else round(one.mean, 3)
            unit = one.metric.scale.unit or None
            yield gpu.label, one.metric.name, unit, one.exposure, one.samples, mean, *values


def _scaled(value: int, factor: float) -> Value:
    return value if factor == 1 else round(value * factor, 3)


def _by(
    scope: Scope, gpu: Utilization, spans: Spans, in_order: bool
) -> Iterator[tuple[Value, ...]]:
    """Rows of `_SHARES` of what was sampled for long enough, longest first, or ``in_order``."""
    table = scope.profile.gpu_metrics
    size = len(spans.names)
    if table is None or not size:
        return
    runs = LaneIntervals.union(spans.lane, spans.begin, spans.end)
    lane, means = runs.lane.astype(np.int64), dict[MetricKey, F8]()
    exposure, samples = np.zeros(size, np.int64), np.zeros(size, np.int64)
    metrics = sampled_metrics(table).of(gpu.device)
    for key in _KEYS:
        metric = metrics.get(NAMES[key])
        means[key] = np.full(size, np.nan)
        if metric is not None:
            sums = metric.over(lane, runs.begin, runs.end, size)
            means[key] = sums.means(metric.period)
            exposure = np.maximum(exposure, sums.exposure)
            samples = np.maximum(samples, sums.samples)
    for at in _chosen(means, exposure, in_order):
        yield gpu.label, spans.names[at], int(exposure[at]), int(samples[at]), *_shares(means, at)


def _chosen(means: dict[MetricKey, F8], exposure: I8, in_order: bool) -> list[int]:
    """Those of which anything is known: sampled longest first, or ``in_order``."""
    known = ~np.isnan(np.array([means[key] for key in _KEYS])).all(axis=0)
    order = np.arange(len(exposure)) if in_order else np.argsort(-exposure, kind="stable")
    chosen: list[int] = order[known[order]].tolist()
    return chosen


def _shares(means: dict[MetricKey, F8], at: int) -> Iterator[float | None]:
    sm, tensor, read, write = (_known(means[key][at]) for key in _KEYS)
    both = _known(means[MetricKey.READ][at] + means[MetricKey.WRITE][at])
    yield from (sm, tensor, both, read, write)


def _known(value: float) -> float | None:
    return None if np.isnan(value) else round(float(value), 3)


def _kernels(scope: Scope) -> Table:
    """The kernels of each name on each GPU, and what their memory moved."""
    columns = (TableColumn("gpu", "GPU"), TableColumn("name", "kernel"), *_OF_KERNELS)
    rows = [row for gpu in scope.gpus for row in _kernel_rows(scope, gpu)]
    places = [Place(("kernel",), (str(row[1]),)) for row in rows]
    return Table.of("kernels", "by kernel", columns, rows, places)


def _kernel_rows(scope: Scope, gpu: Utilization) -> Iterator[tuple[Value, ...]]:
    times, table = kernel_times(scope.profile), scope.profile.activities
    if times is None:
        return
    rows = scope.rows[(table.device == gpu.device)[scope.rows]]
    rows = rows[(table.kind == Kind.KERNEL)[rows]]
    frames, lane = distinct(scope.labels.shown[table.frame[rows]].astype(np.int64))
    found = times.measure([LaneRows(0, len(frames), lane, rows)], len(frames))
    for at in _chosen(found.means, found.exposure, in_order=False):
        name = scope.labels.text[int(frames[at])]
        numbers = int(found.exposure[at]), int(found.samples[at])
        rate = None if np.isnan(found.rate[at]) else round(float(found.rate[at]) / 1e9, 3)
        shared = "yes" if found.shared[at] else None
        yield gpu.label, name, *numbers, *_shares(found.means, at), rate, shared


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
