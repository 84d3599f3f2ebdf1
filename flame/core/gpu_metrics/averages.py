"""Average all metrics of a GPU over windows of time, and say what of the samples is left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, expand_ranges
from flame.core.errors import InputError
from flame.core.gpu_metrics.names import NAMES
from flame.core.gpu_metrics.samples import SampledMetric, sampled_metrics
from flame.core.model.profile import Profile
from flame.core.model.side_tables.gpu_metrics import NAMELESS, GpuMetrics
from flame.core.units import format_counted


class MetricAverage(NamedTuple):
    """Hold the mean of a metric over windows, in its unit; None of too few samples.

    ``samples`` stand for ``exposure`` ns of them; ``values`` i8 are theirs, times its factor.
    """

    metric: SampledMetric
    mean: float | None
    exposure: int
    samples: int
    values: I8


def average_over(profile: Profile, device: int, low: I8, high: I8) -> list[MetricAverage]:
    """Average the metrics of a GPU over disjoint windows, those told of frames first; by name.

    ``low`` and ``high`` are i8[n], ascending, on the trace's clock. Those that are not sampled in
    them are left out. May read the file.
    """
    table = profile.gpu_metrics
    found = [] if table is None else [*_averages(table, device, low, high)]
    told = [*NAMES.values()]
    found.sort(
        key=lambda one: told.index(one.metric.name) if one.metric.name in told else len(told)
    )
    return found


def _averages(table: GpuMetrics, device: int, low: I8, high: I8) -> Iterator[MetricAverage]:
    lane = np.zeros(len(low), np.int64)
    for metric in sampled_metrics(table).of(device).values():
        sums = metric.over(lane, low, high, 1)
        if sums.samples[0]:
            mean = float(sums.means(metric.period)[0]) * metric.scale.factor
            begin, end = metric.marks(low).ended, metric.marks(high).begun
            own = np.unique(expand_ranges(begin, np.maximum(end - begin, 0)))
            values = metric.value[np.flatnonzero(metric.known)[own]]
            yield MetricAverage(
                metric,
                None if np.isnan(mean) else mean,
                int(sums.exposure[0]),
                int(sums.samples[0]),
                values,
            )


def left_out_note(error: InputError) -> str:
    """Say that samples of GPUs cannot be had, and why: the memory is short, or they are damaged."""
    return f"GPU metrics are left out: {error}"


def metric_notes(profile: Profile, devices: set[int]) -> Iterator[str]:
    """Say which samples are not of ``devices``, and which are left out."""
    table = profile.gpu_metrics
    if table is None:
        return
    found = sampled_metrics(table)
    others = {(one.source, one.gpu) for one in found.metrics if one.device not in devices}
    if others:
        gpus = format_counted(len(others), "GPU", "GPUs")
        yield f"left out: metrics of {gpus} on which nothing ran, or not known which that is"
    for number, why in (
        (table.left_out, "without a time, a metric or a value that makes sense"),
        (found.senseless, "with a value that makes no sense"),
        (found.repeated, "at the time of another one of the metric"),
    ):
        if number:
            samples = format_counted(number, "sample", "samples")
            yield f"left out: {samples} of GPU metrics {why}"
    nameless = [one for one in found.metrics if one.name.startswith(NAMELESS)]
    if nameless:
        metrics = format_counted(len(nameless), "GPU metric", "GPU metrics")
        yield f"{metrics} without a name: TARGET_INFO_GPU_METRICS does not tell it"
