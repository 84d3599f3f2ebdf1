"""Estimate how long single activities of nodes took, from the histograms of a summary."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8
from flame.core.model.tree import StackTree
from flame.core.rank_summary.duration_histogram import quantile
from flame.core.rank_summary.opened import table_groups
from flame.core.rank_summary.summary import RankSummary


class Durations(NamedTuple):
    """Say how long each of ``count`` activities took, ns: percentiles to 1 %, the rest exactly."""

    count: int
    least: int
    p50: float
    p95: float
    p99: float
    most: int


def durations_below(summary: RankSummary, tree: StackTree, nodes: I8) -> Durations | None:
    """Tell how long the activities below ``nodes`` took; None where there is none.

    ``tree`` is of all ranks of ``summary``. Durations are those of activities, whatever its metric.
    """
    of_table = table_groups(summary, tree.metric.table == "host")
    if len(tree.node_of_group) != len(of_table):
        return None
    groups = of_table[_below(tree, nodes)]
    mine = np.isin(summary.bin_group, groups)
    bins, counts = summary.bin[mine], summary.bin_count[mine]
    number = int(counts.sum())
    if not number:
        return None
    used, place = np.unique(bins, return_inverse=True)
    sums = np.zeros(len(used), np.int64)
    np.add.at(sums, place, counts)
    p50, p95, p99 = (quantile(used, sums, part) for part in (0.5, 0.95, 0.99))
    least, most = int(summary.shortest[groups].min()), int(summary.longest[groups].max())
    return Durations(number, least, *(_within(one, least, most) for one in (p50, p95, p99)), most)


def _below(tree: StackTree, nodes: I8) -> I8:
    """Which groups of the tree's table end in one of ``nodes`` or below."""
    edges = np.zeros(len(tree) + 1, np.int64)
    np.add.at(edges, nodes, 1)
    np.add.at(edges, tree.end[nodes], -1)
    inside = np.append(np.cumsum(edges)[:-1] > 0, False)
    return np.flatnonzero(inside[tree.node_of_group])


def _within(value: float, least: int, most: int) -> float:
    return math.nan if math.isnan(value) else min(max(value, least), most)
