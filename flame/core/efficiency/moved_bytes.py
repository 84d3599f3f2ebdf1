"""Compare what memory moved, as GPU metrics say, with what operators have to move at least."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from flame.core.columns import F8, I8, Bool, sum_by
from flame.core.efficiency.by_operator import OperatorRows
from flame.core.gpu_metrics.kernels import KernelMetrics, LaneRows, kernel_times
from flame.core.model.profile import Profile
from flame.core.names.rename import fold_indices

TWICE = 2.0
"""Times what has to be moved, above which it is moved twice, or more often."""

_OWN = 0.9
"""Part of the time of samples that kernels have to have for themselves.

What ran in the rest of it is measured, too: even if that used all of the bandwidth, kernels that
use a tenth of it seem to move less than `TWICE` as much.
"""


class MovedBytes(NamedTuple):
    """Hold the bytes of kernels of which it is known what they have to move, by lane.

    ``counted`` i8[n] is what operators read and write once, ``measured`` f8[n] what the memory of
    the GPUs moved while their kernels ran: NaN where too few samples tell, where other kernels ran
    beside them, or in a good part of the time of these samples.
    """

    counted: I8
    measured: F8

    @property
    def ratio(self) -> F8:
        """How many times what was counted has been moved, f8[n]; NaN where that is not known."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.counted > 0, self.measured / self.counted, np.nan)


def measure_moved(profile: Profile, lanes: Iterable[LaneRows], size: int) -> MovedBytes | None:
    """Measure what the kernels of lanes 0 to ``size`` - 1 moved, those alone whose bytes are known.

    None where there are no GPU metrics, or nothing tells of work. May read the file.
    """
    times = kernel_times(profile)
    if times is None or profile.work is None:
        return None
    counted, known = np.zeros(size, np.int64), profile.work.bytes > 0
    told = []
    for each in lanes:
        inside = known[each.row]
        told.append(each._replace(lane=each.lane[inside], row=each.row[inside]))
        counted += sum_by(told[-1].lane, profile.work.bytes[told[-1].row], size)
    found = times.measure(told, size)
    sure = _alone(found, times.period) & (counted > 0)
    return MovedBytes(counted, np.where(sure, found.rate * (found.ran / 1e9), np.nan))


def moved_by_operator(profile: Profile, rows: I8, operators: OperatorRows) -> MovedBytes | None:
    """Measure what those of ``rows`` of the activities moved that are of each of ``operators``.

    These are what `work_by_operator` makes of ``rows`` by name.
    """
    if profile.side_tables.gpu_metrics is None or profile.work is None:
        return None
    places = {frame.name: place for place, frame in enumerate(operators.frames)}
    place = np.full(len(profile.frames) + 1, -1)  # the last: of no operator
    for frame in profile.work.costs:
        place[frame] = places.get(fold_indices(profile.frames[frame].name), -1)
    lane = place[profile.work.operator[rows]]
    inside = lane >= 0
    lanes = [LaneRows(0, len(places), lane[inside], rows[inside])]
    return measure_moved(profile, lanes, len(places))


def _alone(found: KernelMetrics, period: int) -> Bool:
    """Where what was sampled is what the kernels did, and nearly nothing else, bool[n]."""
    alone: Bool = ~found.shared & (found.exposure >= _OWN * period * found.samples)
    return alone
