"""Measure intervals of the host in the windows of a scope, and how long GPUs were idle in them."""

from __future__ import annotations

import numpy as np

from flame.core.analysis.utilization import gap_edges
from flame.core.columns import I8, Column, unique
from flame.core.report.scope import Scope
from flame.core.timeline.busy_time import BusyTime


def lengths_within(scope: Scope, start: I8, end: I8) -> I8:
    """Measure the part of each interval that lies in the windows of the GPUs, i8[n] in ns.

    All of it where nothing is chosen, or there are no GPUs.
    """
    if not scope.gpus or not scope.selection.where:
        return end - start
    low, high = (
        np.concatenate([getattr(gpu.windows, edge) for gpu in scope.gpus])
        for edge in ("low", "high")
    )
    windows = BusyTime.union(low, high)
    return windows.sums_until(end) - windows.sums_until(start)


def idle_in(scope: Scope, process: Column, start: I8, end: I8) -> I8:
    """Measure how long the GPUs that its process uses were idle in each interval, i8[n] in ns."""
    groups, idle = scope.profile.activities.groups, np.zeros(len(start), np.int64)
    for gpu in scope.gpus:
        gaps = BusyTime.between(*gap_edges(gpu))
        users = unique(groups.process[groups.device == gpu.device])
        rows = np.flatnonzero(np.isin(process, users) & (process >= 0))
        idle[rows] += gaps.sums_until(end[rows]) - gaps.sums_until(start[rows])
    return idle
