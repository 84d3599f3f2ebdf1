"""Show a part of a tree, as wide as the screen: zoom and pan it, and go back to parts before."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8
from flame.tui.session.anchors import Anchor, anchor_of, span_of
from flame.tui.session.row_layout import Item, Span, TreeLayout
from flame.tui.toolkit.back_stack import BackStack

_NARROWEST = 16


class Zoom(NamedTuple):
    """The part of a tree that fills the screen: ``node``, or a stretch ``span`` of it."""

    node: int
    span: Span


@dataclass
class Viewport:
    """The zoomed part of a tree in ``width`` cells, and the items that its rows show.

    ``zooms`` counts how often a part was asked for.
    """

    layout: TreeLayout
    width: int = 0
    zoom: Zoom = field(init=False)
    trail: BackStack[Zoom | Anchor] = field(init=False, default_factory=BackStack)
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
        """Depth of the first row shown."""
        return int(self.tree.depth[self.zoom.node])

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
        """Depth of the last row with a frame in the zoomed part."""
        depth = self.top
        while True:
            first, last = self.layout.row(depth + 1).within(self.zoom.span)
            if first >= last:
                return depth
            depth += 1

    def items(self, depth: int) -> list[Item]:
        """Return what the row of ``depth`` shows."""
        if self._items_of != (self.zoom, self.width):
            self._items_of = (self.zoom, self.width)
            self._items.clear()
        if depth not in self._items:
            self._items[depth] = self.layout.items(depth, self.zoom.span, self.width)
        return self._items[depth]

    def item_of(self, node: int) -> Item | None:
        """Return the item that shows ``node``; None where it is too small to leave a mark."""
        depth = int(self.tree.depth[node])
        place = self.layout.row(depth).place(node)
        fits = (item for item in self.items(depth) if item.first <= place < item.last)
        return next(fits, None)

    def in_whole_run(self, node: int) -> bool:
        """Tell whether ``node`` is in a run that cannot be zoomed: it fills the row."""
        item = self.item_of(node)
        if item is None or item.frames == 1:
            return False
        return self._zoom_of_run(item, int(self.tree.depth[node])).span == self.zoom.span

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
        shown = self.with_width(node)
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
        return self._zoom_of_run(item, int(self.tree.depth[node]))

    def _zoom_of_run(self, item: Item, depth: int) -> Zoom:
        row = self.layout.row(depth)
        first, last = int(row.nodes[item.first]), int(row.nodes[item.last - 1])
        span = Span(int(row.low[item.first]), int(row.high[item.last - 1]))
        above = self._common(first, last)
        return Zoom(above, span)

    def _common(self, first: int, last: int) -> int:
        """The closest frame above both nodes of one depth."""
        parent = self.tree.parent
        while True:
            first, last = int(parent[first]), int(parent[last])
            if first == last:
                return first

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
        return Zoom(node, span)

    def _around(self, node: int, span: Span) -> bool:
        own = self.layout.span(node)
        return own.low <= span.low and span.high <= own.high

    def farther(self) -> Zoom:
        """Return the zoom that shows all of the zoomed frame, or else its parent."""
        whole = self.zoom_of(self.zoom.node)
        if self.zoom == whole:
            return self.zoom_of(max(int(self.tree.parent[self.zoom.node]), 0))
        return whole

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

    # Zooming

    def zoom_to(self, target: Zoom) -> None:
        """Show ``target``, and remember what was shown before."""
        self.zooms += 1
        if target != self.zoom:
            self.trail.leave(self.zoom)
            self.zoom = target

    def undo(self, forward: bool = False) -> bool:
        """Go back to the zoom before, or forward again; False if there is none."""
        target = self.trail.go(1 if forward else -1, self.zoom)
        if target is not None:
            self.zooms += 1
            self.zoom = self.zoom_at(target) if isinstance(target, Anchor) else target
        return target is not None
