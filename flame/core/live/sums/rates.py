"""How much happened in each step of the last minute."""

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


class Bins(NamedTuple):
    """Amounts by step of time: step ``number`` begins at ``number * STEP``, ns."""

    number: I8
    amount: I8

    @classmethod
    def none(cls) -> Bins:
        """Nothing in any step."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64))

    @classmethod
    def of(cls, number: I8, amount: I8) -> Bins:
        """``amount`` summed by step."""
        numbers, place = distinct(number)
        return cls(numbers, sum_by(place, amount, len(numbers)))

    @classmethod
    def counted(cls, time: I8) -> Bins:
        """How many of ``time`` lie in each step."""
        return cls.of(time // STEP, np.ones(len(time), np.int64))

    @classmethod
    def covered(cls, start: I8, end: I8) -> Bins:
        """How much of each step lies in the intervals from ``start`` to ``end``: their last minute.

        They do not overlap each other.
        """
        rows = np.flatnonzero(end > start)
        start, end = np.maximum(start[rows], end[rows] - LONGEST), end[rows]
        first, last = start // STEP, (end - 1) // STEP
        steps = last - first + 1
        number = expand_ranges(first, steps)
        start, end = np.repeat(start, steps), np.repeat(end, steps)
        inside = np.minimum(end, (number + 1) * STEP) - np.maximum(start, number * STEP)
        return cls.of(number, inside)

    def joined(self, other: Bins) -> Bins:
        """The amounts of both."""
        if not len(other.number):
            return self
        return Bins.of(*map(np.concatenate, zip(self, other, strict=True)))

    def since(self, time: int) -> Bins:
        """Without the steps that were over at ``time``."""
        kept = (self.number + 1) * STEP > time
        return Bins(self.number[kept], self.amount[kept])


class Life(NamedTuple):
    """From when until when a process recorded, ns, and how many GPUs it has used."""

    begin: int
    end: int
    gpus: int


def rates(busy: Iterable[Bins], launches: Iterable[Bins], lives: Iterable[Life], now: int) -> Rates:
    """The steps of the minute that are over at ``now``."""
    last = now // STEP
    time = _per_step(busy, last) / (np.maximum(_gpus(lives, last), 1) * STEP)
    return Rates(STEP, np.minimum(time, 1.0), _per_step(launches, last), last)


def _gpus(lives: Iterable[Life], last: int) -> I8:
    """How many there were in each step: one that is started anew has no GPU more."""
    number = np.arange(last - _STEPS, last)
    result = np.zeros(_STEPS, np.int64)
    for begin, end, gpus in lives:
        result += gpus * ((number >= begin // STEP) & (number <= end // STEP))
    return result


def _per_step(bins: Iterable[Bins], last: int) -> I8:
    """Amounts of the steps before ``last``, oldest first."""
    result = np.zeros(_STEPS, np.int64)
    for number, amount in bins:
        place = number - (last - _STEPS)
        inside = (place >= 0) & (place < _STEPS)
        result[place[inside]] += amount[inside]
    return result
