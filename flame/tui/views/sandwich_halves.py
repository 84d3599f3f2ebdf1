"""Hold the two halves of a sandwich as views: what is zoomed, selected and marked in each."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from flame.core.analysis.sandwich import callees_of, callers_of
from flame.core.columns import Bool
from flame.core.model.tree import StackTree, TreeLayout
from flame.tui.session.carry import matching_frames
from flame.tui.session.joined_rows import ALL_CLOSED, ALL_OPEN
from flame.tui.session.query import SearchResult
from flame.tui.session.tree_view import TreeView
from flame.tui.session.viewport import ViewState


class SandwichHalves(NamedTuple):
    """The two trees of a sandwich with what is selected and zoomed in each."""

    callers: TreeView
    callees: TreeView

    @classmethod
    def of(cls, view: TreeView, frame: int, opened: bool = False) -> SandwichHalves:
        """Return the sandwich of ``frame`` in ``view``, ready to be drawn; grows with the tree.

        ``opened``: with all chains open.
        """
        halves = cls(
            view.derive(lambda tree: _turned(callers_of(tree, frame))),
            view.derive(lambda tree: callees_of(tree, frame)),
        )
        for half in halves:
            half.viewport.lay_out(ALL_OPEN if opened else ALL_CLOSED)
            half.prepare()
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

    def mark(self, tree: StackTree, result: SearchResult | None) -> None:
        """Mark in both the ``result`` of a search of the whole ``tree``; the subject only once."""
        fits = None if result is None else matching_frames(tree, result)
        self.callees.matches.mark(_result_in(self.callees.tree, result, fits, 0))
        self.callers.matches.mark(_result_in(self.callers.tree, result, fits, 1))


def _turned(callers: StackTree) -> StackTree:
    return replace(callers, layout=TreeLayout(inverted=True))


def _result_in(
    tree: StackTree, result: SearchResult | None, fits: Bool | None, first: int
) -> SearchResult | None:
    """The nodes of ``tree`` from ``first`` on whose frames fit; sums are still the whole tree's."""
    if result is None or fits is None:
        return None
    mask = fits[tree.frame]
    mask[:first] = False
    order = np.flatnonzero(mask & (tree.total > 0))
    return replace(result, matches=replace(result.matches, mask=mask), order=order)


class SandwichState(NamedTuple):
    """What `SandwichPane.undo` goes back to: a subject, zoom and open chains of either half."""

    frame: int
    callers: ViewState | None = None
    callees: ViewState | None = None


class ReadyHalves(NamedTuple):
    """The halves at the moment they were asked for; ``goes_on``: a later state of those shown."""

    halves: SandwichHalves
    goal: SandwichState
    goes_on: bool = False
