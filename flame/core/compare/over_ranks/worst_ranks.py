"""Find the frames that have changed on the worst rank: the median rank may be as before."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from flame.core.columns import F8, I8, Bool, Column
from flame.core.compare.changes import heirs
from flame.core.compare.comparison import Comparison
from flame.core.compare.over_ranks.rank_samples import rank_samples, ranks_of_side, why_no_spread
from flame.core.compare.samples import HeaviestNodes
from flame.core.compare.sides import BASE, NEW
from flame.core.kept_results import kept
from flame.core.ranks.outliers import without_collectives
from flame.core.ranks.rank_diff import DEVIATIONS, RankChanges, compare_ranks
from flame.core.ranks.rank_sections.questions import collective_nodes


class WorstRanks(NamedTuple):
    """Say what the worst ranks have of each node of a union, on the basis of the comparison.

    ``base`` and ``new`` f8[n] are without collectives; ``base_rank`` and ``new_rank`` i8[n] are the
    numbers of these ranks. ``marked`` bool[n] are the nodes in which they differ by more than ranks
    of one run do, by more than the medians, and by enough to count. ``told`` bool[n] are the
    innermost of these.
    """

    base: F8
    new: F8
    base_rank: I8
    new_rank: I8
    marked: Bool
    told: Bool

    @property
    def change(self) -> F8:
        """By how much the worst rank of new has more, f8[n]."""
        return self.new - self.base


@kept
def worst_ranks(comparison: Comparison) -> WorstRanks | None:
    """Compare the worst ranks of the heaviest nodes; None where ranks tell nothing."""
    if why_no_spread(comparison):
        return None
    tree, nodes = comparison.union.tree, HeaviestNodes.of(comparison)
    collective = collective_nodes(tree)
    base, new = (
        without_collectives(partial(_side, comparison, side), tree.end, collective)(nodes.node)
        for side in (BASE, NEW)
    )
    found = compare_ranks(base, new)
    marked = found.is_worst_beyond & _counts(comparison, found, max(base[:1].max(), new[:1].max()))
    numbers = [ranks_of_side(comparison, side) for side in (BASE, NEW)]
    spread = partial(_spread, nodes.place)
    marked, change = spread(marked), spread(found.most_change)
    return WorstRanks(
        spread(found.base_most),
        spread(found.new_most),
        spread(numbers[BASE][found.base_worst]),
        spread(numbers[NEW][found.new_worst]),
        marked,
        marked & (heirs(tree, np.where(marked, change, 0.0)) < 0),
    )


def _counts(comparison: Comparison, found: RankChanges, root: float) -> Bool:
    """Mark the nodes whose worst ranks changed enough, and by more than the median rank."""
    of_base, of_root = comparison.limits
    more = np.abs(found.most_change - found.change)
    size = np.minimum(np.abs(found.most_change), more)
    counts: Bool = (size >= of_base * found.base_most) & (size >= of_root * root)
    return counts & (more > DEVIATIONS * found.most_deviation)


def _side(comparison: Comparison, side: int, nodes: I8) -> F8:
    return rank_samples(comparison, nodes)[side]


def _spread(place: I8, values: Column) -> Column:
    """Spread what is known of some nodes over all that they stand for; 0 elsewhere."""
    found: Column = np.append(values, values.dtype.type(0))[place]
    return found
