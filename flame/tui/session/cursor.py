"""Move the selected frame of a tree along the rows and between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flame.tui.session.row_layout import Item, Span
from flame.tui.session.viewport import Viewport

_FORK = 0.9


@dataclass
class Cursor:
    """The selected frame, ``node``, which keys move within the zoomed part."""

    viewport: Viewport
    node: int = 0

    def __post_init__(self) -> None:
        self._tree, self._layout = self.viewport.tree, self.viewport.layout

    @property
    def in_whole_run(self) -> bool:
        """Whether the selected frame is in a run that cannot be zoomed: it fills the row."""
        return self.viewport.in_whole_run(self.node)

    def select(self, node: int) -> None:
        """Make ``node`` the selected frame."""
        self.node = node

    def select_item(self, item: Item, depth: int) -> None:
        """Select what ``item`` shows: of a run the widest frame, unless one of it is selected."""
        row = self._layout.row(depth)
        if item.first <= row.place(self.node) < item.last:
            return
        widths = row.high[item.first : item.last] - row.low[item.first : item.last]
        self.node = int(row.nodes[item.first + int(np.argmax(widths))])

    def keep_in_sight(self) -> None:
        """Select something in the zoomed part, if what is selected is not."""
        if not self.viewport.holds(self.node):
            self.node = self.viewport.widest_at_top()

    def move_across(self, step: int) -> None:
        """Select the next (+1) or previous (-1) item on the row; in a whole run, frame."""
        depth = int(self._tree.depth[self.node])
        items, row = self.viewport.items(depth), self._layout.row(depth)
        place = row.place(self.node)
        if self.in_whole_run:
            self.node = int(row.nodes[min(max(place + step, items[0].first), items[0].last - 1)])
            return
        if step > 0:
            beyond = [item for item in items if item.first > place]
        else:
            beyond = [item for item in items if item.last <= place][::-1]
        if beyond:
            self.select_item(beyond[0], depth)

    def move_down(self) -> None:
        """Select the widest child that is in the zoomed part."""
        row = self._layout.row(int(self._tree.depth[self.node]) + 1)
        own, span = self._layout.span(self.node), self.viewport.zoom.span
        first, last = row.within(Span(max(own.low, span.low), min(own.high, span.high)))
        if first < last:
            widest = int(np.argmax(row.high[first:last] - row.low[first:last]))
            self.node = int(row.nodes[first + widest])

    def move_to_leaf(self) -> None:
        """Select the end of the widest way down."""
        above = -1
        while self.node != above:
            above = self.node
            self.move_down()

    def move_to_fork(self) -> None:
        """Select the next frame below from which on no single child has nearly all of it."""
        above = self.node
        self.move_down()
        while self.node != above:
            above = self.node
            self.move_down()
            if self._tree.total[self.node] < _FORK * self._tree.total[above]:
                self.node = above

    def move_up(self) -> None:
        """Select the parent, within the zoomed part."""
        if self.node != self.viewport.zoom.node:
            self.node = max(int(self._tree.parent[self.node]), 0)
