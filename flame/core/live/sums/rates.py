"""Count how much happened in each step of the last minute."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, distinct, expand_ranges, sum_by
from flame.core.live.status import Rates
from flame.core.live.window import LONGEST, SECOND

STEP = SECOND // 2
SETTLED = SECOND
"""ns: what is younger is not all known: calls wait for their kernels, buffers for a reader."""

_STEPS = LONGEST // STEP


class TimeBins(NamedTuple):
    """Amounts by step of time: step ``number`` begins at ``number * STEP``, ns."""

    number: I8
    amount: I8

    @classmethod
    def empty(cls) -> TimeBins:
        """Return bins without any step."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64))

    @classmethod
    def sum_amounts(cls, number: I8, amount: I8) -> TimeBins:
        """Sum ``amount`` by step."""
        numbers, place = distinct(number)
        return cls(numbers, sum_by(place, amount, len(numbers)))

    @classmethod
    def count_times(cls, time: I8) -> TimeBins:
        """Count how many of ``time`` lie in each step."""
        return cls.sum_amounts(time // STEP, np.ones(len(time), np.int64))

    @classmethod
    def measure_intervals(cls, start: I8, end: I8) -> TimeBins:
        """Sum how much of each step lies in intervals, of which only the last minute counts.

        They do not overlap each other.
        """
        rows = np.flatnonzero(end > start)
        start, end = np.maximum(start[rows], end[rows] - LONGEST), end[rows]
        first, last = start // STEP, (end - 1) // STEP
        steps = last - first + 1
        number = expand_ranges(first, steps)
        start, end = np.repeat(start, steps), np.repeat(end, steps)
        inside = np.minimum(end, (number + 1) * STEP) - np.maximum(start, number * STEP)
        return cls.sum_amounts(number, inside)

    def add(self, other: TimeBins) -> TimeBins:
        """Add the amounts of ``other``."""
        if not len(other.number):
            return self
        return TimeBins.sum_amounts(*map(np.concatenate, zip(self, other, strict=True)))

    def since(self, time: int) -> TimeBins:
        """Return the bins without the steps that were over at ``time``."""
        kept = (self.number + 1) * STEP > time
        return TimeBins(self.number[kept], self.amount[kept])


class RecordingSpan(NamedTuple):
    """When a process began and ended to record, ns, and how many GPUs it has used."""

    begin: int
    end: int
    gpus: int


def compute_rates(
    busy: Iterable[TimeBins], launches: Iterable[TimeBins], lives: Iterable[RecordingSpan], now: int
) -> Rates:
    """Compute the rates of the steps of the minute that are over at ``now``."""
    last = now // STEP
    time = _sum_per_step(busy, last) / (np.maximum(_count_gpus(lives, last), 1) * STEP)
    return Rates(STEP, np.minimum(time, 1.0), _sum_per_step(launches, last), last)


def _count_gpus(lives: Iterable[RecordingSpan], last: int) -> I8:
    """Count the GPUs in each step: a process that is started anew has no GPU more."""
    number = np.arange(last - _STEPS, last)
    result = np.zeros(_STEPS, np.int64)
    for begin, end, gpus in lives:
        result += gpus * ((number >= begin // STEP) & (number <= end // STEP))
    return result


def _sum_per_step(bins: Iterable[TimeBins], last: int) -> I8:
    """Sum amounts of the steps before ``last``, oldest first."""
    result = np.zeros(_STEPS, np.int64)
    for number, amount in bins:
        place = number - (last - _STEPS)
        inside = (place >= 0) & (place < _STEPS)
        result[place[inside]] += amount[inside]
    return result
