"""Draw the icicle: the tree with its root on top, one row per level, line by line."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from flame.core.analysis.words.formats import short_place
from flame.core.model.frames import Frame, Kind
from flame.core.names.cuda import strip_offset
from flame.core.units import format_count, format_percent, format_value
from flame.tui.session.anchors import OpenPaths
from flame.tui.session.row_layout import Item
from flame.tui.session.tree_view import TreeView
from flame.tui.session.wording import mark_of
from flame.tui.toolkit.lines import EDGE, RowView
from flame.tui.toolkit.palette import Palette
from flame.tui.toolkit.text import cut, fill, printable, width_of
from flame.tui.views.chain_label import chain_label

_QUIET = "░"
_LEAST_LABEL = 3
_NUMBERS = len("  100.0 %  100.00 ms")
_WIDE = 60
"""Cells from which on the names of a chain leave room for its numbers."""


def _width(view: TreeView, item: Item, number: int) -> int:
    """What the frames of ``item`` weigh together, as far as they are in the zoomed part."""
    row, span = view.layout.row(number), view.viewport.zoom.span
    first, last = item.first, item.last - 1
    total = int(row.before[last] - row.before[first] + row.high[last] - row.low[last])
    left, right = span.low - int(row.low[first]), int(row.high[last]) - span.high
    return total - max(left, 0) - max(right, 0)


def _short(name: str, frame: Frame, width: int) -> str:
    """``name`` in at most ``width`` cells; of an instruction rather what it does than where."""
    if frame.kind == Kind.SASS and len(name) > width:
        name = strip_offset(name)
    return cut(name, width)


def _fitting(words: list[str], free: int) -> str:
    """As many of ``words`` as are less than ``free`` cells wide together."""
    text = ""
    for word in words:
        if width_of(text) + width_of(word) >= free:
            break
        text += word
    return text


class Icicle(RowView):
    """Draw a `TreeView`; a click selects, a double click zooms.

    ``upwards`` puts the root at the bottom; ``rootless`` leaves it out, for a root that something
    else shows.
    """

    DEFAULT_CSS = "Icicle { height: 1fr; }"

    class Event(Message):
        """Something has happened to the ``icicle``."""

        def __init__(self, icicle: Icicle) -> None:
            super().__init__()
            self.icicle = icicle

        @property
        def control(self) -> Icicle:
            """The same, for selectors."""
            return self.icicle

    class Chosen(Event):
        """The user clicked a frame, which is now selected."""

        def __init__(self, icicle: Icicle, zoom: bool) -> None:
            super().__init__(icicle)
            self.zoom = zoom

    class Hovered(Event):
        """The mouse has come to another frame; -1 where there is none, or several in one run."""

        def __init__(self, icicle: Icicle, node: int) -> None:
            super().__init__(icicle)
            self.node = node

    class Panned(Event):
        """The wheel asks for what is further left (-1) or right (+1)."""

        def __init__(self, icicle: Icicle, step: int) -> None:
            super().__init__(icicle)
            self.step = step

    def __init__(
        self,
        view: TreeView,
        *,
        id: str | None = None,
        upwards: bool = False,
        rootless: bool = False,
    ) -> None:
        super().__init__(id=id)
        self._view = view
        self._upwards = upwards
        self._least = int(rootless)
        self._selecting = True
        self._drawn = view.picture
        self._strips: dict[tuple[int, int], Strip] = {}
        self._revealed: tuple[int, int, OpenPaths, tuple[str, ...], Size] | None = None
        self._hovered = -1

    def show(self, view: TreeView, selecting: bool = True) -> None:
        """Draw ``view`` from now on, its selected frame only if ``selecting``."""
        self._view, self._selecting = view, selecting
        view.viewport.width = self.inner.width
        self.reach(self._rows)
        self._reveal(view)
        self.redraw()

    def on_resize(self) -> None:
        if self.inner.width:
            self.show(self._view, self._selecting)

    @property
    def _first(self) -> int:
        """The number of the row closest to the root."""
        return max(self._view.viewport.top, self._least)

    @property
    def _rows(self) -> int:
        """Rows of the content; one that grows upwards stands on the bottom, however few it has."""
        rows = self._view.viewport.rows - (self._first - self._view.viewport.top)
        return max(rows, self.inner.height) if self._upwards else rows

    def _reveal(self, view: TreeView) -> None:
        """Scroll a newly selected frame into sight, with a row around it where there is one."""
        zoomed = (view.origin, view.viewport.zooms, view.viewport.open_paths)
        selected = (*zoomed, view.tree.names(view.cursor.node), self.size)
        if selected == self._revealed:
            return
        self._revealed = selected
        row, margin = self._row_of(view.cursor.node), 1 if self.inner.height > 2 else 0
        self.reveal_rows(max(row - margin, 0), row + margin)

    def _row_of(self, node: int) -> int:
        """The row that ``node`` is in; the first one for a root that is left out."""
        row = max(self._view.viewport.row_of(node) - self._first, 0)
        return self._rows - 1 - row if self._upwards else row

    def _number_of(self, row: int) -> int:
        """The number of the row of the tree that row ``row`` of the content shows."""
        return self._first + (self._rows - 1 - row if self._upwards else row)

    # Drawing

    def strip(self, row: int) -> Strip:
        view = self._view
        if self._drawn != view.picture:
            self._drawn = view.picture
            self._strips.clear()
        number = self._number_of(row)
        here = self._selecting and view.cursor.row == number
        cursor = view.cursor.node if here else -1
        if (number, cursor) not in self._strips:
            self._strips[number, cursor] = self._draw(number, cursor)
        return self._strips[number, cursor]

    def forget(self) -> None:
        self._strips.clear()
        super().forget()

    def _draw(self, number: int, cursor: int) -> Strip:
        view, (blank, palette, _) = self._view, self.look
        marked = cursor >= 0 and view.cursor.in_whole_run
        selected = view.viewport.item_of(cursor) if cursor >= 0 and not marked else None
        segments: list[Segment] = []
        at = 0
        for item in view.viewport.items(number):
            if item.left > at:
                segments.append(Segment(" " * (item.left - at), blank))
            segments.append(
                self._segment(item, number, palette, cursor if item is selected else -1)
            )
            at = item.right
        strip = self.padded(segments, at)
        return strip if selected or cursor < 0 else self._mark(strip, view.viewport.cell_of(cursor))

    def _mark(self, strip: Strip, cell: int) -> Strip:
        """Show the selected frame, too narrow to leave a mark of its own, as one cell."""
        mark = Strip([Segment(EDGE, self.look.palette.cursor)], 1)
        return Strip.join([strip.crop(0, cell), mark, strip.crop(cell + 1)])

    def _segment(self, item: Item, number: int, palette: Palette, cursor: int) -> Segment:
        width = item.right - item.left
        if item.node < 0:
            text = self._run_text(item, number, width)
        else:
            text = self._frame_text(item, width, cursor)
        return Segment(text, palette.cursor if cursor >= 0 else self._style(item, number, palette))

    def _style(self, item: Item, number: int, palette: Palette) -> Style:
        view = self._view
        searching = view.matches.result is not None
        matching = searching and view.matches.in_item(item, number) > 0
        if item.node < 0:
            return palette.run(item.cover, matching, searching and not matching)
        if matching:
            return palette.match
        tree, node, colouring = view.tree, view.viewport.innermost(item.node), view.colouring
        if colouring is not None:
            one_sided = colouring.is_one_sided(node)
            return palette.change(float(colouring.strength[node]), one_sided, searching)
        frame = tree.frames[int(tree.frame[node])]
        return palette.frame(frame, tree.name(node), searching)

    def _run_text(self, item: Item, number: int, width: int) -> str:
        """How many frames it is and, where there is room, which part of the zoomed one."""
        many = f" {format_count(item.frames)} narrow "
        part = format_percent(_width(self._view, item, number), self._view.viewport.total)
        fits = [text for text in (f"{many}· {part} ", many) if width_of(text) + 2 <= width]
        return (fits[0] if fits else "").center(width, _QUIET)

    def _frame_text(self, item: Item, width: int, cursor: int) -> str:
        """Name, place and numbers of a frame or closed chain, in which ``cursor`` is selected."""
        tree, node = self._view.tree, self._frame_named(item.node, cursor)
        frame = tree.frames[int(tree.frame[node])]
        mark, place = self._sign(item.node) + mark_of(frame), short_place(frame)
        label = ""
        if width > _LEAST_LABEL:
            label = mark + self._chain_name(item.node, node, width - 1 - len(mark))
        free = width - 1 - width_of(label)
        if place and free >= 2 + width_of(printable(place)):
            label += f"  {printable(place)}"
            free = width - 1 - width_of(label)
        if free > len("  100.0 %"):
            label += self._numbers(item.node, free)
        return EDGE + fill(label, width - 1)

    def _frame_named(self, node: int, cursor: int) -> int:
        """Which frame of the closed chain that begins with ``node`` its label has to name.

        That is the selected one, or the first match, or else the innermost one.
        """
        if cursor >= 0:
            return cursor
        found = self._view.matches.result
        if found is not None:
            members = self._view.layout.joined.members(node)
            matching = members[found.matches.mask[members]]
            if len(matching):
                return int(matching[0])
        return self._view.viewport.innermost(node)

    def _chain_name(self, first: int, node: int, width: int) -> str:
        """The name of ``node``, with those of the others in the closed chain from ``first`` on."""
        view = self._view
        members = view.layout.joined.members(first).tolist()
        if len(members) == 1:
            return _short(view.name(node), view.tree.frames[int(view.tree.frame[node])], width)
        names = [view.name(member) for member in members]
        named = None if node == view.viewport.innermost(first) else members.index(node)
        room = width - _NUMBERS if width >= _WIDE else width
        return chain_label(names, room, named, view.tree.layout.inverted)

    def _sign(self, node: int) -> str:
        """What stands before the name of a frame of two sides: how it has changed."""
        colouring = self._view.colouring
        sign = colouring.sign(self._view.viewport.innermost(node)) if colouring else ""
        return f"{sign} " if sign else ""

    def _numbers(self, node: int, free: int) -> str:
        """Share of the zoomed part and value, or how it has changed, as far as there is room."""
        if self._view.colouring is not None:
            words = self._view.colouring.words(self._view.viewport.innermost(node))
            return _fitting([f"  {word}" for word in words], free)
        tree, whole = self._view.tree, self._view.viewport.total
        total = int(tree.total[node])
        share = f"  {format_percent(total, whole)}" if self._view.viewport.holds_all(node) else ""
        value = f"  {format_value(total, tree.metric.unit)}"
        return share + value if len(share) + len(value) < free else share

    # Mouse

    def _item_at(self, event: events.MouseEvent) -> tuple[Item | None, int]:
        """What is drawn where ``event`` happens, and the number of that row."""
        number = self._number_of(self.scroll_offset.y + event.y)
        items = self._view.viewport.items(number) if number >= self._first else []
        return next((i for i in items if i.left <= event.x < i.right), None), number

    def on_click(self, event: events.Click) -> None:
        item, number = self._item_at(event)
        if item is not None:
            self._view.cursor.select_item(item, number)
            self.post_message(self.Chosen(self, zoom=event.chain == 2))

    def on_mouse_move(self, event: events.MouseMove) -> None:
        item, _ = self._item_at(event)
        node = item.node if item else -1
        self._hover(self._view.viewport.innermost(node) if node >= 0 else -1)

    def on_leave(self) -> None:
        self._hover(-1)

    def _hover(self, node: int) -> None:
        if node != self._hovered:
            self._hovered = node
            self.post_message(self.Hovered(self, node))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, -1, sideways=event.shift)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, 1, sideways=event.shift)

    def on_mouse_scroll_left(self, event: events.MouseScrollLeft) -> None:
        self._wheel(event, -1, sideways=True)

    def on_mouse_scroll_right(self, event: events.MouseScrollRight) -> None:
        self._wheel(event, 1, sideways=True)

    def _wheel(self, event: events.MouseEvent, step: int, sideways: bool) -> None:
        """Ask for a pan instead of scrolling, where the wheel goes ``sideways``."""
        if sideways:
            event.stop()
            event.prevent_default()
            self.post_message(self.Panned(self, step))
