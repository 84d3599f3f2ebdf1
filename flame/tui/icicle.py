"""The icicle: the tree drawn root on top, one row per level, line by line."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.message import Message
from textual.strip import Strip

from flame.core.units import format_count, format_percent, format_value
from flame.tui.layout import Item
from flame.tui.lines import Rows
from flame.tui.palette import Palette
from flame.tui.text import cut, fill, width_of
from flame.tui.view import View

EDGE = "▏"
"""Drawn at the left of every frame, so that neighbours of one colour stay apart."""

CAPTURED = "↻"
"""Before the name of a range that was open when a CUDA graph was captured."""

_QUIET = "░"
_LEAST_LABEL = 3


class Icicle(Rows):
    """Draws a `View`; a click selects, a double click zooms."""

    class Chosen(Message):
        """The user clicked a frame."""

        def __init__(self, node: int, zoom: bool) -> None:
            super().__init__()
            self.node = node
            self.zoom = zoom

    def __init__(self, view: View, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._view = view
        self._drawn = view.picture
        self._strips: dict[tuple[int, int], Strip] = {}

    def show(self, view: View) -> None:
        """Draw ``view`` from now on, as far as the screen differs from it."""
        self._view = view
        view.width = self.inner.width
        self.reach(view.rows)
        self._reveal(view)
        self.redraw()

    def on_resize(self) -> None:
        if self.inner.width:
            self.show(self._view)

    def _reveal(self, view: View) -> None:
        """Scroll the selected frame into sight, with a row around it where there is one."""
        row, height, top = self._row_of(view.cursor), self.size.height, self.scroll_offset.y
        margin = 1 if height > 2 else 0
        if row - margin < top:
            self.scroll_to(y=max(row - margin, 0), animate=False)
        elif row + margin >= top + height:
            self.scroll_to(y=row + margin - height + 1, animate=False)

    def _row_of(self, node: int) -> int:
        return int(self._view.tree.depth[node]) - self._view.top

    # Drawing

    def strip(self, row: int) -> Strip:
        view = self._view
        if self._drawn != view.picture:
            self._drawn = view.picture
            self._strips.clear()
        depth = view.top + row
        cursor = view.cursor if view.tree.depth[view.cursor] == depth else -1
        if (depth, cursor) not in self._strips:
            self._strips[depth, cursor] = self._draw(depth, cursor)
        return self._strips[depth, cursor]

    def forget(self) -> None:
        self._strips.clear()
        super().forget()

    def _draw(self, depth: int, cursor: int) -> Strip:
        view, (blank, palette, _) = self._view, self.look
        marked = cursor >= 0 and view.in_whole_run
        selected = view.item_of(cursor) if cursor >= 0 and not marked else None
        segments: list[Segment] = []
        at = 0
        for item in view.items(depth):
            if item.left > at:
                segments.append(Segment(" " * (item.left - at), blank))
            segments.append(self._segment(item, depth, palette, item is selected))
            at = item.right
        strip = self.padded(segments, at)
        return strip if selected or cursor < 0 else self._mark(strip, view.cell_of(cursor))

    def _mark(self, strip: Strip, cell: int) -> Strip:
        """Show the selected frame, too narrow to leave a mark of its own, as one cell."""
        mark = Strip([Segment(EDGE, self.look.palette.cursor)], 1)
        return Strip.join([strip.crop(0, cell), mark, strip.crop(cell + 1)])

    def _segment(self, item: Item, depth: int, palette: Palette, selected: bool) -> Segment:
        width = item.right - item.left
        text = self._run_text(item, width) if item.node < 0 else self._frame_text(item, width)
        style = palette.cursor if selected else self._style(item, depth, palette)
        return Segment(text, style)

    def _style(self, item: Item, depth: int, palette: Palette) -> Style:
        view = self._view
        searching = view.found is not None
        matching = searching and view.matches_in(item, depth) > 0
        if item.node < 0:
            return palette.run(item.cover, matching, searching and not matching)
        if matching:
            return palette.match
        tree = view.tree
        return palette.frame(tree.kind(item.node), tree.name(item.node), searching)

    def _run_text(self, item: Item, width: int) -> str:
        label = f" {format_count(item.frames)} narrow "
        if width_of(label) + 2 > width:
            label = ""
        return label.center(width, _QUIET)

    def _frame_text(self, item: Item, width: int) -> str:
        tree = self._view.tree
        mark = CAPTURED if tree.frames[int(tree.frame[item.node])].get("captured") else ""
        label = ""
        if width > _LEAST_LABEL:
            label = mark + cut(self._view.name(item.node), width - 1 - len(mark))
        free = width - 1 - width_of(label)
        if free > len("  100.0 %"):
            label += self._numbers(item.node, free)
        return EDGE + fill(label, width - 1)

    def _numbers(self, node: int, free: int) -> str:
        """Share of the zoomed part and value, as far as there is room."""
        tree, whole = self._view.tree, self._view.zoomed_total
        total = int(tree.total[node])
        share = f"  {format_percent(total, whole)}" if total <= whole else ""
        value = f"  {format_value(total, tree.metric.unit)}"
        return share + value if len(share) + len(value) < free else share

    # Mouse

    def on_click(self, event: events.Click) -> None:
        depth = self._view.top + self.scroll_offset.y + event.y
        item = next((i for i in self._view.items(depth) if i.left <= event.x < i.right), None)
        if item is not None:
            self._view.select_item(item, depth)
            self.post_message(self.Chosen(self._view.cursor, zoom=event.chain == 2))
