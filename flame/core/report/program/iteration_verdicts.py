"""Judge iterations by how long they take: warm-up, slow ones, statistics of the others."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from flame.core.analysis.distribution import Distribution, distribution
from flame.core.columns import I8, Bool
from flame.core.lazy_dataclass import dataclass
from flame.core.report.measures.trend import Trend, trend

FEWEST = 5
"""Iterations from which on any is said to be slow, or warm-up."""

_SPREAD = 1.4826
"""The median of absolute deviations of a normal distribution is its standard deviation by this."""

_TIMES = 3
_SHARE = 0.1
_MOST_WARM_UP = 100


@dataclass(frozen=True, eq=False)
class Verdicts:
    """Say which iterations are ``warm_up`` and which are ``slow``, bool[n].

    ``limit`` is the period from which on they are slow, ns. ``statistics``, ``deviation`` (the
    median of the absolute deviations from the median, ns) and ``trend`` are of those after the
    warm-up, whose periods are ``steady``; None of none.
    """

    warm_up: Bool
    slow: Bool
    limit: int | None
    statistics: Distribution | None
    deviation: int | None
    steady: I8

    @cached_property
    def trend(self) -> Trend | None:
        """How the periods after the warm-up change; imports scipy."""
        return trend(self.steady)

    @property
    def normal(self) -> Bool:
        """Mark those that are neither, bool[n]."""
        marks: Bool = ~(self.warm_up | self.slow)
        return marks


def judge(periods: I8) -> Verdicts:
    """Judge iterations by their ``periods``, i8[n] in ns and in order of time.

    Warm-up are those at the beginning that take longer than the median of those after them and
    three times their spread; slow are those later ones that take longer than the median and the
    larger of that and a tenth. Of fewer than 5 nothing is said but the statistics.
    """
    place = np.arange(len(periods))
    first = _warm_up(periods) if len(periods) >= FEWEST else 0
    steady = periods[first:]
    found = distribution(steady)
    if found is None:
        return Verdicts(place < 0, place < 0, None, None, None, steady)
    deviation = _deviation(steady)
    limit = None
    slow = place < 0
    if len(periods) >= FEWEST:
        room = max(_TIMES * _SPREAD * deviation, _SHARE * found.p50)
        limit = found.p50 + int(room)
        slow = (place >= first) & (periods > found.p50 + room)
    return Verdicts(place < first, slow, limit, found, deviation, steady)


def median(values: I8) -> int:
    """Find the median by nearest rank; 0 of no values."""
    found = distribution(values)
    return found.p50 if found else 0


def _deviation(values: I8) -> int:
    return median(np.abs(values - median(values)))


def _warm_up(periods: I8) -> int:
    """How many at the beginning take longer than those after them usually do."""
    most = min(len(periods) // 2, _MOST_WARM_UP)
    for first in range(most):
        rest = periods[first + 1 :]
        if periods[first] <= median(rest) + _TIMES * _SPREAD * _deviation(rest):
            return first
    return most
