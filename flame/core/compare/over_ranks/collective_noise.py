"""Tell how far collectives differ by chance: ranks have these in common, so they do not tell it.

A collective ends on all ranks at once: what makes one take longer makes all ranks take longer. So
how much the sum of some differs is told by how unlike the ratios are, one by one, of those of both
sides in the order in which they ran.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flame.core.columns import F8, I8, order_by
from flame.core.compare.comparison import Comparison
from flame.core.compare.over_ranks.rank_samples import ranks_of_side, summary_at
from flame.core.compare.sides import BASE, NEW
from flame.core.kept_results import kept
from flame.core.model.tree import StackTree, subtree_sums
from flame.core.rank_summary.collective_table import CollectiveTable
from flame.core.rank_summary.summary import RankSummary
from flame.core.ranks.communication.matching import match_table
from flame.core.ranks.rank_sections.questions import collective_nodes

_UNKNOWN = 1.0
"""The deviation of a single collective, as a part of it, where nothing tells it."""

_FEWEST = 4
"""Collectives of both sides that tell it."""

_FEW = 3.0
"""With this beside the number of ratios `DEVIATIONS` of 8 are as rare as those of many."""


@kept
def noise_in_common(comparison: Comparison) -> F8:
    """Measure by how much each node of the union may differ by the collectives in it, f8[nodes].

    It is a standard deviation on the basis of the comparison, of a rank; 0 of nodes without any.
    """
    union, changes = comparison.union, comparison.changes
    parts = list[tuple[F8, F8]]()
    for side, whole in ((BASE, changes.base), (NEW, changes.new)):
        runs = np.array(comparison.sides.side_of_run) == side
        scale = float(whole.value[0]) / max(int(whole.total[0]), 1)
        own, count = union.own[runs].sum(axis=0), union.own_count[runs].sum(axis=0)
        time, calls = time_in_collectives(union.tree, own, count)
        scaled = (time * scale).astype(np.float64)
        parts.append((scaled, calls / max(len(ranks_of_side(comparison, side)), 1)))
    return deviation_of(parts[0], parts[1], ratio_deviation(comparison))


def time_in_collectives(tree: StackTree, own: I8, count: I8) -> tuple[I8, I8]:
    """(time, calls) of the collectives in and below each node, which has so much of its own."""
    nodes = np.flatnonzero(collective_nodes(tree))
    inside = np.zeros(len(tree) + 1, np.int64)
    inside[nodes] += 1
    np.subtract.at(inside, tree.end[nodes], 1)
    covered = np.cumsum(inside)[:-1] > 0
    time, calls = (subtree_sums(np.where(covered, one, 0), tree.end) for one in (own, count))
    return time, calls


def deviation_of(base: tuple[F8, F8], new: tuple[F8, F8], ratio: float) -> F8:
    """By how much sums differ by chance, f8[n], of (time, calls) of a rank on both sides.

    ``ratio`` is the deviation of one collective, as a part of it.
    """
    calls = np.minimum(base[1], new[1])
    found: F8 = ratio * np.maximum(base[0], new[0]) / np.sqrt(np.maximum(calls, 1.0))
    return found


@kept
def ratio_deviation(comparison: Comparison) -> float:
    """Measure how unlike the ratios of single collectives are, new to base, as a part of one."""
    base, new = (_sorted(summary_at(comparison, at)) for at in _first(comparison))
    ratios = np.concatenate([np.zeros(0), *_pairs(base, new)])
    if len(ratios) < _FEWEST:
        return _UNKNOWN
    # Not a robust one: it is the sum that differs, and of few the deviation is often too small.
    return float(ratios.std(ddof=1)) * (1 + _FEW / len(ratios))


def _first(comparison: Comparison) -> tuple[int, int]:
    """The places of the first runs of both sides."""
    return 0, len(comparison.sides.base)


def _sorted(summary: RankSummary) -> dict[int, F8]:
    """The mean duration of a rank in each matched collective, in order, by kind."""
    table: CollectiveTable = summary.collectives
    rows = np.flatnonzero(match_table(table, len(summary)).matched)
    rows = rows[order_by([table.kind_low[rows], table.communicator[rows], table.ordinal[rows]])]
    kinds = table.kind_low[rows]
    mean = table.duration[rows] / np.maximum(table.ranks[rows], 1)
    return {kind: mean[kinds == kind] for kind in np.unique(kinds).tolist()}


def _pairs(base: dict[int, F8], new: dict[int, F8]) -> Iterator[F8]:
    """The logarithms of the ratios of those that came at the same place among their kind."""
    for kind in base.keys() & new.keys():
        size = min(len(base[kind]), len(new[kind]))
        pair = np.maximum(base[kind][:size], 1.0), np.maximum(new[kind][:size], 1.0)
        yield np.log(pair[1] / pair[0])
