"""Sum what processes have launched until any time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.columns import I4, I8, order_by, places_on_lanes, sum_by, unique
from flame.core.model.activities import Activities


def launch_times(table: Activities) -> I8:
    """When each row of ``table`` was launched; those without a recorded launch: when they began.

    It is not to be written to.
    """
    if table.launched.all():
        return table.launch_start
    times: I8 = np.where(table.launched, table.launch_start, table.start)
    return times


class LaunchedBefore(NamedTuple):
    """Sums of the GPU time launched, by process and time; ``process`` i4[n] and ``time`` i8[n]."""

    process: I4
    time: I8
    sums: I8

    @classmethod
    def of(cls, table: Activities) -> LaunchedBefore:
        """Sum up the durations of ``table``."""
        time = launch_times(table)
        order = order_by([time, table.process])
        sums = np.concatenate([[0], np.cumsum(table.duration[order])])
        return cls(table.process[order], time[order], sums)

    @classmethod
    def at(cls, table: Activities, process: I4, times: I8) -> LaunchedBefore:
        """Sum up the durations of ``table`` until ``times`` of each ``process``, and none between.

        Of few times that takes a third of `of`, as nothing but these is to be ordered.
        """
        order = order_by([times, process])
        process, times = process[order], times[order]
        place = places_on_lanes(process, times, table.process, launch_times(table), "right")
        return cls(process, times, np.cumsum(sum_by(place, table.duration, len(times) + 1)))

    @property
    def total(self) -> int:
        """The GPU time of all processes, ns."""
        return int(self.sums[-1])

    def between(self, process: I4, low: I8, high: I8) -> I8:
        """Sum what each ``process`` launched from ``low`` until before ``high``, i8[n] in ns."""
        sums = np.zeros(len(low), np.int64)
        for one in unique(process).tolist():
            first, last = np.searchsorted(self.process, [one, one + 1]).tolist()
            own, times = np.flatnonzero(process == one), self.time[first:last]
            edges = (np.searchsorted(times, at[own]) + first for at in (high, low))
            until, since = (self.sums[edge] for edge in edges)
            sums[own] = until - since
        return sums
