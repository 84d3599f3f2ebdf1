"""Look up what each rank has of nodes of a tree, a few ranks at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from flame.core.columns import I8, sum_by, unique
from flame.core.model.activities import NONE
from flame.core.model.metrics import WAIT
from flame.core.model.tree import SHARES, StackTree
from flame.core.rank_summary.opened import table_cells, table_groups
from flame.core.rank_summary.summary import METRICS, RankSummary
from flame.core.rank_summary.waits_of_groups import waits_of_cells

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
    ends = _ends(tree)
    for begin, end in _blocks(summary, len(edges)):
        cells, rank, group = _cells_of(summary, tree, range(begin, end))
        ranks, sums = end - begin, np.zeros((len(edges) + 1) * (end - begin), np.int64)
        for node, values in zip(ends, _values(summary, tree, cells), strict=True):
            # 0: before the first edge, or in no node
            place = np.searchsorted(edges, node[group], "right")
            sums += sum_by(place * ranks + rank, values, len(sums))
        before = np.cumsum(sums.reshape(-1, ranks)[1:], axis=0)
        before = np.concatenate([np.zeros((1, ranks), np.int64), before])
        found[:, begin:end] = before[last] - before[first]
    return found


def _ends(tree: StackTree) -> Sequence[I8]:
    """The node where each group ends, i8[groups], -1 of none: one, or one of each of `SHARES`."""
    parts = tree.parts
    if parts is None or parts.share is None:
        return [tree.node_of_group.astype(np.int64)]
    ends = np.full((len(SHARES), parts.units + 1), NONE, np.int64)
    ends[parts.share, parts.unit] = parts.node
    return [one[parts.unit_of_group] for one in ends]


def _values(summary: RankSummary, tree: StackTree, cells: I8) -> Sequence[I8]:
    """The metric of ``tree`` in ``cells``: one, or one of each of `SHARES`."""
    is_wait, shares = tree.metric.key == WAIT.key, tree.parts is not None
    if not (is_wait or shares):
        return [summary.cell[METRICS.index(tree.metric.key)][cells]]
    assert summary.waits is not None
    _, waiting, transfer = waits_of_cells(summary, summary.waits, cells)
    if is_wait:
        nothing = np.zeros_like(waiting)
        return [nothing, waiting, nothing] if shares else [waiting]
    gpu = summary.cell[METRICS.index(tree.metric.key)][cells]
    return [gpu - waiting - transfer, waiting, transfer]


def _blocks(summary: RankSummary, edges: int) -> Iterator[tuple[int, int]]:
    """Split the ranks into stretches [first, last), each with `_BLOCK` sums and cells or so."""
    ranks = len(summary)
    cells = len(summary.cell_group) // max(ranks, 1)
    size = max(_BLOCK // (max(edges, cells) + 1), 1)
    yield from pairwise([*range(0, ranks, size), ranks])


def _cells_of(summary: RankSummary, tree: StackTree, places: range) -> tuple[I8, I8, I8]:
    """(cells of the ranks at ``places``, their place in these, the group of each in the tree)."""
    host, size = tree.metric.table == "host", len(tree.node_of_group)
    cells, rank = table_cells(summary, host, places)
    groups = table_groups(summary, host)
    if size == len(groups):
        number = np.zeros(len(summary.group_hash), np.int64)
        number[groups] = np.arange(len(groups))
        return cells, rank, number[summary.cell_group[cells]]
    whole, _ = table_cells(summary, host, range(len(summary)))
    if size != len(whole):
        raise ValueError("the tree is of some of the ranks")
    return cells, rank, np.searchsorted(whole, cells)
