"""Tell how far apart ranks are in each frame: mean, median, the worst rank, in exact numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from flame.core.columns import F8, I8, Column
from flame.core.lazy_dataclass import dataclass

ValuesOf = Callable[[I8], I8]
"""Look up what the ranks have of nodes: i8[nodes] to i8[nodes, ranks], 0 where a rank has none."""

_BLOCK = 1 << 22
"""Values that are looked at at once: 32 MB of them, and a few times that while they are ordered."""


@dataclass(frozen=True, eq=False)
class Spread:
    """Hold how nodes are spread over ranks, i8[nodes] each, in the metric's unit.

    Percentiles are by nearest rank, over all ``ranks``: who lacks a node has 0. ``there`` is how
    many ranks have more than that. ``worst`` is the place of the first rank with the most, -1 where
    nobody has anything.
    """

    ranks: int
    total: I8
    least: I8
    median: I8
    p95: I8
    most: I8
    there: I8
    worst: I8

    @property
    def mean(self) -> F8:
        """The mean over all ranks, f8[nodes]."""
        mean: F8 = self.total / self.ranks
        return mean

    @property
    def imbalance(self) -> F8:
        """How much more than the mean the worst rank has, as a part of it: HPC's λ, f8[nodes].

        NaN where nobody has anything.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            found: F8 = self.most * float(self.ranks) / self.total - 1
        return found

    @property
    def deviation(self) -> F8:
        """How far the rank that is farthest from the median is above it, f8[nodes], for colours.

        As a part of the median; negative where it is below, as the rank for which others wait in
        collectives is. Infinite where most ranks have nothing, NaN where nobody has.
        """
        above, below = self.most - self.median, self.median - self.least
        with np.errstate(divide="ignore", invalid="ignore"):
            found: F8 = np.where(above >= below, above, -below) / self.median
        return found


def spread_of(values: I8) -> Spread:
    """Work out the spread of ``values``, i8[nodes, ranks] of one rank at least, none negative."""
    ranks = values.shape[1]
    ordered = np.sort(values, axis=1)
    most = ordered[:, -1]
    return Spread(
        ranks,
        values.sum(axis=1),
        ordered[:, 0],
        ordered[:, nearest_rank(50, ranks)],
        ordered[:, nearest_rank(95, ranks)],
        most,
        np.count_nonzero(values, axis=1),
        np.where(most > 0, values.argmax(axis=1), -1),
    )


def nearest_rank(percent: int, number: int) -> int:
    """The place, from 0 on, of a percentile among ``number`` ordered values, by nearest rank."""
    return max(-(-percent * number // 100) - 1, 0)


def blocks(nodes: Column, ranks: int) -> Iterator[Column]:
    """Divide ``nodes`` into so many at once that their values over ``ranks`` take little memory."""
    size = block_size(ranks)
    return (nodes[at : at + size] for at in range(0, len(nodes), size))


def block_size(ranks: int) -> int:
    """How many nodes are looked at at once."""
    return max(_BLOCK // max(ranks, 1), 1)


def widest(total: I8, most: int) -> I8:
    """List the ``most`` nodes with the largest ``total``, the largest first, i8[n].

    Of equal ones the first; ancestors have smaller numbers, so they come before what is below them.
    """
    found: I8 = np.argsort(-total, kind="stable")[:most]
    return found
