"""Which activities lie below a node of a projected tree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flame.core.columns import I8, Bool, stretches
from flame.core.profile import Profile
from flame.core.tree import StackTree
from flame.core.where import Filter, passing_rows


@dataclass(frozen=True, eq=False)
class Members:
    """Rows of the table that ``tree.metric`` measures, by the node where they end.

    ``rows`` i8[n]: those that pass the filters, in the order of their nodes. ``bounds``
    i8[nodes + 1]: where each node's begin in it, so that a subtree's are one slice.
    """

    tree: StackTree
    rows: I8
    bounds: I8

    @classmethod
    def of(cls, profile: Profile, tree: StackTree, where: tuple[Filter, ...]) -> Members:
        """The members of ``tree``, which `project` has made of ``profile`` with ``where``."""
        table = profile.table(tree.metric)
        node = tree.node_of_group[table.groups.of].astype(np.int64)
        passing = node >= 0
        chosen = passing_rows(profile, table, where)
        if chosen is not None:
            passing &= chosen
        rows = np.flatnonzero(passing)
        # Sorting keys of both is several times faster than a stable argsort of the nodes.
        keys = np.sort((node[rows] << 32) | rows)
        counts = np.bincount(keys >> 32, minlength=len(tree))
        return cls(tree, keys & 0xFFFFFFFF, np.concatenate([[0], np.cumsum(counts)]))

    def below(self, node: int) -> I8:
        """The rows that end at ``node`` or below it."""
        return self.rows[self.bounds[node] : self.bounds[self.tree.end[node]]]

    def of_frame(self, frame: int) -> I8:
        """The rows below any place of ``frame``, each once however often it recurs."""
        nodes = np.flatnonzero(self.tree.frame == frame)
        low, high = self.bounds[nodes], self.bounds[self.tree.end[nodes]]
        # A place within another one begins before that one's end: nothing of it is left.
        low = np.maximum(low, np.concatenate([[0], np.maximum.accumulate(high)[:-1]]))
        return self.rows[stretches(low, np.maximum(high - low, 0))]

    def groups_below(self, node: int) -> Bool:
        """The groups of the table that end at ``node`` or below it."""
        end = self.tree.node_of_group
        found: Bool = (end >= node) & (end < self.tree.end[node])
        return found

    def groups_of_frame(self, frame: int) -> Bool:
        """The groups that end below any place of ``frame``."""
        reach = np.maximum.accumulate(np.where(self.tree.frame == frame, self.tree.end, 0))
        inside = np.append(np.arange(len(self.tree)) < reach, False)  # -1: filtered out
        found: Bool = inside[self.tree.node_of_group]
        return found
