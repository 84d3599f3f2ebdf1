"""Totals per name over a whole tree, with recursion counted once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flame.core.columns import Bool, sum_by
from flame.core.frames import Kind
from flame.core.tree import StackTree


@dataclass(frozen=True)
class NameTotal:
    """One name of one kind: inclusive total, own value (metric units), and activities."""

    name: str
    kind: Kind
    total: int
    own: int
    count: int


def outermost_of_name(tree: StackTree) -> Bool:
    """Nodes with no ancestor of the same frame: summing these counts recursion once, bool[n]."""
    result = np.ones(len(tree), bool)
    order = np.lexsort((np.arange(len(tree)), tree.frame))
    frame, end = tree.frame[order].astype(np.int64), tree.end[order].astype(np.int64)
    # Ends are lifted per frame, so that one running maximum serves all frames at once.
    lift = frame * (len(tree) + 1)
    reach = np.maximum.accumulate(end + lift)
    result[order[1:]] = order[1:] + lift[1:] >= reach[:-1]
    return result


def top(tree: StackTree, kinds: tuple[Kind, ...] | None = None) -> list[NameTotal]:
    """Totals of every frame in ``tree``, largest first; only of ``kinds`` where given."""
    size = len(tree.text)
    counted = np.flatnonzero(outermost_of_name(tree))
    total = sum_by(tree.frame[counted], tree.total[counted], size)
    count = sum_by(tree.frame[counted], tree.count[counted], size)
    own = sum_by(tree.frame, tree.own, size)
    used = np.unique(tree.frame[1:]).tolist()
    rows = [
        NameTotal(tree.text[f], tree.frames[f].kind, int(total[f]), int(own[f]), int(count[f]))
        for f in used
        if kinds is None or tree.frames[f].kind in kinds
    ]
    return sorted(rows, key=lambda row: (-row.total, row.name))
