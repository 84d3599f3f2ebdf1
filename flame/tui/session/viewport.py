"""Show a part of a tree, as wide as the screen: zoom and pan it, and go back to parts before."""

from __future__ import annotations

from dataclasses import field
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8
from flame.core.lazy_dataclass import dataclass
from flame.tui.session.anchors import Anchor, OpenPaths, anchor_of, opened_at, paths_of, span_of
from flame.tui.session.joined_rows import OpenChains
from flame.tui.session.row_layout import Item, RowLayout, Span
from flame.tui.toolkit.back_stack import BackStack

_NARROWEST = 16


class Zoom(NamedTuple):
    """The part of a tree that fills the screen: ``node``, or a stretch ``span`` of it."""

    node: int
    span: Span


class ViewState(NamedTuple):
    """What can be undone: the zoomed part and the open chains, by node or, elsewhere, by path."""

    zoom: Zoom | Anchor
    opened: OpenChains | OpenPaths


@dataclass
class Viewport:
    """The zoomed part of a tree in ``width`` cells, and the items that its rows show.

    A frame in a closed chain is zoomed as the whole chain. ``zooms`` counts how often a part was
    asked for.
    """

    layout: RowLayout
    width: int = 0
    zoom: Zoom = field(init=False)
    trail: BackStack[ViewState] = field(init=False, default_factory=BackStack)
    zooms: int = field(init=False, default=0)
    _items: dict[int, list[Item]] = field(init=False, default_factory=dict)
    _items_of: tuple[Zoom, int] | None = field(init=False, default=None)
    _deepest: dict[Zoom, int] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.tree = self.layout.tree
        self.zoom = self.zoom_of(0)

    # What is shown

    @property
    def top(self) -> int:
        """Number of the first row shown."""
        return self.row_of(self.zoom.node)

    def row_of(self, node: int) -> int:
        """Return the number of the row of ``node``, which is that of rows above it."""
        return int(self.layout.joined.number[node])

    def shown(self, node: int) -> int:
        """Return the first frame of the closed chain that ``node`` is in, or itself."""
        return int(self.layout.joined.first[node])

    @property
    def opened(self) -> OpenChains:
        """The open chains."""
        return self.layout.joined.opened

    @property
    def total(self) -> int:
        """The metric over the zoomed part; a frame that reaches beyond it may have more."""
        return self.zoom.span.high - self.zoom.span.low

    @property
    def rows(self) -> int:
        """Number of rows of the zoomed part."""
        if self.zoom not in self._deepest:
            self._deepest[self.zoom] = self._deepest_row()
        return self._deepest[self.zoom] - self.top + 1

    def _deepest_row(self) -> int:
        """Number of the last row with a frame in the zoomed part."""
        number = self.top
        while True:
            first, last = self.layout.row(number + 1).within(self.zoom.span)
            if first >= last:
                return number
            number += 1

    def items(self, number: int) -> list[Item]:
        """Return what row ``number`` shows."""
        if self._items_of != (self.zoom, self.width):
            self._items_of = (self.zoom, self.width)
            self._items.clear()
        if number not in self._items:
            self._items[number] = self.layout.items(number, self.zoom.span, self.width)
        return self._items[number]

    def item_of(self, node: int) -> Item | None:
        """Return the item that shows ``node``; None where it is too small to leave a mark."""
        number = self.row_of(node)
        place = self.layout.row(number).place(self.shown(node))
        fits = (item for item in self.items(number) if item.first <= place < item.last)
        return next(fits, None)

    def in_whole_run(self, node: int) -> bool:
        """Tell whether ``node`` is in a run that cannot be zoomed: it fills the row."""
        item = self.item_of(node)
        if item is None or item.frames == 1:
            return False
        return self._zoom_of_run(item, self.row_of(node)).span == self.zoom.span

    def cell_of(self, node: int) -> int:
        """Return the cell where ``node`` begins."""
        span = self.zoom.span
        offset = (int(self.tree.x[node]) - span.low) / max(span.high - span.low, 1)
        return min(max(int(offset * self.width), 0), self.width - 1)

    def holds(self, node: int) -> bool:
        """Tell whether any of ``node`` lies in the zoomed part."""
        span, own = self.zoom.span, self.layout.span(node)
        inside = self.zoom.node <= node < self.tree.end[self.zoom.node]
        return inside and own.low < span.high and own.high > span.low

    def holds_all(self, node: int) -> bool:
        """Tell whether all of ``node`` lies in the zoomed part, of which it then is a share."""
        span, own = self.zoom.span, self.layout.span(node)
        return span.low <= own.low and own.high <= span.high

    def held(self, nodes: I8) -> I8:
        """Return those of ``nodes``, which ascend, that lie in the zoomed part."""
        node, span, tree = self.zoom.node, self.zoom.span, self.tree
        inside = nodes[np.searchsorted(nodes, node) : np.searchsorted(nodes, tree.end[node])]
        left = tree.x[inside]
        held: I8 = inside[(left < span.high) & (left + tree.total[inside] > span.low)]
        return held

    def innermost(self, node: int) -> int:
        """Return the innermost frame in the zoomed part of the chain around ``node``, if closed."""
        held = self.held(self.layout.joined.members(node))
        if not len(held):
            return node
        return int(held[0 if self.tree.layout.inverted else -1])

    def widest_at_top(self) -> int:
        """Return the widest frame in the first row of the zoomed part."""
        row = self.layout.row(self.top)
        first, last = row.within(self.zoom.span)
        if first >= last:
            return self.zoom.node
        return int(row.nodes[first + int(np.argmax(row.high[first:last] - row.low[first:last]))])

    # Parts to show

    def zoom_of(self, node: int) -> Zoom:
        """Find the zoom that shows ``node``, or what has any width above it, screen-wide."""
        shown = self.shown(self.with_width(node))
        return Zoom(shown, self.layout.span(shown))

    def with_width(self, node: int) -> int:
        """``node``, or the closest frame above it that the metric gives any width."""
        while node and not self.tree.total[node]:
            node = int(self.tree.parent[node])
        return node

    def zoom_in_on(self, node: int) -> Zoom:
        """Return the zoom that shows ``node``, or the whole run that it is merged in."""
        item = self.item_of(node)
        if item is None or item.frames == 1 or self.in_whole_run(node):
            return self.zoom_of(node)
        return self._zoom_of_run(item, self.row_of(node))

    def _zoom_of_run(self, item: Item, number: int) -> Zoom:
        row = self.layout.row(number)
        first, last = int(row.nodes[item.first]), int(row.nodes[item.last - 1])
        span = Span(int(row.low[item.first]), int(row.high[item.last - 1]))
        return Zoom(self.shown(self._above_both(first, last)), span)

    def _above_both(self, first: int, last: int) -> int:
        """The closest frame above ``first`` and, in the same row and not before it, ``last``."""
        above = int(self.tree.parent[first])
        while last >= self.tree.end[above]:
            above = int(self.tree.parent[above])
        return above

    def panned(self, step: int) -> Zoom:
        """Return the zoom that lies a quarter of the width aside, as far as the tree reaches."""
        low, high = self.zoom.span
        whole = self.layout.whole
        by = step * max((high - low) // 4, 1)
        by = min(max(by, whole.low - low), whole.high - high)
        return self._zoom_of_span(Span(low + by, high + by), self.zoom.node)

    def closer(self, step: int, node: int) -> Zoom:
        """Return the zoom that shows half as much (+1) or twice as much (-1), around ``node``."""
        low, high = self.zoom.span
        own = self.layout.span(node)
        middle = (max(own.low, low) + min(own.high, high)) // 2
        width = (high - low) // 2 if step > 0 else 2 * (high - low)
        width = max(width, _NARROWEST)
        whole = self.layout.whole
        left = min(max(middle - width // 2, whole.low), max(whole.high - width, whole.low))
        target = Span(left, min(left + width, whole.high))
        return self._zoom_of_span(target, self.zoom.node)

    def _zoom_of_span(self, span: Span, node: int) -> Zoom:
        """The zoom that shows ``span``, below ``node`` or the closest frame above around it all."""
        while node and not self._around(node, span):
            node = max(int(self.tree.parent[node]), 0)
        return Zoom(self.shown(node), span)

    def _around(self, node: int, span: Span) -> bool:
        own = self.layout.span(node)
        return own.low <= span.low and span.high <= own.high

    def farther(self) -> Zoom:
        """Return the zoom that shows all of the zoomed frame, or else its parent."""
        whole = self.zoom_of(self.zoom.node)
        if self.zoom == whole:
            return self.zoom_of(max(int(self.tree.parent[self.zoom.node]), 0))
        return whole

    # For other trees

    def anchor(self, zoom: Zoom) -> Anchor:
        """``zoom`` for other trees."""
        return anchor_of(self.layout, zoom.node, zoom.span)

    def zoom_at(self, anchor: Anchor) -> Zoom:
        """Return the zoom that ``anchor`` means in this tree, as far as it has its frames."""
        node = self.tree.find(anchor.names)
        if anchor.edges is None or self.tree.depth[node] < len(anchor.names):
            return self.zoom_of(node)
        span = span_of(self.layout, anchor.edges)
        return self._zoom_of_span(span, node) if span.low < span.high else self.zoom_of(node)

    @property
    def open_paths(self) -> OpenPaths:
        """The open chains for other trees."""
        return paths_of(self.layout.joined)

    def anchored(self, state: ViewState) -> ViewState:
        """``state`` for other trees."""
        zoom, opened = state
        if isinstance(zoom, Zoom):
            zoom = self.anchor(zoom)
        if isinstance(opened, OpenChains):
            opened = paths_of(self.layout.joined.reopened(opened))
        return ViewState(zoom, opened)

    # Zooming and opening

    @property
    def state(self) -> ViewState:
        """What is shown."""
        return ViewState(self.zoom, self.opened)

    def zoom_to(self, target: Zoom) -> None:
        """Show ``target``, and remember what was shown before."""
        self.zooms += 1
        if target != self.zoom:
            self.trail.leave(self.state)
            self.zoom = target

    def open(self, opened: OpenChains) -> None:
        """Open these chains and close all others, and remember what was shown before."""
        self.trail.leave(self.state)
        self.lay_out(opened)

    def lay_out(self, opened: OpenChains | OpenPaths) -> None:
        """Show these chains open; what is zoomed stays, except for a part of a closed chain."""
        if isinstance(opened, OpenPaths):
            opened = opened_at(self.layout.joined, opened)
        if opened == self.opened:
            return
        self.layout = self.layout.reopened(opened)
        self._items.clear()
        self._deepest.clear()
        whole = self.zoom.span == self.layout.span(self.zoom.node)
        self.zoom = (
            self.zoom_of(self.zoom.node)
            if whole
            else self.zoom._replace(node=self.shown(self.zoom.node))
        )

    def undo(self, forward: bool = False) -> bool:
        """Go back to what was shown before, or forward again; False if there is nothing."""
        target = self.trail.go(1 if forward else -1, self.state)
        if target is not None:
            self.zooms += 1
            self.show(target)
        return target is not None

    def show(self, state: ViewState) -> None:
        """Show ``state``, of this tree or of another."""
        self.lay_out(state.opened)
        zoom = state.zoom
        self.zoom = self.zoom_at(zoom) if isinstance(zoom, Anchor) else zoom
