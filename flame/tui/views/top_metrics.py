"""Tell in the top table what GPU metrics say of the kernels below each frame."""

from __future__ import annotations

import numpy as np

from flame.core.columns import I4
from flame.core.efficiency.measured_frames import (
    MOVED,
    MeasuredFrames,
    are_measured,
    measure_frames,
)
from flame.core.errors import InputError
from flame.core.gpu_metrics.kernels import EXPOSURE
from flame.core.units import format_ns
from flame.tui.session.session import Projection

BESIDE = "*"
"""Marks what other kernels ran beside for a good part of the time."""


def measure_shown(shown: Projection, frames: I4) -> MeasuredFrames | None:
    """Tell what GPU metrics say of ``frames`` (ascending); None where there are none.

    May read the file.
    """
    if not are_measured(shown.profile, shown.metric):
        return None
    try:
        return measure_frames(shown.profile, shown.members(), frames)
    except InputError:
        return None  # the details say so


def metric_cell(frames: MeasuredFrames, row: int, key: str) -> str:
    """Write a cell; empty where nothing is known."""
    value = float(frames.columns[key][row])
    if np.isnan(value):
        return ""
    if key == MOVED:
        return f"{value:.1f}×"
    mark = BESIDE if frames.metrics.shared[row] else ""
    return f"{format_ns(value)}{mark}" if key == EXPOSURE else f"{value:.1f} %"
