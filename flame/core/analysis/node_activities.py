"""Find the activities below a node or frame of a projected tree."""

from __future__ import annotations

import numpy as np

from flame.core.columns import I8, Bool, expand_ranges, order_by
from flame.core.lazy_dataclass import dataclass
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.projection.filters import Filter, passing_rows


@dataclass(frozen=True, eq=False)
class NodeActivities:
    """Hold rows of the table that ``tree.metric`` measures, by the node where they end.

    ``rows`` i8[n]: those that pass the filters, in the order of their nodes. ``bounds``
    i8[nodes + 1]: where each node's rows begin in it, so that a subtree's are one slice. Where the
    tree splits groups, it is units instead of nodes (see `flame.core.model.tree.GroupParts`).
    """

    tree: StackTree
    rows: I8
    bounds: I8

    @classmethod
    def from_tree(
        cls, profile: Profile, tree: StackTree, filters: tuple[Filter, ...]
    ) -> NodeActivities:
        """Sort activities by node of ``tree``, which `project` made of ``profile``."""
        table, rows = profile.table(tree.metric), rows_in_tree(profile, tree, filters)
        ends = tree.parts.unit_of_group if tree.parts else tree.node_of_group
        size = tree.parts.units if tree.parts else len(tree)
        end = ends[table.groups.of_row[rows]]
        counts = np.bincount(end, minlength=size)
        return cls(tree, rows[order_by([end])], np.concatenate([[0], np.cumsum(counts)]))

    def below(self, node: int) -> I8:
        """Find the rows of which anything ends at ``node`` or below it."""
        if self.tree.parts:
            return self._rows_of_units(self.tree.parts.units_with(self._within(node)))
        return self.rows[self.bounds[node] : self.bounds[self.tree.end[node]]]

    def of_frame(self, frame: int) -> I8:
        """Find the rows below any place of ``frame``, each once however often it recurs."""
        if self.tree.parts:
            return self._rows_of_units(self.tree.parts.units_with(self._within_any(frame)))
        nodes = np.flatnonzero(self.tree.frame == frame)
        low, high = self.bounds[nodes], self.bounds[self.tree.end[nodes]]
        # A place within another place begins before the end of that: nothing of it is left.
        low = np.maximum(low, np.concatenate([[0], np.maximum.accumulate(high)[:-1]]))
        return self.rows[expand_ranges(low, np.maximum(high - low, 0))]

    def _rows_of_units(self, wanted: Bool) -> I8:
        """The rows in the ``wanted`` units, bool[units]."""
        if wanted.all():
            return self.rows
        units = np.flatnonzero(wanted)
        return self.rows[expand_ranges(self.bounds[units], np.diff(self.bounds)[units])]

    def groups_below(self, node: int) -> Bool:
        """Tell which groups of the table have anything at ``node`` or below it, bool[groups]."""
        return self.tree.groups_below(self._within(node))

    def _within(self, node: int) -> Bool:
        inside = np.zeros(len(self.tree), bool)
        inside[node : self.tree.end[node]] = True
        return inside

    def groups_of_frame(self, frame: int) -> Bool:
        """Tell which groups have anything below any place of ``frame``, bool[groups]."""
        return self.tree.groups_below(self._within_any(frame))

    def _within_any(self, frame: int) -> Bool:
        reach = np.maximum.accumulate(np.where(self.tree.frame == frame, self.tree.end, 0))
        inside: Bool = np.arange(len(self.tree)) < reach
        return inside


def rows_in_tree(profile: Profile, tree: StackTree, filters: tuple[Filter, ...]) -> I8:
    """Find the rows of which anything is in ``tree``, which `project` made of ``profile``."""
    chosen = chosen_rows(profile, tree, filters)
    return np.arange(len(profile.table(tree.metric))) if chosen is None else chosen


def chosen_rows(profile: Profile, tree: StackTree, filters: tuple[Filter, ...]) -> I8 | None:
    """Find them as `rows_in_tree`; None stands for all."""
    table, inside = profile.table(tree.metric), tree.node_of_group >= 0
    chosen = passing_rows(profile, table, filters)
    if inside.all():
        return None if chosen is None else np.flatnonzero(chosen)
    passing = inside[table.groups.of_row]
    return np.flatnonzero(passing if chosen is None else passing & chosen)
