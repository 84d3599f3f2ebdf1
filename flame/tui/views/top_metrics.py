"""Tell in the top table what GPU metrics say of the kernels below each frame."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.analysis.frame_totals import rows_by_frame
from flame.core.columns import F8, I4, Bool
from flame.core.efficiency.moved_bytes import measure_moved
from flame.core.errors import InputError
from flame.core.gpu_metrics.kernels import EXPOSURE, kernel_times
from flame.core.units import format_ns
from flame.tui.session.session import Projection
from flame.tui.views.top_columns import MOVED

BESIDE = "*"
"""Marks what other kernels ran beside for a good part of the time."""


class MeasuredFrames(NamedTuple):
    """Hold ``columns`` of the table, f8[n] by key, NaN where nothing is known.

    ``shared`` bool[n] tells where other kernels ran beside those of a frame.
    """

    columns: dict[str, F8]
    shared: Bool


def measure_frames(shown: Projection, frames: I4) -> MeasuredFrames | None:
    """Tell what GPU metrics say of ``frames`` (ascending); None where there are none.

    May read the file.
    """
    profile, size = shown.profile, len(frames)
    if profile.side_tables.gpu_metrics is None or shown.metric.table != "gpu":
        return None
    try:
        times = kernel_times(profile)
        if times is None:
            return None
        found = times.measure(rows_by_frame(shown.members(), frames), size)
        moved = None
        if profile.sized_operators:
            moved = measure_moved(profile, rows_by_frame(shown.members(), frames), size)
    except InputError:
        return None  # the details say so
    columns = found.columns if moved is None else {**found.columns, MOVED: moved.ratio}
    return MeasuredFrames(columns, found.shared)


def metric_cell(found: MeasuredFrames, row: int, key: str) -> str:
    """Write a cell; empty where nothing is known."""
    value = float(found.columns[key][row])
    if np.isnan(value):
        return ""
    if key == MOVED:
        return f"{value:.1f}×"
    mark = BESIDE if found.shared[row] else ""
    return f"{format_ns(value)}{mark}" if key == EXPOSURE else f"{value:.1f} %"
