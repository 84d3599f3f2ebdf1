"""Draw the line of column heads and the rows of the top table."""

from __future__ import annotations

import numpy as np
from rich.segment import Segment
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from flame.core.analysis.words.formats import NVTX, Terms, kind_word, short_place
from flame.core.columns import I4
from flame.core.model.frames import Frame
from flame.tui.session.wording import mark_of
from flame.tui.toolkit.lines import Lines, RowView
from flame.tui.toolkit.text import cut, fill, printable, width_of
from flame.tui.views.top_columns import TopColumns
from flame.tui.views.top_table import TopTable

TAG = 9
"""Cells of the kind before a name."""

NARROW = 4 * TAG
"""Cells of a table below which no kinds are said: names need the room."""


def tag_cells(wanted: int, width: int) -> int:
    """Return the cells of the kind, of as many ``wanted``, in a table of ``width`` cells."""
    return wanted if width >= NARROW else 0


class Heads(Lines):
    """Draw the line of column heads; a click on one asks for that order."""

    class Clicked(Message):
        """The user clicked the head of a column that sorts by ``key``."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    DEFAULT_CSS = "Heads { height: 1; overflow-y: hidden; }"

    def action_sort(self, key: str) -> None:
        self.post_message(self.Clicked(key))


class TableRows(RowView):
    """Draw the rows of a `TopTable`; a click selects, a double click opens."""

    DEFAULT_CSS = "TableRows { height: 1fr; }"

    class Chosen(Message):
        """The user clicked the row at ``place``."""

        def __init__(self, place: int, opens: bool) -> None:
            super().__init__()
            self.place = place
            self.opens = opens

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._table: TopTable | None = None
        self._rows: I4 = np.zeros(0, np.int32)
        self._selected = -1
        self._columns = TopColumns()
        self._terms = NVTX
        self._tag = TAG
        self._drawn: tuple[object, ...] = ()
        self._revealed: tuple[int, Size] | None = None
        self._to_first = False
        self._strips: dict[tuple[int, bool], Strip] = {}

    def show(
        self,
        table: TopTable | None,
        rows: I4,
        selected: int,
        columns: TopColumns,
        terms: Terms = NVTX,
        tag: int = TAG,
        goes_on: bool = False,
    ) -> None:
        """Draw ``rows`` of ``table``, the one at the place ``selected`` as the selected one.

        ``tag`` cells say of each row what it is; ``terms`` are the words for ranges. A table that
        ``goes_on`` is a later state: what the user has scrolled out of sight stays there.
        """
        self._terms, self._tag = terms, tag
        in_sight = 0 <= self._selected - self.scroll_offset.y < self.inner.height
        if rows is not self._rows:
            self._revealed = None
        to_first, self._to_first = self._to_first, False
        self._table, self._rows, self._selected, self._columns = table, rows, selected, columns
        self.reach(len(rows))
        if to_first:
            self._revealed = (selected, self.size)
            self.scroll_to_row(0)
        elif in_sight or not goes_on:
            self._reveal()
        else:
            self._revealed = (selected, self.size)
        self.redraw()

    def begin_at_first(self) -> None:
        """Draw from the first row on next time, wherever the selected one is."""
        self._to_first = True

    def on_resize(self) -> None:
        known = (self._table, self._rows, self._selected, self._columns)
        self.show(*known, self._terms, self._tag)

    def _reveal(self) -> None:
        """Scroll a newly selected row into sight."""
        selected = (self._selected, self.size)
        if selected == self._revealed:
            return
        self._revealed = selected
        row = max(self._selected, 0)
        self.reveal_rows(row, row)

    # Drawing

    def strip(self, row: int) -> Strip:
        table = self._table
        known = table is not None and table.is_complete
        drawn = (table, known, self.size.width, self._columns, self._tag)
        if drawn != self._drawn:
            self._drawn = drawn
            self._strips.clear()
        if table is None or row >= len(self._rows):
            return self.padded([], 0)
        key = (int(self._rows[row]), row == self._selected)
        if key not in self._strips:
            self._strips[key] = self._draw(table, *key)
        return self._strips[key]

    def forget(self) -> None:
        self._strips.clear()
        super().forget()

    def _draw(self, table: TopTable, row: int, selected: bool) -> Strip:
        base, palette, _ = self.look
        width = self.inner.width
        heads = self._columns.fitting(width)
        cells = "".join(table.cell(row, head.key).rjust(head.width) for head in heads)
        frame = table.tree.frames[int(table.totals.frame[row])]
        style = palette.cursor if selected else base
        tagged = tag_cells(self._tag, self.size.width)
        word = f"{kind_word(frame, self._terms):^{TAG}}" if tagged else ""
        room = max(width - len(cells) - len(word) - 2, 0)
        name, place = _named(frame, table.name(row), room)
        tag = Segment(word, palette.kind(frame.kind))
        segments = [Segment(f"{cells} ", style), tag, Segment(f" {name}", style)]
        segments.append(Segment(place, style if selected else base + palette.quiet))
        return self.padded(segments, width)

    # Mouse

    def on_click(self, event: events.Click) -> None:
        place = self.scroll_offset.y + event.y
        if place < len(self._rows):
            self.post_message(self.Chosen(place, opens=event.chain == 2))


def _named(frame: Frame, name: str, room: int) -> tuple[str, str]:
    """The name of ``frame``, and where it stands in the sources if that fits: ``room`` cells."""
    mark, place = mark_of(frame), short_place(frame)
    name = mark + cut(name, room - len(mark))
    place = f"  {printable(place)}" if place else ""
    if width_of(name) + width_of(place) > room:
        return fill(name, room), ""
    return name, fill(place, room - width_of(name))
