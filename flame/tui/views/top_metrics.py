"""Tell in the top table what GPU metrics say of the kernels below each frame."""

from __future__ import annotations

import numpy as np

from flame.core.analysis.frame_totals import rows_by_frame
from flame.core.columns import I4, Column
from flame.core.errors import InputError
from flame.core.gpu_metrics.kernels import KernelMetrics, kernel_times
from flame.core.gpu_metrics.names import MetricKey
from flame.core.units import format_ns
from flame.tui.session.session import Projection
from flame.tui.views.top_columns import EXPOSURE, OF_METRICS

BESIDE = "*"
"""Marks what other kernels ran beside for a good part of the time."""


def measure_frames(shown: Projection, frames: I4) -> KernelMetrics | None:
    """Tell what GPU metrics say of ``frames`` (ascending); None where there are none.

    May read the file.
    """
    profile = shown.profile
    if profile.side_tables.gpu_metrics is None or shown.metric.table != "gpu":
        return None
    try:
        times = kernel_times(profile)
    except InputError:
        return None  # the details say so
    if times is None:
        return None
    return times.measure(rows_by_frame(shown.members(), frames), len(frames))


def metric_columns(found: KernelMetrics | None) -> dict[str, Column]:
    """What the columns sort by, NaN where nothing is known."""
    if found is None:
        return {}
    known = ~np.isnan(np.array([*found.means.values()])).all(axis=0)
    means = (found.means[MetricKey.SM], found.means[MetricKey.TENSOR], found.dram)
    exposure = np.where(known, found.exposure, np.nan)
    return dict(zip((head.key for head in OF_METRICS), (*means, exposure), strict=True))


def metric_cell(found: KernelMetrics, column: Column, row: int, key: str) -> str:
    """Write a cell; empty where nothing is known."""
    value = float(column[row])
    if np.isnan(value):
        return ""
    mark = BESIDE if found.shared[row] else ""
    return f"{format_ns(value)}{mark}" if key == EXPOSURE else f"{value:.1f} %"
