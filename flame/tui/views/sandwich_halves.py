"""The two halves of a sandwich as views: what is zoomed, selected and marked in each."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from flame.core.analysis.sandwich import sandwich
from flame.core.columns import Bool
from flame.core.model.tree import StackTree
from flame.tui.session.anchors import Anchor
from flame.tui.session.places import matching_frames
from flame.tui.session.query import Found
from flame.tui.session.tree_view import View


class Halves(NamedTuple):
    """The two trees of a sandwich with what is selected and zoomed in each."""

    callers: View
    callees: View

    @classmethod
    def of(cls, tree: StackTree, frame: int) -> Halves:
        """The sandwich of ``frame``, ready to be drawn; grows with the tree."""
        found = sandwich(tree, frame)
        halves = cls(View(found.callers), View(found.callees))
        for half in halves:
            half.prepare()
            half.whole = int(tree.total[0])
        return halves

    def reset(self) -> None:
        """Zoom out in both."""
        for half in self:
            half.reset()

    @property
    def own(self) -> int:
        """What ends in the frame itself."""
        tree = self.callees.tree
        return int(tree.own[tree.frame == tree.frame[0]].sum())

    def mark(self, tree: StackTree, found: Found | None) -> None:
        """Mark in both what a search of the whole ``tree`` has found; the subject only once."""
        fits = None if found is None else matching_frames(tree, found)
        self.callees.mark(_found_in(self.callees.tree, found, fits, 0))
        self.callers.mark(_found_in(self.callers.tree, found, fits, 1))


def _found_in(tree: StackTree, found: Found | None, fits: Bool | None, first: int) -> Found | None:
    """The nodes of ``tree`` from ``first`` on whose frames fit; sums are still the whole tree's."""
    if found is None or fits is None:
        return None
    mask = fits[tree.frame]
    mask[:first] = False
    order = np.flatnonzero(mask & (tree.total > 0))
    return replace(found, matches=replace(found.matches, mask=mask), order=order)


class Moment(NamedTuple):
    """What `SandwichPane.undo` goes back to: a subject, and the zoom of either half."""

    frame: int
    callers: Anchor | None = None
    callees: Anchor | None = None


class Ready(NamedTuple):
    """The halves at the moment they were asked for; ``goes_on``: a later state of those shown."""

    halves: Halves
    goal: Moment
    goes_on: bool = False
