"""Ranks that are late: those that were planted, and no others."""

from __future__ import annotations

import numpy as np
import pytest

from flame.core.ranks.communication.late import LateRank, Members, beyond_chance, find_late
from flame.core.ranks.communication.matching import match_table
from tests.support.ranks.rank_arrivals import (
    Job,
    Met,
    arrivals_by_hand,
    simulate,
    whole_communication,
    whole_table,
)


def late_of(job: Job) -> tuple[LateRank, ...]:
    table = whole_table(job.ranks)
    return find_late(table, match_table(table, len(job.ranks)), whole_communication(job.ranks))


def test_a_slow_gpu_is_told_from_a_late_host() -> None:
    job = simulate(16, steps=18, straggler=7, late=3, layers=2)
    slow, stalled = sorted(late_of(job), key=lambda one: -one.rank)
    assert (slow.rank, stalled.rank) == (7, 3)
    assert slow.by_work > 20 * slow.by_idle
    assert stalled.by_idle > 20 * stalled.by_work
    assert (slow.last, stalled.last) == (job.last[7], job.last[3])
    assert 0.9 < slow.share + stalled.share <= 1


@pytest.mark.deep
@pytest.mark.parametrize("ranks", [4, 16, 64])
def test_nothing_is_found_where_nothing_is(ranks: int) -> None:
    """The test may err once in 100 jobs: of 40 none or one."""
    found = [late_of(simulate(ranks, seed=seed)) for seed in range(40)]
    assert sum(map(bool, found)) <= 1


@pytest.mark.deep
@pytest.mark.parametrize("ranks", [64, 256])
def test_only_those_planted_are_found(ranks: int) -> None:
    for seed in range(12):
        job = simulate(ranks, steps=12, seed=seed, straggler=5, late=ranks - 1)
        assert [one.rank for one in late_of(job)] == [5, ranks - 1], seed


def test_ranks_are_drawn_among_those_of_the_communicator() -> None:
    """Last in each of a few calls of two ranks is chance; of many ranks it is not."""
    calls = 8
    cost, who = np.full(calls, 1_000), np.zeros(calls, np.int64)
    of = np.zeros(calls, np.int64)
    few = Members(np.array([0, 1, 0, 2]), np.array([0, 2]), np.array([2, 2]))
    many = Members(np.arange(16), np.array([0, 8]), np.array([8, 8]))
    two = np.arange(calls) % 2
    assert beyond_chance(who, cost, two, many._replace(rank=np.arange(16) % 8)) == [0]
    assert beyond_chance(who[:5], cost[:5], two[:5], few) == []
    assert beyond_chance(who[:5], cost[:5], of[:5], few) == []
    assert beyond_chance(who, cost, of, many) == [0]


def test_members_are_taken_out_of_each_communicator() -> None:
    members = Members(np.array([0, 1, 2, 3, 1]), np.array([0, 3]), np.array([3, 2]))
    left = members.without(1)
    assert [column.tolist() for column in left] == [[0, 2, 3], [0, 2], [2, 1]]


def test_a_rank_that_costs_little_is_not_told() -> None:
    """Of 100 ranks each is last in 50 collectives, but one in 200: in 4 % of all."""
    who = np.repeat(np.arange(100), np.where(np.arange(100) == 7, 200, 50))
    members, of = (
        Members(np.arange(100), np.array([0]), np.array([100])),
        np.zeros(len(who), np.int64),
    )
    assert beyond_chance(who, np.full(len(who), 10), of, members) == []
    twice = np.append(who, np.full(200, 7))
    of = np.zeros(len(twice), np.int64)
    assert beyond_chance(twice, np.full(len(twice), 10), of, members) == [7]


def test_who_has_been_found_is_left_out_of_what_is_tried_next() -> None:
    """With three ranks to draw from, one that is last six times of six would be told."""
    who = np.repeat([0, 1], [60, 6])
    members = Members(np.arange(3), np.array([0]), np.array([3]))
    assert beyond_chance(who, np.full(66, 10), np.zeros(66, np.int64), members) == [0]


def test_late_every_time_is_found_beside_late_by_much_once() -> None:
    """Two long waits for rank 2 may be chance, and hide rank 1 in sums of time."""
    who = np.repeat([2, 1], [2, 14])
    cost = np.repeat([9_500, 1_400], [2, 14])
    members = Members(np.arange(24), np.array([0]), np.array([24]))
    assert beyond_chance(who, cost, np.zeros(16, np.int64), members) == [1]
    who[2:] = np.arange(14) + 3
    assert beyond_chance(who, cost, np.zeros(16, np.int64), members) == []


def test_each_communicator_has_ranks_of_its_own() -> None:
    who, of = np.repeat([0, 2], 10), np.repeat([0, 1], 10)
    members = Members(np.arange(4), np.array([0, 2]), np.array([2, 2]))
    assert beyond_chance(who, np.full(20, 10), of, members) == [0, 2]


def test_ranks_that_come_together_are_not_late() -> None:
    ranks = [arrivals_by_hand(rank, [Met(at, 10) for at in range(50)]) for rank in range(4)]
    table = whole_table(ranks)
    assert find_late(table, match_table(table, 4), whole_communication(ranks)) == ()
