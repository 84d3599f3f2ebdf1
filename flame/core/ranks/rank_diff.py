"""Compare two runs over their ranks: medians, the worst ranks, collectives without the waiting."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from flame.core.columns import F8, I8, Bool, Column, distinct, sum_by
from flame.core.lazy_dataclass import dataclass
from flame.core.rank_summary.collective_table import CollectiveTable
from flame.core.ranks.outliers import Robust, noise_of

DEVIATIONS = 3.0
"""A change of this many deviations or more is beyond what ranks of one run differ by."""


@dataclass(frozen=True, eq=False)
class RankChanges:
    """Say how nodes changed from one run over ranks to another, f8 or i8[nodes].

    Medians are means of the two in the middle. ``deviation`` is that of both runs together: the
    root of the sum of squares of their robust deviations, which for few ranks are not less than
    the noise of all nodes that are compared. ``base_most`` and ``new_most`` are of the
    worst ranks, at the places ``base_worst`` and ``new_worst``: only these may have changed.
    ``base_noise`` and ``new_noise`` are the noise of all nodes of a run, as parts of them.
    """

    base_median: F8
    new_median: F8
    deviation: F8
    base_most: Column
    new_most: Column
    base_worst: I8
    new_worst: I8
    base_noise: float
    new_noise: float

    @property
    def change(self) -> F8:
        """By how much the median of new is above that of base."""
        return self.new_median - self.base_median

    @property
    def most_change(self) -> Column:
        """By how much the worst rank of new is above that of base."""
        return self.new_most - self.base_most

    @property
    def deviations(self) -> F8:
        """How many deviations the change of medians is; 0 where nothing is there."""
        there = self.deviation > 0
        return np.divide(self.change, self.deviation, out=np.zeros(len(there)), where=there)

    @property
    def is_beyond(self) -> Bool:
        """Whether medians are farther apart than ranks of one run are, bool[nodes]."""
        return np.abs(self.deviations) >= DEVIATIONS

    @property
    def is_worst_beyond(self) -> Bool:
        """Whether the worst ranks are, bool[nodes]."""
        beyond: Bool = np.abs(self.most_change) > DEVIATIONS * self.most_deviation
        return beyond

    @property
    def most_deviation(self) -> F8:
        """The deviation of the worst ranks, f8[nodes].

        Of what only a few ranks have there is no other than the noise of all nodes.
        """
        own: F8 = np.hypot(self.base_noise * self.base_most, self.new_noise * self.new_most)
        return np.maximum(self.deviation, own)


def compare_ranks(base: Column, new: Column) -> RankChanges:
    """Compare what the ranks of two runs have of the same nodes, i8 or f8[nodes, ranks] each.

    There may be more ranks on one side, and one at least on each.
    """
    before, after = Robust.of(base), Robust.of(new)
    noises = [
        noise_of(one.relative(), values.shape[1]) for one, values in ((before, base), (after, new))
    ]
    return RankChanges(
        before.median,
        after.median,
        np.hypot(_deviation(before, noises[0]), _deviation(after, noises[1])),
        base.max(axis=1),
        new.max(axis=1),
        base.argmax(axis=1),
        new.argmax(axis=1),
        *noises,
    )


def _deviation(robust: Robust, noise: float) -> F8:
    deviation: F8 = np.maximum(robust.deviation, noise * robust.median)
    return deviation


@dataclass(frozen=True, eq=False)
class CollectiveTimes:
    """Add up collectives that match over ranks by what they are, i8[kinds], times of all ranks, ns.

    ``transfer`` is what the last rank took, times the number of ranks, ``wait`` what all others
    waited for it besides: together they are the duration. ``ranks`` counts one for each rank of
    each of the ``calls``.
    """

    kind: I8
    calls: I8
    ranks: I8
    transfer: I8
    wait: I8

    def per_call(self, times: I8) -> F8:
        """The mean of ``times`` of a rank in a collective, ns."""
        mean: F8 = times / np.maximum(self.ranks, 1)
        return mean


def collective_times(table: CollectiveTable, is_matched: Bool) -> CollectiveTimes:
    """Add up those of ``table`` that are matched, bool[n], by kind."""
    rows = np.flatnonzero(is_matched)
    kind, place = distinct(table.kind_low[rows])
    ranks = table.ranks[rows]
    transfer = ranks * table.shortest[rows]
    sums = (np.ones(len(rows), np.int64), ranks, transfer, table.duration[rows] - transfer)
    return CollectiveTimes(kind, *(sum_by(place, column, len(kind)) for column in sums))


@dataclass(frozen=True, eq=False)
class CollectiveChanges:
    """Say how collectives of the kinds that both runs have changed, f8[kinds], mean ns of a rank.

    Where a rank that was late is gone, waiting is less and the transfer as before.
    """

    kind: I8
    base_transfer: F8
    new_transfer: F8
    base_wait: F8
    new_wait: F8


def compare_collectives(base: CollectiveTimes, new: CollectiveTimes) -> CollectiveChanges:
    """Compare the collectives of two runs, kind by kind."""
    kind, before, after = np.intersect1d(base.kind, new.kind, return_indices=True)
    return CollectiveChanges(
        kind,
        base.per_call(base.transfer)[before],
        new.per_call(new.transfer)[after],
        base.per_call(base.wait)[before],
        new.per_call(new.wait)[after],
    )


def kind_names(kinds: I8, *tables: CollectiveTable) -> list[str]:
    """Name kinds of collectives by what ``tables`` say of their hashes."""
    names: Mapping[int, str] = dict(pair for table in tables for pair in table.kinds)
    return [names.get(one, "other") for one in kinds.tolist()]
