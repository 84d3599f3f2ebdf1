"""Tell of frames what GPU metrics say while the kernels below them ran."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from flame.core.analysis.frame_totals import rows_by_frame
from flame.core.analysis.node_activities import NodeActivities
from flame.core.columns import F8, I4
from flame.core.efficiency.moved_bytes import measure_moved
from flame.core.gpu_metrics.kernels import KernelMetrics, kernel_times
from flame.core.lazy_dataclass import dataclass
from flame.core.model.metrics import Metric
from flame.core.model.profile import Profile

MOVED = "moved"
"""Key of how many times what operators have to move was moved."""


@dataclass(frozen=True, eq=False)
class MeasuredFrames:
    """Hold what GPU metrics say, by frame, and how many times what had to be moved was moved.

    That is ``moved`` f8[n], NaN where it is not known; None where no operator has shapes.
    """

    metrics: KernelMetrics
    moved: F8 | None

    @cached_property
    def columns(self) -> dict[str, F8]:
        """The columns of a table of frames by key, f8[n], NaN where nothing is known."""
        moved = {} if self.moved is None else {MOVED: self.moved}
        return self.metrics.columns | moved


def are_measured(profile: Profile, metric: Metric) -> bool:
    """Tell whether the file has GPU metrics, and what ``metric`` weighs ran on GPUs."""
    return profile.side_tables.gpu_metrics is not None and metric.table == "gpu"


def measure_frames(profile: Profile, members: NodeActivities, frames: I4) -> MeasuredFrames | None:
    """Measure ``frames`` (ascending), whose activities are among ``members``.

    None where there are no GPU metrics. May read the file: raises InputError where it cannot.
    """
    times = kernel_times(profile)
    if times is None:
        return None
    size = len(frames)
    metrics = times.measure(rows_by_frame(members, frames), size)
    if not profile.sized_operators:
        return MeasuredFrames(metrics, None)
    found = measure_moved(profile, rows_by_frame(members, frames), size)
    return MeasuredFrames(metrics, np.full(size, np.nan) if found is None else found.ratio)
