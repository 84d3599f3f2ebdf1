"""Hold what is shown of a tree and what is selected and searched in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from functools import cached_property
from itertools import count
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, order_by
from flame.core.compare.changes import Changes
from flame.core.compare.colouring import Colouring
from flame.core.model.tree import StackTree
from flame.tui.session.cursor import Cursor
from flame.tui.session.joined_rows import ALL_CLOSED, ALL_OPEN
from flame.tui.session.matches import ShownMatches
from flame.tui.session.node_colours import NodeColours
from flame.tui.session.query import Query, SearchResult, find
from flame.tui.session.row_layout import RowLayout
from flame.tui.session.viewport import Viewport, ViewState, Zoom
from flame.tui.toolkit.back_stack import BackStack

NO_NAME = "[empty]"

_PREPARED = 64


class Everywhere(NamedTuple):
    """A frame over all its places in the tree: their number, total (recursion once), activities."""

    places: int
    total: int
    activities: int


@dataclass
class TreeView:
    """A tree with its viewport, ``width`` cells wide at first, cursor and matches.

    ``whole`` is what shares "of all" are of; a tree that is a part of another has that one's.
    It is ``part_of`` the view that it was derived from.
    ``origin`` is the ``number`` of the first view of which this one shows a later state.
    ``colouring`` is that of a tree whose frames are not drawn by what they are: of one that two
    sides have in common by how it has changed, of many ranks by how far these are apart.
    """

    tree: StackTree
    width: InitVar[int] = 0
    colouring: NodeColours | None = None
    viewport: Viewport = field(init=False)
    cursor: Cursor = field(init=False)
    matches: ShownMatches = field(init=False)
    number: int = field(init=False, default_factory=count().__next__)
    origin: int = field(init=False)
    whole: int = field(init=False)
    part_of: TreeView | None = field(init=False, default=None, repr=False)
    _found: tuple[SearchResult, Changes] | None = field(init=False, default=None, repr=False)

    def __post_init__(self, width: int) -> None:
        self.viewport = Viewport(RowLayout.of(self.tree), width)
        self.cursor = Cursor(self.viewport)
        self.matches = ShownMatches(self.viewport)
        self.whole = int(self.tree.total[0])
        self.origin = self.number

    @property
    def layout(self) -> RowLayout:
        """Where the frames lie, with the chains that are open now."""
        return self.viewport.layout

    @property
    def picture(self) -> tuple[object, ...]:
        """Equal as long as the frames on screen, the selected one aside, look the same."""
        seen = (self.number, self.viewport.state, self.viewport.width, self.matches.searches)
        return (*seen, self.colouring and self.colouring.found)

    # The tree

    def derive(self, make: Callable[[StackTree], StackTree]) -> TreeView:
        """View what ``make`` makes of the tree, of which it is a part; see `NodeColours.derive`."""
        colouring = self.colouring and self.colouring.derive(make)
        view = TreeView(colouring.tree if colouring else make(self.tree), 0, colouring)
        view.whole, view.part_of = self.whole, self
        return view

    def prepare(self) -> None:
        """Work out what grows with the tree, so that no key press has to."""
        for number in range(min(len(self.layout.joined.rows), _PREPARED)):
            self.layout.row(number)
        self.everywhere(0)
        if self.colouring is not None:
            self.colouring.strength.any()

    def name(self, node: int) -> str:
        """Display name of ``node``, never empty."""
        return self.tree.name(node) or NO_NAME

    def stack(self, node: int) -> tuple[str, ...]:
        """Display names from the root, itself included, down to ``node``."""
        return tuple(map(self.name, self.tree.path(node)))

    @cached_property
    def _by_frame(self) -> tuple[I8, I8]:
        order = order_by([self.tree.frame])
        places = np.bincount(self.tree.frame, minlength=len(self.tree.text))
        return order, np.concatenate([[0], np.cumsum(places)])

    def places(self, frame: int) -> I8:
        """Nodes of ``frame``, in preorder."""
        order, bounds = self._by_frame
        return order[bounds[frame] : bounds[frame + 1]] if frame >= 0 else order[:0]

    def everywhere(self, frame: int) -> Everywhere:
        """Sums over all places of ``frame``."""
        nodes = self.places(frame)
        outer = self.tree.outermost_nodes(nodes)
        total, count = self.tree.total[outer].sum(), self.tree.count[outer].sum()
        return Everywhere(len(nodes), int(total), int(count))

    def matching_changes(self) -> Changes | None:
        """Sum up how what the search finds has changed, nested matches counted once.

        Of a part that is the sum over the whole tree.
        """
        if self.part_of is not None:
            return self.part_of.matching_changes()
        result = self.matches.result
        if not isinstance(self.colouring, Colouring) or result is None:
            return None
        if self._found is None or self._found[0] is not result:
            sides = self.colouring.sides
            nodes = np.flatnonzero(sides.tree.outermost(result.matches.mask))
            self._found = (result, sides.sums(nodes, np.zeros(len(nodes), np.int64), 1))
        return self._found[1]

    def heaviest_children(self, node: int, most: int) -> list[int]:
        """Return the first ``most`` children of ``node`` that have any width, widest first."""
        below = int(self.tree.depth[node]) + 1
        row = self.tree.rows[below] if below < len(self.tree.rows) else np.zeros(0, np.int64)
        first, last = np.searchsorted(row, [node + 1, int(self.tree.end[node])])
        children = row[first:last]
        children = children[self.tree.total[children] > 0]
        total = self.tree.total[children]
        if len(children) > most:  # to sort a million siblings takes as long as to draw the screen
            kept = total >= np.partition(total, len(total) - most)[len(total) - most]
            children, total = children[kept], total[kept]
        order = np.argsort(-total, kind="stable")[:most]
        heaviest: list[int] = children[order].tolist()
        return heaviest

    # Zooming, after which something in the zoomed part is selected

    def zoom_to(self, target: Zoom) -> None:
        """Zoom, and remember from where."""
        self.viewport.zoom_to(target)
        self.cursor.keep_in_sight()

    def zoom_in(self) -> None:
        """Zoom to the selected frame, or to the whole run that it is merged in."""
        self.zoom_to(self.viewport.zoom_in_on(self.cursor.node))

    def zoom_out(self) -> None:
        """Zoom one frame out, to the parent."""
        self.zoom_to(self.viewport.farther())

    def closer(self, step: int) -> None:
        """Show half as much (+1) or twice as much (-1), around the selected frame."""
        self.zoom_to(self.viewport.closer(step, self.cursor.node))

    def pan(self, step: int) -> bool:
        """Move the zoomed part by a quarter of its width; False at the edge of the tree."""
        before = self.viewport.zoom.span
        self.zoom_to(self.viewport.panned(step))
        return self.viewport.zoom.span != before

    def reset(self) -> None:
        """Zoom out to the root."""
        self.zoom_to(self.viewport.zoom_of(0))

    def undo(self, forward: bool = False) -> bool:
        """Go back to the zoom before, or forward again; False if there is none."""
        undone = self.viewport.undo(forward)
        if undone:
            self.cursor.keep_in_sight()
        return undone

    def begin_at(self, target: Zoom, trail: BackStack[ViewState] | None = None) -> None:
        """Show ``target``, with the way back and forth of ``trail``."""
        self.viewport.trail = trail or BackStack()
        self.viewport.zoom = target
        self.cursor.keep_in_sight()

    # Chains

    @property
    def chain(self) -> I8:
        """The frames of the chain that the selected frame is in; none where it is in no chain."""
        return self.layout.joined.chains.around(self.cursor.node)

    def switch_chain(self) -> None:
        """Open or close the chain of the selected frame."""
        self.viewport.open(self.viewport.opened.switched(int(self.chain[0])))
        self.cursor.keep_in_sight()

    def switch_all(self, everything: bool) -> None:
        """Open all chains, or close them."""
        self.viewport.open(ALL_OPEN if everything else ALL_CLOSED)
        self.cursor.keep_in_sight()

    def show(self, state: ViewState) -> None:
        """Show ``state``, of this tree or of another, and remember what was shown before."""
        before = self.viewport.state
        self.viewport.show(state)
        if self.viewport.state != before:
            self.viewport.trail.leave(before)
        self.cursor.keep_in_sight()

    # Searching

    def search(self, query: Query | None) -> None:
        """Search here and now; UsageError for a wrong expression."""
        self.matches.mark(find(self.tree, query) if query and query.text else None)

    def next_match(self, step: int) -> bool:
        """Select the next (+1) or previous (-1) match in the zoomed part; False without any."""
        match = self.matches.next_to(self.cursor.node, step)
        if match is not None:
            self.cursor.select(match)
        return match is not None
