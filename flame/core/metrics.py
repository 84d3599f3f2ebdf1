"""Metrics as declared data: what an activity weighs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from flame.core.columns import I8
from flame.core.errors import UsageError
from flame.core.profile import Activities

Unit = Literal["ns", "count"]


@dataclass(frozen=True)
class Metric:
    """One way to weigh activities; ``values`` gives int64 per row of the table, never negative."""

    key: str
    title: str
    unit: Unit
    values: Callable[[Activities], I8]
    table: Literal["gpu", "host"] = "gpu"
    levels: tuple[str, ...] = ("python", "native", "launch", "nvtx", "kernel")


def _duration(table: Activities) -> I8:
    return table.duration


def _count(table: Activities) -> I8:
    return np.ones(len(table), np.int64)


def _launch(table: Activities) -> I8:
    return table.launch_share


def _queue(table: Activities) -> I8:
    waited = np.maximum(table.start - table.launch_end, 0)
    return np.where(table.launched, waited, 0)


def _idle(table: Activities) -> I8:
    return table.idle


METRICS: tuple[Metric, ...] = (
    Metric("gpu", "GPU time", "ns", _duration),
    Metric("count", "GPU activities", "count", _count),
    Metric("launch", "launch API time", "ns", _launch),
    Metric("queue", "queue delay", "ns", _queue),
    Metric("idle", "GPU idle before", "ns", _idle),
    Metric("host", "host self time", "ns", _duration, "host", ("thread", "nvtx", "launch")),
)
METRIC_KEYS = tuple(metric.key for metric in METRICS)


def metric_of(key: str) -> Metric:
    """The metric called ``key``; UsageError with the choices otherwise."""
    for metric in METRICS:
        if metric.key == key:
            return metric
    raise UsageError(f"unknown metric '{key}': choose from {', '.join(METRIC_KEYS)}")
