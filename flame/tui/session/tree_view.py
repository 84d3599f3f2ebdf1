"""What is shown of a tree and what is selected in it, with the operations behind the keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8
from flame.core.model.tree import StackTree
from flame.tui.session.anchors import Anchor, anchor_of, span_of
from flame.tui.session.query import Found, Query, find
from flame.tui.session.row_layout import Item, Layout, Span
from flame.tui.toolkit.back_stack import Trail

NO_NAME = "[empty]"

_NARROWEST = 16
_PREPARED = 64
_FORK = 0.9


class Zoom(NamedTuple):
    """The part of a tree that fills the screen: ``node``, or a stretch ``span`` of it."""

    node: int
    span: Span


class Everywhere(NamedTuple):
    """A frame over all its places in the tree: their number, total (recursion once), activities."""

    places: int
    total: int
    activities: int


@dataclass
class View:
    """A tree, the zoomed part, the selected frame, and the search; ``width`` is the icicle's.

    ``whole`` is what shares "of all" are of; a tree that is a part of another has that one's.
    ``zooms`` counts how often one was asked for. ``origin`` is the ``number`` of the first view
    of which this one shows a later state.
    """

    tree: StackTree
    width: int = 0
    zoom: Zoom = field(init=False)
    cursor: int = field(init=False, default=0)
    found: Found | None = field(init=False, default=None)
    trail: Trail[Zoom | Anchor] = field(init=False, default_factory=Trail)
    _items: dict[int, list[Item]] = field(init=False, default_factory=dict)
    _items_of: tuple[Zoom, int] | None = field(init=False, default=None)
    _deepest: dict[Zoom, int] = field(init=False, default_factory=dict)
    _matched: dict[int, I8] = field(init=False, default_factory=dict)
    _here: tuple[Zoom, I8] | None = field(init=False, default=None)
    _searches: int = field(init=False, default=0)
    number: int = field(init=False, default_factory=count().__next__)
    zooms: int = field(init=False, default=0)
    origin: int = field(init=False)
    whole: int = field(init=False)

    def __post_init__(self) -> None:
        self.layout = Layout(self.tree)
        self.whole = int(self.tree.total[0])
        self.origin = self.number
        self.zoom = self.zoom_of(0)

    # What is shown

    @property
    def top(self) -> int:
        """Depth of the first row shown."""
        return int(self.tree.depth[self.zoom.node])

    def name(self, node: int) -> str:
        """Display name of ``node``, never empty."""
        return self.tree.name(node) or NO_NAME

    @property
    def zoomed_total(self) -> int:
        """The metric over the zoomed part; a frame that reaches beyond it may have more."""
        return self.zoom.span.high - self.zoom.span.low

    @property
    def picture(self) -> tuple[int, Zoom, int, int]:
        """Equal as long as the frames on screen, the selected one aside, look the same."""
        return (self.number, self.zoom, self.width, self._searches)

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
        """What the row of ``depth`` shows."""
        if self._items_of != (self.zoom, self.width):
            self._items_of = (self.zoom, self.width)
            self._items.clear()
        if depth not in self._items:
            self._items[depth] = self.layout.items(depth, self.zoom.span, self.width)
        return self._items[depth]

    def item_of(self, node: int) -> Item | None:
        """The item that shows ``node``; None where it is too small to leave a mark."""
        depth = int(self.tree.depth[node])
        place = self.layout.row(depth).place(node)
        fits = (item for item in self.items(depth) if item.first <= place < item.last)
        return next(fits, None)

    @property
    def in_whole_run(self) -> bool:
        """Whether the selected frame is in a run that cannot be zoomed: it fills the row."""
        item = self.item_of(self.cursor)
        if item is None or item.frames == 1:
            return False
        return self._zoom_of_run(item, int(self.tree.depth[self.cursor])).span == self.zoom.span

    def cell_of(self, node: int) -> int:
        """The cell where ``node`` begins."""
        span = self.zoom.span
        offset = (int(self.tree.x[node]) - span.low) / max(span.high - span.low, 1)
        return min(max(int(offset * self.width), 0), self.width - 1)

    def holds(self, node: int) -> bool:
        """Whether any of ``node`` lies in the zoomed part."""
        span, own = self.zoom.span, self.layout.span(node)
        inside = self.zoom.node <= node < self.tree.end[self.zoom.node]
        return inside and own.low < span.high and own.high > span.low

    def inside(self, node: int) -> bool:
        """Whether all of ``node`` lies in the zoomed part, of which it then is a share."""
        span, own = self.zoom.span, self.layout.span(node)
        return span.low <= own.low and own.high <= span.high

    @cached_property
    def _by_frame(self) -> tuple[I8, I8]:
        order = np.argsort(self.tree.frame, kind="stable")
        return order, np.searchsorted(self.tree.frame[order], np.arange(len(self.tree.text) + 1))

    def prepare(self) -> None:
        """Work out what grows with the tree, so that no key press has to."""
        for depth in range(min(len(self.tree.rows), _PREPARED)):
            self.layout.row(depth)
        self.everywhere(0)

    def places(self, frame: int) -> I8:
        """Nodes of ``frame``, in preorder."""
        order, bounds = self._by_frame
        return order[bounds[frame] : bounds[frame + 1]]

    def everywhere(self, frame: int) -> Everywhere:
        """Sums over all places of ``frame``."""
        nodes = self.places(frame)
        outer = self.tree.outermost_nodes(nodes)
        total, count = self.tree.total[outer].sum(), self.tree.count[outer].sum()
        return Everywhere(len(nodes), int(total), int(count))

    def heaviest_children(self, node: int, most: int) -> list[int]:
        """The first ``most`` children of ``node`` that have any width, widest first."""
        row = self.layout.row(int(self.tree.depth[node]) + 1)
        first, last = np.searchsorted(row.nodes, [node + 1, int(self.tree.end[node])])
        children = row.nodes[first:last]
        order = np.argsort(-self.tree.total[children], kind="stable")[:most]
        found: list[int] = children[order].tolist()
        return found

    # Moving

    def select(self, node: int) -> None:
        """Make ``node`` the selected frame."""
        self.cursor = node

    def select_item(self, item: Item, depth: int) -> None:
        """Select what ``item`` shows: of a run the widest frame, unless one of it is selected."""
        row = self.layout.row(depth)
        if item.first <= row.place(self.cursor) < item.last:
            return
        widths = row.high[item.first : item.last] - row.low[item.first : item.last]
        self.cursor = int(row.nodes[item.first + int(np.argmax(widths))])

    def move_across(self, step: int) -> None:
        """Select the next (+1) or previous (-1) item on the row; in a whole run, frame."""
        depth = int(self.tree.depth[self.cursor])
        items, row = self.items(depth), self.layout.row(depth)
        place = row.place(self.cursor)
        if self.in_whole_run:
            self.cursor = int(row.nodes[min(max(place + step, items[0].first), items[0].last - 1)])
            return
        if step > 0:
            beyond = [item for item in items if item.first > place]
        else:
            beyond = [item for item in items if item.last <= place][::-1]
        if beyond:
            self.select_item(beyond[0], depth)

    def move_down(self) -> None:
        """Select the widest child that is in the zoomed part."""
        row = self.layout.row(int(self.tree.depth[self.cursor]) + 1)
        own, span = self.layout.span(self.cursor), self.zoom.span
        first, last = row.within(Span(max(own.low, span.low), min(own.high, span.high)))
        if first < last:
            widest = int(np.argmax(row.high[first:last] - row.low[first:last]))
            self.cursor = int(row.nodes[first + widest])

    def move_to_leaf(self) -> None:
        """Select the end of the widest way down."""
        above = -1
        while self.cursor != above:
            above = self.cursor
            self.move_down()

    def move_to_fork(self) -> None:
        """Select the next frame below from which on no single child has nearly all of it."""
        above = self.cursor
        self.move_down()
        while self.cursor != above:
            above = self.cursor
            self.move_down()
            if self.tree.total[self.cursor] < _FORK * self.tree.total[above]:
                self.cursor = above

    def move_up(self) -> None:
        """Select the parent, within the zoomed part."""
        if self.cursor != self.zoom.node:
            self.cursor = max(int(self.tree.parent[self.cursor]), 0)

    # Zooming

    def zoom_of(self, node: int) -> Zoom:
        """The zoom that shows ``node``, or what has any width above it, as wide as the screen."""
        shown = self.with_width(node)
        return Zoom(shown, self.layout.span(shown))

    def with_width(self, node: int) -> int:
        """``node``, or the closest frame above it that the metric gives any width."""
        while node and not self.tree.total[node]:
            node = int(self.tree.parent[node])
        return node

    def zoom_in(self) -> None:
        """Zoom to the selected frame, or to the whole run that it is merged in."""
        item = self.item_of(self.cursor)
        if item is None or item.frames == 1 or self.in_whole_run:
            self.zoom_to(self.zoom_of(self.cursor))
        else:
            self.zoom_to(self._zoom_of_run(item, int(self.tree.depth[self.cursor])))

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

    def zoom_to(self, target: Zoom) -> None:
        """Zoom, and remember from where."""
        self.zooms += 1
        if target != self.zoom:
            self.trail.leave(self.zoom)
            self._show(target)

    def pan(self, step: int) -> bool:
        """Move the zoomed part by a quarter of its width; False at the edge of the tree."""
        low, high = self.zoom.span
        whole = self.layout.whole
        by = step * max((high - low) // 4, 1)
        by = min(max(by, whole.low - low), whole.high - high)
        self.zoom_to(self._zoom_of_span(Span(low + by, high + by), self.zoom.node))
        return by != 0

    def closer(self, step: int) -> None:
        """Show half as much (+1) or twice as much (-1), around the selected frame."""
        low, high = self.zoom.span
        own = self.layout.span(self.cursor)
        middle = (max(own.low, low) + min(own.high, high)) // 2
        width = (high - low) // 2 if step > 0 else 2 * (high - low)
        width = max(width, _NARROWEST)
        whole = self.layout.whole
        left = min(max(middle - width // 2, whole.low), max(whole.high - width, whole.low))
        target = Span(left, min(left + width, whole.high))
        self.zoom_to(self._zoom_of_span(target, self.zoom.node))

    def _zoom_of_span(self, span: Span, node: int) -> Zoom:
        """The zoom that shows ``span``, below ``node`` or the closest frame above around it all."""
        while node and not self._around(node, span):
            node = max(int(self.tree.parent[node]), 0)
        return Zoom(node, span)

    def _around(self, node: int, span: Span) -> bool:
        own = self.layout.span(node)
        return own.low <= span.low and span.high <= own.high

    def zoom_out(self) -> None:
        """Zoom one frame out, to the parent."""
        node = self.zoom.node
        whole = self.zoom_of(node)
        if self.zoom == whole:
            whole = self.zoom_of(max(int(self.tree.parent[node]), 0))
        self.zoom_to(whole)

    def reset(self) -> None:
        """Zoom out to the root."""
        self.zoom_to(self.zoom_of(0))

    def undo(self, forward: bool = False) -> bool:
        """Go back to the zoom before, or forward again; False if there is none."""
        place = self.trail.go(1 if forward else -1, self.zoom)
        if place is not None:
            self.zooms += 1
            self._show(self.zoom_at(place) if isinstance(place, Anchor) else place)
        return place is not None

    def begin_at(self, target: Zoom, trail: Trail[Zoom | Anchor] | None = None) -> None:
        """Show ``target``, with the way back and forth of ``trail``."""
        self.trail = trail or Trail()
        self._show(target)

    def anchor(self, zoom: Zoom) -> Anchor:
        """``zoom`` for other trees."""
        return anchor_of(self.layout, zoom.node, zoom.span)

    def zoom_at(self, anchor: Anchor) -> Zoom:
        """The zoom that ``anchor`` means in this tree, as far as it has its frames."""
        node = self.tree.find(anchor.names)
        if anchor.edges is None or self.tree.depth[node] < len(anchor.names):
            return self.zoom_of(node)
        span = span_of(self.layout, anchor.edges)
        return self._zoom_of_span(span, node) if span.low < span.high else self.zoom_of(node)

    def _show(self, target: Zoom) -> None:
        self.zoom = target
        self.keep_cursor()

    def keep_cursor(self) -> None:
        """Select something in the zoomed part, if what is selected is not."""
        if not self.holds(self.cursor):
            self.cursor = self._widest_at_top()

    def _widest_at_top(self) -> int:
        """The widest frame in the first row of the zoomed part."""
        row = self.layout.row(self.top)
        first, last = row.within(self.zoom.span)
        if first >= last:
            return self.zoom.node
        return int(row.nodes[first + int(np.argmax(row.high[first:last] - row.low[first:last]))])

    # Searching

    def mark(self, found: Found | None) -> None:
        """Mark what a search of this tree has found, or nothing."""
        self.found = found
        self._matched = {}
        self._here = None
        self._searches += 1

    def search(self, query: Query | None) -> None:
        """Search here and now; UsageError for a wrong expression."""
        self.mark(find(self.tree, query) if query and query.text else None)

    def matches_in(self, item: Item, depth: int) -> int:
        """How many of the frames that ``item`` shows match the search."""
        if self.found is None:
            return 0
        if depth not in self._matched:
            marked = self.found.matches.mask[self.layout.row(depth).nodes]
            self._matched[depth] = np.concatenate([[0], np.cumsum(marked)])
        return int(self._matched[depth][item.last] - self._matched[depth][item.first])

    def shown_matches(self) -> tuple[int, int]:
        """(place of the selected frame among the matches in the zoomed part, their number).

        The place counts from 1; 0 if the selected frame is no match.
        """
        order = self._matches_here()
        place = int(np.searchsorted(order, self.cursor))
        hit = place < len(order) and order[place] == self.cursor
        return (place + 1 if hit else 0), len(order)

    def next_match(self, step: int) -> bool:
        """Select the next (+1) or previous (-1) match in the zoomed part; False without any."""
        order = self._matches_here()
        if not len(order):
            return False
        after = int(np.searchsorted(order, self.cursor, "right" if step > 0 else "left"))
        self.cursor = int(order[(after if step > 0 else after - 1) % len(order)])
        return True

    def _matches_here(self) -> I8:
        """The matches that lie in the zoomed part, in drawing order."""
        if self.found is None:
            return np.zeros(0, np.int64)
        if self._here is None or self._here[0] != self.zoom:
            self._here = (self.zoom, self.zoomed(self.found.order))
        return self._here[1]

    def zoomed(self, nodes: I8) -> I8:
        """Those of ``nodes``, which ascend, that lie in the zoomed part."""
        node, span, tree = self.zoom.node, self.zoom.span, self.tree
        inside = nodes[np.searchsorted(nodes, node) : np.searchsorted(nodes, tree.end[node])]
        left = tree.x[inside]
        found: I8 = inside[(left < span.high) & (left + tree.total[inside] > span.low)]
        return found
