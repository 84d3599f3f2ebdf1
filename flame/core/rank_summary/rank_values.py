"""Look up what each rank has of nodes of a tree, a few ranks at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from flame.core.columns import I8, sum_by, unique
from flame.core.model.tree import StackTree
from flame.core.rank_summary.opened import table_cells, table_groups
from flame.core.rank_summary.summary import METRICS, RankSummary

_BLOCK = 1 << 18
"""Sums that are worked out at a time, or cells that are summed up: 2 MB."""


def values_of_ranks(summary: RankSummary, tree: StackTree, nodes: I8) -> I8:
    """Look up what each rank has at ``nodes`` and below them, i8[nodes, ranks], in the tree's unit.

    ``tree`` is a projection of the profile of ``summary``: of all ranks together, or by rank, where
    others than a node's own have 0. What a summary has left out of a rank is lacking here. Raises
    ValueError for a tree of some of the ranks.
    """
    edges = unique(np.concatenate([nodes, tree.end[nodes]]).astype(np.int64))
    first, last = (np.searchsorted(edges, one) for one in (nodes, tree.end[nodes]))
    found = np.zeros((len(nodes), len(summary)), np.int64)
    row = METRICS.index(tree.metric.key)
    for begin, end in _blocks(summary, len(edges)):
        cells, rank, node = _cells_of(summary, tree, range(begin, end))
        place = np.searchsorted(edges, node, "right")  # 0: before the first edge, or in no node
        ranks = end - begin
        sums = sum_by(place * ranks + rank, summary.cell[row][cells], (len(edges) + 1) * ranks)
        before = np.cumsum(sums.reshape(-1, ranks)[1:], axis=0)
        before = np.concatenate([np.zeros((1, ranks), np.int64), before])
        found[:, begin:end] = before[last] - before[first]
    return found


def _blocks(summary: RankSummary, edges: int) -> Iterator[tuple[int, int]]:
    """Split the ranks into stretches [first, last), each with `_BLOCK` sums and cells or so."""
    ranks = len(summary)
    cells = len(summary.cell_group) // max(ranks, 1)
    size = max(_BLOCK // (max(edges, cells) + 1), 1)
    yield from pairwise([*range(0, ranks, size), ranks])


def _cells_of(summary: RankSummary, tree: StackTree, places: range) -> tuple[I8, I8, I8]:
    """(cells of the ranks at ``places``, their place in these, the node of each, -1 of none)."""
    host, known = tree.metric.table == "host", tree.node_of_group
    cells, rank = table_cells(summary, host, places)
    groups = table_groups(summary, host)
    if len(known) == len(groups):
        number = np.zeros(len(summary.group_hash), np.int64)
        number[groups] = np.arange(len(groups))
        return cells, rank, known[number[summary.cell_group[cells]]].astype(np.int64)
    whole, _ = table_cells(summary, host, range(len(summary)))
    if len(known) != len(whole):
        raise ValueError("the tree is of some of the ranks")
    return cells, rank, known[np.searchsorted(whole, cells)].astype(np.int64)
