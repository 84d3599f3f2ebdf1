"""Move the selected frame of a tree along the rows and between them."""

from __future__ import annotations

import numpy as np

from flame.core.lazy_dataclass import dataclass
from flame.tui.session.row_layout import Item, RowLayout, Span
from flame.tui.session.viewport import Viewport

_FORK = 0.9


@dataclass
class Cursor:
    """The selected frame, ``node``, which keys move within the zoomed part.

    What comes to a closed chain selects its innermost frame, unless one of it is selected.
    """

    viewport: Viewport
    node: int = 0

    def __post_init__(self) -> None:
        self._tree = self.viewport.tree

    @property
    def _layout(self) -> RowLayout:
        return self.viewport.layout

    @property
    def row(self) -> int:
        """Number of the row that the selected frame is in."""
        return self.viewport.row_of(self.node)

    @property
    def at_top(self) -> bool:
        """Whether the first row of the zoomed part is selected."""
        return self.viewport.shown(self.node) == self.viewport.zoom.node

    @property
    def in_whole_run(self) -> bool:
        """Whether the selected frame is in a run that cannot be zoomed: it fills the row."""
        return self.viewport.in_whole_run(self.node)

    def select(self, node: int) -> None:
        """Make ``node`` the selected frame."""
        self.node = node

    def come_to(self, node: int) -> None:
        """Select ``node``, or what stands for the closed chain that it is in."""
        if self.viewport.shown(self.node) != self.viewport.shown(node):
            self.node = self.viewport.innermost(node)

    def select_item(self, item: Item, number: int) -> None:
        """Select what ``item`` of row ``number`` shows, unless something of it is selected.

        Of a run that is the widest frame.
        """
        row = self._layout.row(number)
        if item.first <= row.place(self.viewport.shown(self.node)) < item.last:
            return
        widths = row.high[item.first : item.last] - row.low[item.first : item.last]
        self.come_to(int(row.nodes[item.first + int(np.argmax(widths))]))

    def keep_in_sight(self) -> None:
        """Select something in the zoomed part, if what is selected is not."""
        if not self.viewport.holds(self.node):
            self.node = self.viewport.innermost(self.viewport.widest_at_top())

    def move_across(self, step: int) -> None:
        """Select the next (+1) or previous (-1) item on the row; in a whole run, frame."""
        items, row = self.viewport.items(self.row), self._layout.row(self.row)
        place = row.place(self.viewport.shown(self.node))
        if self.in_whole_run:
            beside = min(max(place + step, items[0].first), items[0].last - 1)
            self.come_to(int(row.nodes[beside]))
            return
        if step > 0:
            beyond = [item for item in items if item.first > place]
        else:
            beyond = [item for item in items if item.last <= place][::-1]
        if beyond:
            self.select_item(beyond[0], self.row)

    def move_down(self) -> None:
        """Select the widest frame in the row below that is in the zoomed part."""
        row = self._layout.row(self.row + 1)
        own = self._layout.span(self.viewport.shown(self.node))
        span = self.viewport.zoom.span
        first, last = row.within(Span(max(own.low, span.low), min(own.high, span.high)))
        if first < last:
            widest = int(np.argmax(row.high[first:last] - row.low[first:last]))
            self.come_to(int(row.nodes[first + widest]))

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
        """Select the frame in the row above, within the zoomed part."""
        if not self.at_top:
            self.come_to(max(int(self._tree.parent[self.viewport.shown(self.node)]), 0))

    def move_to_top(self) -> None:
        """Select the first row of the zoomed part."""
        self.come_to(self.viewport.zoom.node)
