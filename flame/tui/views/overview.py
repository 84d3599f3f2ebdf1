"""Draw in one line which part of the whole tree is zoomed, and where matches lie."""

from __future__ import annotations

from itertools import groupby

import numpy as np
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.message import Message
from textual.strip import Strip

from flame.core.columns import I8
from flame.tui.session.query import SearchResult
from flame.tui.session.row_layout import Span
from flame.tui.session.tree_view import TreeView
from flame.tui.session.viewport import Zoom
from flame.tui.toolkit.lines import Rows

_BARE, _ZOOMED, _MATCH = 0, 1, 2
_GLYPHS = "▁▄█"


class Overview(Rows):
    """Draw the whole width of a tree; press or drag to move the zoomed part there."""

    DEFAULT_CSS = "Overview { height: 1; }"

    class Moved(Message):
        """The zoomed part is another one now."""

    def __init__(self, view: TreeView, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._view = view
        self._matching: tuple[SearchResult, int, I8] | None = None
        self._grip: int | None = None
        self._slid = False

    def show(self, view: TreeView) -> None:
        """Draw ``view`` from now on."""
        self._view = view
        self.redraw()

    # Drawing

    def strip(self, row: int) -> Strip:
        width = self.inner.width
        styles = self._styles()
        runs = [(state, len(list(run))) for state, run in groupby(self._states(width).tolist())]
        return self.padded([Segment(_GLYPHS[s] * n, styles[s]) for s, n in runs], width)

    def _styles(self) -> tuple[Style, Style, Style]:
        base, palette, _ = self.look
        return base + palette.quiet, base + Style(bold=True), base + palette.match_ink

    def _states(self, width: int) -> I8:
        """What each cell shows, of `_BARE`, `_ZOOMED` and `_MATCH`."""
        view = self._view
        states = np.full(width, _BARE)
        if view.viewport.zoom.span != view.layout.whole:
            left, right = self._cells(np.array(view.viewport.zoom.span), width)
            states[left:right] = _ZOOMED
        if view.matches.result is not None:
            states[self._matches(view.matches.result, width) > 0] = _MATCH
        return states

    def _cells(self, edges: I8, width: int) -> tuple[I8, I8]:
        """First cell of the first, and one past the last cell of the last of ``edges``."""
        low, high = self._view.layout.whole
        scale = width / max(high - low, 1)
        left = np.floor((edges[0] - low) * scale).astype(np.int64)
        right = np.ceil((edges[1] - low) * scale).astype(np.int64)
        left = np.minimum(left, width - 1)
        return left, np.clip(right, left + 1, width)

    def _matches(self, result: SearchResult, width: int) -> I8:
        """How many matches lie in each cell; worked out once per search and width."""
        known = self._matching
        if known is None or known[0] is not result or known[1] != width:
            tree = self._view.tree
            low = tree.x[result.order]
            left, right = self._cells(np.array([low, low + tree.total[result.order]]), width)
            begun = np.bincount(left, minlength=width + 1) - np.bincount(right, minlength=width + 1)
            self._matching = known = (result, width, np.cumsum(begun)[:width])
        return known[2]

    # Mouse

    def _at(self, event: events.MouseEvent) -> int:
        """The place in the tree, in metric units, that ``event`` points to."""
        low, high = self._view.layout.whole
        return low + round((event.x + 0.5) / max(self.inner.width, 1) * (high - low))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        at, (low, high) = self._at(event), self._view.viewport.zoom.span
        self._slid = False
        self.capture_mouse()
        if not low <= at < high:
            self._slide(at - (high - low) // 2)
        self._grip = at - self._view.viewport.zoom.span.low

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._grip is not None:
            self._slide(self._at(event) - self._grip)

    def on_mouse_up(self) -> None:
        self._grip = None
        self.release_mouse()

    def _slide(self, low: int) -> None:
        """Zoom to the stretch from ``low`` on, as wide as now; a whole drag is one zoom to undo."""
        view, whole = self._view, self._view.layout.whole
        width = view.viewport.total
        low = min(max(low, whole.low), whole.high - width)
        if low == view.viewport.zoom.span.low:
            return
        if self._slid:
            view.undo()
        target = Zoom(0, Span(low, low + width))
        self._slid = target != view.viewport.zoom
        view.zoom_to(target)
        self.post_message(self.Moved())
