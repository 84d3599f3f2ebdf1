"""Find percentiles of how long activities took, and between which two values they are known."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, run_starts

_Z = 1.96
"""95 % of a normal distribution are within so many deviations."""

P99 = 99


class Durations(NamedTuple):
    """Hold how long activities took, shortest first, i8[n] each, ns.

    ``number`` of them took from ``low`` to ``high``: both are the same where each was recorded.
    """

    low: I8
    high: I8
    number: I8

    @classmethod
    def of(cls, values: I8) -> Durations:
        """Count the durations ``values``, in any order."""
        ordered = np.sort(values)
        first = run_starts(ordered)
        known, count = ordered[first], np.diff(np.append(first, len(ordered)))
        return cls(known, known, count)

    @property
    def total(self) -> int:
        """How many activities there are."""
        return int(self.number.sum())

    def joined(self, other: Durations) -> Durations:
        """Put those of two recordings together."""
        low, high, number = (np.concatenate(pair) for pair in zip(self, other, strict=True))
        order = np.argsort(low, kind="stable")
        return Durations(low[order], high[order], number[order])

    def percentile(self, percent: int) -> float:
        """Find a percentile by nearest rank, as `flame.core.analysis.distribution`; of none nan."""
        total = self.total
        if not total:
            return math.nan
        return float(self._at((total * percent + 99) // 100, (self.low + self.high) / 2))

    def bounds(self, percent: int) -> tuple[float, float]:
        """Find where the percentile is in 95 % of repetitions, by the values beside it in order.

        The second is infinite where there are fewer than `fewest` activities.
        """
        total, share = self.total, percent / 100
        usual = _Z * math.sqrt(total * share * (1 - share))
        first, last = math.floor(total * share - usual), math.ceil(total * share + usual)
        low = float(self._at(max(first, 1), self.low)) if total else 0.0
        return low, float(self._at(last, self.high)) if 0 < last <= total else math.inf

    def _at(self, rank: int, values: np.ndarray) -> float:
        """The value of this ``rank``, the first being 1."""
        found: float = values[np.searchsorted(np.cumsum(self.number), rank)]
        return found


def fewest(percent: int) -> int:
    """Count the activities from which on a percentile has an upper bound."""
    share = percent / 100
    return math.ceil(_Z**2 * share / (1 - share) - 1e-9)
