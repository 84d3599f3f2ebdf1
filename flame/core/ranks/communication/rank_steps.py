"""Measure the steps of a rank: how long each took, and how long its GPU worked for it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, distinct, sum_by
from flame.core.model.activities import NONE
from flame.core.model.profile import Profile

MOST_STEPS = 10_000
"""Steps of a rank that are told; later ones are left out."""


class RankSteps(NamedTuple):
    """Hold the steps of a rank by their numbers, which rise; i8[n] each, times in ns.

    ``time`` is how long a step took on the host, ``work`` what its GPU did for it besides
    communication: the sum of durations of what was launched in it.
    """

    number: I8
    time: I8
    work: I8


def no_steps() -> RankSteps:
    """Make those of a rank that has none."""
    return RankSteps(*[np.zeros(0, np.int64)] * 3)


def steps_of_rank(profile: Profile, rows: I8, communication: I8) -> tuple[RankSteps, I8]:
    """Measure the iterations of ``profile`` by what ``rows`` of its activities are in them.

    ``communication`` are those of ``rows`` that communicate. Return the steps of their processes,
    and the place of each of ``communication`` among them, i8[n], -1 of none. Several processes may
    be in a step: it takes as long as the longest of them.
    """
    iterations, table = profile.iterations, profile.activities
    mine = np.flatnonzero(np.isin(iterations.process, table.process[rows]))
    number, place = distinct(iterations.number[mine])
    number = number[:MOST_STEPS]
    mine, place = mine[place < len(number)], place[place < len(number)]
    time = np.zeros(len(number), np.int64)
    np.maximum.at(time, place, (iterations.end - iterations.start)[mine])
    place_of = np.full(len(iterations) + 1, NONE)
    place_of[mine] = place
    of = place_of[iterations.of(table)]
    others = rows_besides(rows, communication)
    others = others[of[others] >= 0]
    work = sum_by(of[others], table.duration[others], len(number))
    return RankSteps(number, time, work), of[communication]


def rows_besides(rows: I8, left_out: I8) -> I8:
    """List those of ``rows`` that are not ``left_out``; they rise."""
    marked = np.zeros(int(rows.max(initial=NONE)) + 1, bool)
    marked[rows] = True
    marked[left_out] = False
    return np.flatnonzero(marked)
