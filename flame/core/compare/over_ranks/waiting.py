"""Tell how much of a change is waiting in collectives: the effect of who comes last to them."""

from __future__ import annotations

import numpy as np

from flame.core.columns import I8, Bool, sum_by
from flame.core.compare.changes import Changes, side_sums
from flame.core.compare.comparison import Comparison
from flame.core.compare.over_ranks.rank_samples import summary_at, why_no_spread
from flame.core.kept_results import kept
from flame.core.model.tree import subtree_sums
from flame.core.rank_summary.opened import table_groups


@kept
def waiting_changes(comparison: Comparison) -> Changes | None:
    """Measure the waiting in and below each node of the union; None where it is not known."""
    if why_no_spread(comparison) or comparison.metric.key != "gpu":
        return None
    runs = range(len(comparison.sides.runs))
    if not all(_is_known(comparison, at) for at in runs):
        return None
    end = comparison.union.tree.end
    waits = np.stack([subtree_sums(_own_waits(comparison, at), end) for at in runs])
    root = comparison.union.total[:, 0]
    count = comparison.union.count
    return side_sums(comparison.basis, comparison.sides.side_of_run, waits, count, root)


def _is_known(comparison: Comparison, at: int) -> bool:
    waits = summary_at(comparison, at).waits
    return waits is not None and waits.by_group


def _own_waits(comparison: Comparison, at: int) -> I8:
    """How long all ranks of the run ``at`` that place waited at each node itself, i8[nodes]."""
    summary, own = summary_at(comparison, at), comparison.trees[at].node_of_group
    assert summary.waits is not None
    number = np.full(len(summary.group_hash), -1, np.int64)
    number[table_groups(summary, host=False)] = np.arange(len(own))
    place = number[summary.waits.group]
    node = np.append(own, -1)[place]
    shown = node >= 0
    nodes = comparison.union.node[at][node[shown]]
    return sum_by(nodes, summary.waits.group_wait[shown], len(comparison.union))


@kept
def changed_by_waiting(comparison: Comparison) -> Bool:
    """Mark the nodes whose change does not count without the waiting in them, bool[n]."""
    changes, waits = comparison.changes, waiting_changes(comparison)
    if waits is None:
        return np.zeros(len(comparison.union), bool)
    rest = changes.delta - waits.delta
    base = changes.base.value - waits.base.value
    limits, largest = comparison.limits, comparison.largest
    counts = np.abs(rest) >= np.maximum(limits.of_base * base, limits.of_root * largest.amount)
    counts &= np.sign(rest) == np.sign(changes.delta)
    by_waiting: Bool = (waits.delta != 0) & ~counts
    return by_waiting
