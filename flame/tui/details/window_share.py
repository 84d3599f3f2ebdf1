"""Tell in which part of its time a GPU ran what a frame stands for: the union, on any stream."""

from __future__ import annotations

from typing import NamedTuple

from flame.core.analysis.utilization import utilizations
from flame.core.columns import I8
from flame.core.model.activities import has_times
from flame.core.timeline.busy_time import BusyTime
from flame.tui.session.session import Projection


class WindowShare(NamedTuple):
    """Hold how long a GPU ran what is meant, and its window, ns."""

    label: str
    ns: int
    window: int


def window_shares(shown: Projection, rows: I8) -> tuple[WindowShare, ...]:
    """Measure ``rows`` on each GPU that ran any; none of a recording that goes on."""
    profile = shown.profile
    if shown.metric.table != "gpu" or profile.totals is not None or not profile.timed:
        return ()
    table, shares = profile.activities, list[WindowShare]()
    timed = rows[has_times(table)[rows]]
    for gpu in utilizations(profile, shown.selection.where):
        own = timed[table.device[timed] == gpu.device]
        if len(own) and gpu.length:
            start = table.start[own]
            ran = BusyTime.union(start, start + table.duration[own])
            shares.append(WindowShare(gpu.label, ran.within_all(gpu.windows), gpu.length))
    return tuple(shares)
