"""Count the matches of a search in the zoomed part of a tree, and visit them in turn."""

from __future__ import annotations

from dataclasses import field

import numpy as np

from flame.core.columns import I8, Bool
from flame.core.lazy_dataclass import dataclass
from flame.tui.session.query import SearchResult
from flame.tui.session.row_layout import Item, RowLayout
from flame.tui.session.viewport import Viewport, Zoom


@dataclass
class ShownMatches:
    """What a search has found in the tree of ``viewport``: ``result``, None without a search.

    ``searches`` counts how often it was set.
    """

    viewport: Viewport
    result: SearchResult | None = field(init=False, default=None)
    searches: int = field(init=False, default=0)
    _marked: tuple[RowLayout, Bool] | None = field(init=False, default=None)
    _before: dict[int, I8] = field(init=False, default_factory=dict)
    _held: tuple[Zoom, I8] | None = field(init=False, default=None)

    def mark(self, result: SearchResult | None) -> None:
        """Mark what a search of this tree has found, or nothing."""
        self.result = result
        self._marked = self._held = None
        self.searches += 1

    def in_item(self, item: Item, number: int) -> int:
        """Tell how many of what ``item`` of row ``number`` shows match the search.

        A closed chain counts once.
        """
        if self.result is None:
            return 0
        layout = self.viewport.layout
        if self._marked is None or self._marked[0] is not layout:
            self._marked = layout, layout.joined.marked(self.result.matches.mask)
            self._before = {}
        if number not in self._before:
            marked = self._marked[1][layout.row(number).nodes]
            self._before[number] = np.concatenate([[0], np.cumsum(marked)])
        return int(self._before[number][item.last] - self._before[number][item.first])

    def place_of(self, node: int) -> tuple[int, int]:
        """(place of ``node`` among the matches in the zoomed part, their number).

        The place counts from 1; 0 if ``node`` is no match.
        """
        order = self._in_sight()
        place = int(np.searchsorted(order, node))
        hit = place < len(order) and order[place] == node
        return (place + 1 if hit else 0), len(order)

    def next_to(self, node: int, step: int) -> int | None:
        """Return the next (+1) or previous (-1) match in the zoomed part; None without any."""
        order = self._in_sight()
        if not len(order):
            return None
        after = int(np.searchsorted(order, node, "right" if step > 0 else "left"))
        return int(order[(after if step > 0 else after - 1) % len(order)])

    def _in_sight(self) -> I8:
        """The matches that lie in the zoomed part, in drawing order."""
        if self.result is None:
            return np.zeros(0, np.int64)
        if self._held is None or self._held[0] != self.viewport.zoom:
            self._held = (self.viewport.zoom, self.viewport.held(self.result.order))
        return self._held[1]
