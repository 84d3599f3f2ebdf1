"""Find work that other work may have replaced: siblings that only one side has."""

from __future__ import annotations

import numpy as np

from flame.core.columns import F8, I8, LATEST, Column, order_by, pack, run_starts
from flame.core.compare.changes import Side
from flame.core.compare.comparison import Comparison
from flame.core.compare.samples import compared_rows
from flame.core.kept_results import kept
from flame.core.lazy_dataclass import dataclass


@dataclass(frozen=True, eq=False)
class Replaced:
    """Say what has gone and come right below each node that both sides have.

    ``gone`` and ``new`` f8[nodes] are sums of the children that only one side has, on the basis of
    the comparison, but for means, which do not add up: then as recorded. The children ``old_node``
    and ``new_node``, i8[pairs], may be the same work under another name: of those below one parent
    that are of one kind and have one number of activities they have the same place in order of
    time. No more than a suggestion, and none of stacks, which have neither.
    """

    gone: F8
    new: F8
    old_node: I8
    new_node: I8

    @property
    def amount(self) -> F8:
        """How much may have been replaced, f8[nodes]: what is in both sums."""
        return np.minimum(self.gone, self.new)


@kept
def find_replaced(comparison: Comparison) -> Replaced:
    """Find what has gone and come, and pairs of it."""
    changes, parent = comparison.changes, comparison.union.tree.parent
    one_sided = changes.is_gone | changes.is_new
    top = one_sided & ~np.append(one_sided, False)[parent]
    old, new = np.flatnonzero(top & changes.is_gone), np.flatnonzero(top & changes.is_new)
    may_pair = len(old) and len(new) and all(run.has_rows for run in comparison.sides.runs)
    pairs = _pairs(comparison, old, new) if may_pair else (old[:0], new[:0])
    gone, came = _below(comparison, changes.base, old), _below(comparison, changes.new, new)
    return Replaced(gone, came, *pairs)


def _below(comparison: Comparison, side: Side, nodes: I8) -> F8:
    """Sum up ``nodes`` by parent; without one: the root, which has none above it."""
    value: Column = side.total if comparison.basis.kind == "activity" else side.value
    parent = comparison.union.tree.parent[nodes]
    inner = parent >= 0
    sums = np.bincount(parent[inner], value[nodes[inner]], minlength=len(comparison.union))
    return sums.astype(np.float64)


def _pairs(comparison: Comparison, old: I8, new: I8) -> tuple[I8, I8]:
    """Pair ``old`` and ``new`` nodes where as many of both have one parent, kind and count."""
    nodes, is_new = np.concatenate([old, new]), np.arange(len(old) + len(new)) >= len(old)
    tree, key = comparison.union.tree, _counts(comparison)[nodes]
    kind = tree.frames.kind[tree.frame[nodes]].astype(np.int64)
    alike = pack([tree.parent[nodes], kind, key])
    start = _first_starts(comparison)[nodes]
    order = order_by([start, is_new.astype(np.int64), alike])
    nodes, is_new, alike = nodes[order], is_new[order], alike[order]
    first = run_starts(alike)
    size = np.diff(np.append(first, len(nodes)))
    group = np.repeat(np.arange(len(first)), size)
    came = np.bincount(group[is_new], minlength=len(first))
    fits = (2 * came == size)[group]
    return nodes[fits & ~is_new], nodes[fits & is_new]


def _counts(comparison: Comparison) -> I8:
    """Number the numbers of activities, by step or unit where that is the basis, i8[nodes]."""
    changes = comparison.changes
    base, new = changes.base, changes.new
    if comparison.basis.kind not in ("step", "unit"):
        return np.where(changes.is_gone, base.count, new.count)
    scaled = np.where(changes.is_gone, base.scaled_count, new.scaled_count)
    counts: I8 = np.rint(scaled * _PRECISION).astype(np.int64)
    return counts


_PRECISION = 1_000_000
"""Counts by step are equal where they are in millionths."""


def _first_starts(comparison: Comparison) -> I8:
    """When each node began first, i8[nodes] in ns after its recording did."""
    found = np.full(len(comparison.union), LATEST)
    for at, run in enumerate(comparison.sides.runs):
        rows = compared_rows(comparison, at)
        np.minimum.at(found, rows.node, rows.table.start[rows.row] - run.profile.begin)
    return _least_below(found, comparison.union.tree.end)


def _least_below(values: I8, end: Column) -> I8:
    """The least of the values of each node in preorder and all below it, i8[nodes]."""
    edges = np.stack([np.arange(len(values)), end], axis=1).ravel()
    least: I8 = np.minimum.reduceat(np.append(values, LATEST), edges)[::2]
    return least
