"""Steps by rank: plain loops find the same; the slowest is told beyond chance alone."""

from __future__ import annotations

import random
from fractions import Fraction
from math import comb

import numpy as np
import pytest

from flame.core.ranks.steps import chance_of_most, costs_much, find_slowest, step_spread
from tests.support.tiers import deep_except


@pytest.mark.parametrize("seed", range(8))
def test_as_plain_loops_find_it(seed: int) -> None:
    chance = random.Random(seed)
    ranks = chance.randint(1, 8)
    numbers = [[chance.randint(-2, 9) for _ in range(chance.randint(0, 12))] for _ in range(ranks)]
    times = [[chance.randint(0, 6) for _ in one] for one in numbers]
    steps: dict[int, dict[int, int]] = {}
    for rank in range(ranks):
        for number, time in zip(numbers[rank], times[rank], strict=True):
            mine = steps.setdefault(number, {})
            mine[rank] = max(time, mine.get(rank, 0))
    found = step_spread(numbers, times)
    assert found.number.tolist() == sorted(steps)
    for at, number in enumerate(found.number.tolist()):
        mine = steps[number]
        ordered = sorted(mine.values())
        most = ordered[-1]
        worst = min(rank for rank, time in mine.items() if time == most)
        assert (found.there[at], found.least[at], found.most[at]) == (len(mine), ordered[0], most)
        assert found.median[at] == ordered[(len(ordered) + 1) // 2 - 1]
        assert found.worst[at] == (worst if most > ordered[0] else -1)


def test_of_no_steps_nothing_is_said() -> None:
    for found in (step_spread([], []), step_spread([(), ()], [(), ()])):
        assert len(found) == 0
        assert find_slowest(found, 2) is None
    assert find_slowest(step_spread([(1, 2)], [(5, 6)]), 1) is None, "one rank alone"
    assert find_slowest(step_spread([(1,), (1,)], [(5,), (5,)]), 2) is None, "all alike"
    assert find_slowest(step_spread([(1,), (2,)], [(5,), (9,)]), 2) is None, "of no step two"


def run(ranks: int, steps: int, seed: int, slow: int = -1, every: int = 1) -> list[list[int]]:
    draw = np.random.default_rng(seed)
    times = 1e6 * (1 + 0.005 * draw.standard_normal((ranks, steps)))
    if slow >= 0:
        times[slow, ::every] *= 1.2
    found: list[list[int]] = times.astype(np.int64).tolist()
    return found


@pytest.mark.parametrize("seed", deep_except([0, 1], range(40)))
@pytest.mark.parametrize("ranks", [2, 16, 64])
def test_where_ranks_are_alike_the_slowest_rotates(seed: int, ranks: int) -> None:
    times = run(ranks, 60, seed)
    found = step_spread([range(60)] * ranks, times)
    slowest = find_slowest(found, ranks)
    assert slowest is not None
    assert not (slowest.repeats and costs_much(slowest, found))


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("seed", deep_except([0], range(40)))
def test_a_rank_that_is_slow_in_some_steps_is_named(seed: int, every: int) -> None:
    ranks, slow = 16, seed % 16
    found = step_spread([range(60)] * ranks, run(ranks, 60, seed, slow, every))
    slowest = find_slowest(found, ranks)
    assert slowest is not None
    assert (slowest.worst, slowest.repeats, slowest.of) == (slow, True, 60)
    assert slowest.share >= 1 / every
    assert costs_much(slowest, found)


@pytest.mark.parametrize(("most", "draws", "ranks"), [(1, 1, 3), (3, 5, 4), (7, 20, 16), (0, 4, 2)])
def test_the_chance_is_the_tail_of_the_binomial_distribution(
    most: int, draws: int, ranks: int
) -> None:
    part = Fraction(1, ranks)
    tail = sum(comb(draws, n) * part**n * (1 - part) ** (draws - n) for n in range(most, draws + 1))
    assert chance_of_most(most, draws, ranks) == pytest.approx(float(min(ranks * tail, 1)))
    assert chance_of_most(5, 5, 1) == 1.0
