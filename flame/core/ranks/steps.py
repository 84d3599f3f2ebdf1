"""Compare the ranks step by step: how long each took, who was the slowest, and whether again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, run_starts, sum_by
from flame.core.lazy_dataclass import dataclass

CHANCE = 0.01
"""A rank is the slowest again and again where chance makes any rank that so rarely or less."""

LEAST_LOSS = 0.01
"""Of the time of all steps: what the slowest rank costs less than that is not told."""


@dataclass(frozen=True, eq=False)
class StepSpread:
    """Hold the steps by number, ascending, i8[steps] each, times in ns.

    ``there`` is how many ranks have the step; ``median`` by nearest rank and ``most`` are of these.
    ``worst`` is the place of the first rank with the most, -1 where only one rank has the step or
    all took equally long.
    """

    number: I8
    there: I8
    least: I8
    median: I8
    most: I8
    worst: I8

    def __len__(self) -> int:
        return len(self.number)


def step_spread(numbers: Sequence[Sequence[int]], times: Sequence[Sequence[int]]) -> StepSpread:
    """Compare the steps of ranks: of each the ``numbers`` and ``times`` of its steps.

    Where a rank has a number twice, the longer time counts.
    """
    rank = np.repeat(np.arange(len(numbers)), [len(one) for one in numbers])
    number = np.concatenate([np.asarray(one, np.int64) for one in ([], *numbers)])
    time = np.concatenate([np.asarray(one, np.int64) for one in ([], *times)])
    return _compared(*_longest(number, rank, time))


def _longest(number: I8, rank: I8, time: I8) -> tuple[I8, I8, I8]:
    """Keep one row for each step of a rank, in order of step and time, ranks in falling order."""
    order = np.lexsort((-time, rank, number))
    number, rank, time = number[order], rank[order], time[order]
    again = np.zeros(len(number), bool)
    again[1:] = (number[1:] == number[:-1]) & (rank[1:] == rank[:-1])
    number, rank, time = number[~again], rank[~again], time[~again]
    order = np.lexsort((-rank, time, number))
    return number[order], rank[order], time[order]


def _compared(number: I8, rank: I8, time: I8) -> StepSpread:
    first = run_starts(number)
    there = np.diff(np.append(first, len(number)))
    last = first + there - 1
    least, most = time[first], time[last]
    worst = np.where(most > least, rank[last], -1)
    middle = first + (there + 1) // 2 - 1
    return StepSpread(number[first], there, least, time[middle], most, worst)


class SlowestRank(NamedTuple):
    """Say how often the rank at place ``worst`` is the slowest: ``steps`` ``of`` those compared.

    ``loss`` is by how much it is above the median in these, ns; ``repeats`` whether that is beyond
    chance; else the slowest rank rotates.
    """

    worst: int
    steps: int
    of: int
    loss: int
    repeats: bool

    @property
    def share(self) -> float:
        """The part of the steps in which it is the slowest."""
        return self.steps / self.of


def find_slowest(spread: StepSpread, ranks: int) -> SlowestRank | None:
    """Find the rank that is most often the slowest; None where no step can be compared."""
    told = np.flatnonzero(spread.worst >= 0)
    if not len(told):
        return None
    counts = np.bincount(spread.worst[told], minlength=ranks)
    worst, steps = int(counts.argmax()), int(counts.max())
    loss = sum_by(spread.worst[told], (spread.most - spread.median)[told], ranks)
    repeats = chance_of_most(steps, len(told), ranks) < CHANCE
    return SlowestRank(worst, steps, len(told), int(loss[worst]), repeats)


def costs_much(slowest: SlowestRank, spread: StepSpread) -> bool:
    """Whether what the slowest rank takes longer is `LEAST_LOSS` of all steps or more."""
    return slowest.loss >= LEAST_LOSS * float(spread.median.sum())


def chance_of_most(most: int, draws: int, ranks: int) -> float:
    """Bound the chance that any of ``ranks`` is drawn ``most`` times or more of ``draws``."""
    if ranks < 2 or most <= 0:
        return 1.0
    part, tail = 1 / ranks, 0.0
    for times in range(most, draws + 1):
        log = math.lgamma(draws + 1) - math.lgamma(times + 1) - math.lgamma(draws - times + 1)
        log += times * math.log(part) + (draws - times) * math.log1p(-part)
        tail += math.exp(log)
    return min(ranks * tail, 1.0)
