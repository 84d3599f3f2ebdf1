"""Find what places of a comparison's union are of in the trace of one of its runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from flame.core.analysis.sandwich import outermost_places
from flame.core.columns import I4, I8, Bool, unique
from flame.core.model.frames import Kind
from flame.core.model.tree import StackTree
from flame.tui.diff.session import DiffProjection
from flame.tui.sampling.subject import kernel_above
from flame.tui.session.session import Projection
from flame.tui.session.tree_view import TreeView


class Places(NamedTuple):
    """Hold ``nodes`` of the union (i8): one alone, or ``everywhere`` a frame is."""

    nodes: I8
    everywhere: bool

    @classmethod
    def of(cls, shown: DiffProjection, view: TreeView, node: int) -> Places:
        """Find what ``node`` of ``view`` is: in a tree made of the union, all of its places."""
        if view is shown.view:
            return cls(np.array([node]), False)
        return cls(outermost_places(shown.view.tree, int(view.tree.frame[node])), True)


class OwnPlaces(NamedTuple):
    """Hold the projection of a run ``alone``, and its ``nodes`` (i8) at places of the union."""

    alone: Projection
    nodes: I8
    everywhere: bool

    @classmethod
    def of(cls, shown: DiffProjection, places: Places, run: int) -> OwnPlaces:
        """Find ``places`` in the run at the place ``run``."""
        found = np.flatnonzero(np.isin(shown.comparison.union.node[run], places.nodes))
        return cls(shown.alone(run), found.astype(np.int64), places.everywhere)

    @property
    def tree(self) -> StackTree:
        """The run's own tree."""
        return self.alone.view.tree

    def groups(self) -> Bool:
        """Mark the groups of the kernels at the places, or else of what is below these."""
        change = np.zeros(len(self.tree) + 1, np.int64)
        for node in self.nodes.tolist():
            top = kernel_above(self.tree, node)
            change[top] += 1
            change[self.tree.end[top]] -= 1
        return self.tree.groups_below(np.cumsum(change[:-1]) > 0)

    def parts(self) -> Iterator[tuple[Kind, I4]]:
        """The instructions and reasons that the places are of, by kind."""
        nodes = self.nodes.tolist()
        paths = nodes if self.everywhere else [one for at in nodes for one in self.tree.path(at)]
        for kind in (Kind.SASS, Kind.STALL):
            chosen = [at for at in paths if self.tree.kind(at) == kind]
            if chosen:
                yield kind, unique(self.tree.frame[chosen])
