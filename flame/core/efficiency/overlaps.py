"""Measure how long activities ran beside others on their GPU."""

from __future__ import annotations

import numpy as np

from flame.core.columns import I8
from flame.core.kept_results import kept
from flame.core.model.profile import Profile
from flame.core.timeline.devices import device_times, timed_rows


@kept
def overlapped_times(profile: Profile) -> I8:
    """Measure how long each activity ran beside any other on its GPU, i8[n] in ns."""
    table = profile.activities
    found = np.zeros(len(table), np.int64)
    for device, *_ in device_times(profile):
        rows = timed_rows(profile, device)
        start, length = table.start[rows], table.duration[rows]
        found[rows] = length - _time_alone(start, start + length)
    return found


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
