"""Measure how long activities ran beside others on their GPU."""

from __future__ import annotations

import numpy as np

from flame.core.columns import I4, I8, order_by, rows_by_value
from flame.core.compiled.nesting import times_beside
from flame.core.kept_results import kept
from flame.core.model.activities import has_times
from flame.core.model.profile import Profile


@kept
def overlapped_times(profile: Profile) -> I8:
    """Measure how long each activity ran beside any other on its GPU, i8[n] in ns."""
    table = profile.activities
    timed = has_times(table)
    gpu = table.device + 1 if len(table) and table.device.min() < 0 else table.device
    gpu = gpu if timed.all() else np.where(timed, gpu, -1)
    return beside_others(gpu, table.start, table.start + table.duration)


def beside_others(gpu: I4, start: I8, end: I8) -> I8:
    """Measure how long each interval was open beside any other of its ``gpu``; 0 of -1."""
    if (found := times_beside(gpu, start, end)) is not None:
        return found
    order = order_by([start, gpu])
    found = times_beside(gpu[order], start[order], end[order])
    beside = np.zeros(len(start), np.int64)
    if found is not None:
        beside[order] = found
        return beside
    for one, rows in rows_by_value(gpu):
        if one >= 0:
            own = start[rows], end[rows]
            beside[rows] = own[1] - own[0] - _time_alone(*own)
    return beside


def _time_alone(start: I8, end: I8) -> I8:
    """The time of each interval in which no other one is open."""
    times = np.concatenate([start, end])
    order = np.argsort(times, kind="stable")
    edges = times[order]
    is_open = np.cumsum(np.where(order < len(start), 1, -1))
    alone = np.where(is_open[:-1] == 1, np.diff(edges), 0)
    before = np.append(0, np.cumsum(alone))
    # Of equal edges any will do: nothing lies between them.
    low, high = (np.searchsorted(edges, moments) for moments in (start, end))
    own: I8 = before[high] - before[low]
    return own
