"""Find the ranks that others wait for by more than chance.

Each collective has brought its ranks together, so that without a fault any of them may be the next
to come last. Two permutation tests tell what chance does, of the longest waiting for a rank and of
how often it came last: who was last is drawn anew in each collective among its ranks, with the
waiting that it was. The second finds a rank that is late by a little every time beside one that is
late by much once. They take collectives as independent: one stall that makes a rank late in
several in a row counts several times. So they tell that a rank was late, and not that it will be
again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.columns import F8, I8, distinct, run_starts
from flame.core.rank_summary.collective_table import CollectiveTable
from flame.core.rank_summary.rank_communication import RankCommunication
from flame.core.ranks.communication.matching import Matching
from flame.core.ranks.communication.waits import RankCauses, caused_waits, causes_of, late_rows

ROUNDS = 1_000
LEVEL = 0.01
"""The chance that any rank at all is told though none is late, half of it for each test."""

LEAST_SHARE = 0.05
"""Of all waiting: a rank that causes less is not worth telling."""

_SEED = 0
_BLOCK = 1 << 18
"""Draws at a time: they and their sums stay in the cache."""


class LateRank(NamedTuple):
    """Say how a rank made others wait, in ns, as `RankCauses`; ``share`` is of all waiting."""

    rank: int
    last: int
    caused: int
    share: float
    by_work: int
    by_idle: int


def find_late(
    table: CollectiveTable, matching: Matching, communication: RankCommunication
) -> tuple[LateRank, ...]:
    """Find the ranks that are late beyond chance, that others waited for longest first.

    ``communication`` tells which ranks each communicator has.
    """
    rank, _ = distinct(communication.rank)
    rows = late_rows(table, matching)
    members, of = _members(communication, matching, rank), matching.of_row[rows]
    who = np.searchsorted(rank, table.last[rows])
    found = beyond_chance(who, caused_waits(table)[rows], of, members)
    causes = causes_of(table, matching, rank)
    return tuple(_late(causes, rank, at) for at in found)


def _late(causes: RankCauses, rank: I8, at: int) -> LateRank:
    last, caused, by_work, by_idle = (int(column[at]) for column in causes)
    return LateRank(
        int(rank[at]), last, caused, caused / int(causes.caused.sum()), by_work, by_idle
    )


class Members(NamedTuple):
    """Hold the ranks of communicators: those of each are in ``rank`` from ``begin`` on."""

    rank: I8
    begin: I8
    number: I8

    def without(self, rank: int) -> Members:
        """Make the same without ``rank``."""
        gone = self.rank == rank
        before = np.concatenate([[0], np.cumsum(gone)])
        end = self.begin + self.number
        number = self.number - (before[end] - before[self.begin])
        return Members(self.rank[~gone], self.begin - before[self.begin], number)


def _members(communication: RankCommunication, matching: Matching, rank: I8) -> Members:
    """The places among ``rank`` of those in each communicator of ``matching``."""
    size = len(matching.communicator)
    rows = np.flatnonzero(np.isin(communication.communicator, matching.communicator))
    of = np.searchsorted(matching.communicator, communication.communicator[rows])
    order = np.lexsort((communication.rank[rows], of))
    number = np.bincount(of, minlength=size).astype(np.int64)
    place = np.searchsorted(rank, communication.rank[rows][order])
    return Members(place, np.cumsum(number) - number, number)


def beyond_chance(who: I8, caused: I8, communicator: I8, members: Members) -> list[int]:
    """Find who caused more than chance, and is worth telling, one after the other.

    In each collective ``who`` came last, others waited ``caused`` ns for it, and the ranks that
    could have come last are those of its ``communicator``. Those found are left out of what is
    tried next, with the collectives that waited for them.
    """
    rng, found, cost = np.random.default_rng(_SEED), list[int](), caused.astype(np.float64)
    least = LEAST_SHARE * int(caused.sum())
    while len(who):
        top = _find_latest(who, cost, communicator, members, least, rng)
        if top is None:
            break
        found.append(top)
        others = who != top
        who, cost, communicator, members = (
            who[others],
            cost[others],
            communicator[others],
            members.without(top),
        )
    return found


def _find_latest(
    who: I8, cost: F8, of: I8, members: Members, least: float, rng: np.random.Generator
) -> int | None:
    """Find the rank that others waited for longest, else most often, if that is beyond chance."""
    waited = np.bincount(who, cost)
    for weight in (cost, np.ones(len(cost))):
        sums = np.where(waited >= least, np.bincount(who, weight), 0)
        top = int(sums.argmax())
        if sums[top] and not _is_chance(float(sums[top]), weight, of, members, rng):
            return top
    return None


def _is_chance(
    largest: float, weight: F8, of: I8, members: Members, rng: np.random.Generator
) -> bool:
    """Whether a sum of ``weight`` of this size comes of chance in more than half of `LEVEL`.

    As soon as enough of `ROUNDS` have one the others need not be drawn.
    """
    reached, size = 0, int(members.rank.max(initial=0)) + 1
    block = max(_BLOCK // len(weight), 1)
    for first in range(0, ROUNDS, block):
        number = min(block, ROUNDS - first)
        drawn = _draw(of, members, number, rng)
        drawn += np.arange(number)[:, None] * size
        weights = np.broadcast_to(weight, drawn.shape).ravel()
        sums = np.bincount(drawn.ravel(), weights, number * size).reshape(number, size)
        reached += int((sums.max(axis=1) >= largest).sum())
        if reached >= LEVEL / 2 * ROUNDS:
            return True
    return False


def _draw(of: I8, members: Members, rounds: int, rng: np.random.Generator) -> I8:
    """Draw a rank of the communicator of each collective, i8[rounds, collectives]."""
    number, begin = members.number[of], members.begin[of]
    shape = rounds, len(of)
    if len(run_starts(of)) == 1:
        place: I8 = begin[0] + rng.integers(0, number[0], shape)
        return members.rank[place]
    # The upper half of a product of 32 bits is as even as 32 bits are.
    drawn = rng.integers(0, 1 << 32, shape, np.uint32).astype(np.int64)
    place = begin + (drawn * number >> 32)
    return members.rank[place]
