"""Draw a line for each rank: what it did in all, and a cell for each step."""

from __future__ import annotations

import numpy as np
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from flame.core.columns import I8
from flame.core.rank_summary.rank_waits import UNKNOWN
from flame.core.units import format_ns
from flame.tui.ranks.imbalance import deviation_words, strength_of
from flame.tui.ranks.step_table import ABSENT, StepTable
from flame.tui.ranks.strip import glyph
from flame.tui.ranks.waiting import Waiting
from flame.tui.toolkit.lines import RowView
from flame.tui.toolkit.text import cut, fill

VALUE, FAR, CAUSED = 9, 9, 10
_LEAST_LABEL, _MOST_LABEL = 6, 24
_MISSING = "╌"
_WIDEST = 4


class HeatMap(RowView):
    """Draw the ranks of a `StepTable`; a click selects a cell, a double click opens its rank."""

    DEFAULT_CSS = "HeatMap { height: 1fr; }"

    class Chosen(Message):
        """The user clicked the rank on line ``row``, and its ``cell`` (-1: none)."""

        def __init__(self, row: int, cell: int, opens: bool) -> None:
            super().__init__()
            self.row = row
            self.cell = cell
            self.opens = opens

    def __init__(self, labels: tuple[str, ...], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._labels = labels
        self.label = min(max(map(len, labels), default=0) + 1, _MOST_LABEL)
        self.label = max(self.label, _LEAST_LABEL)
        self._table: StepTable | None = None
        self._waiting: Waiting | None = None
        self._order: I8 = np.zeros(0, np.int64)
        self._selected = (-1, -1)
        self._revealed: tuple[int, Size] | None = None
        self._strips: dict[tuple[int, int], Strip] = {}
        self._drawn: tuple[object, ...] = ()

    @property
    def left(self) -> int:
        """Cells before the first step."""
        return self.label + VALUE + FAR + (CAUSED if self._caused is not None else 0) + 1

    @property
    def _caused(self) -> I8 | None:
        """How long others waited for each rank; None where that is known of none."""
        return self._waiting.caused if self._waiting else None

    @property
    def room(self) -> int:
        """Cells for steps on the screen."""
        return max(self.inner.width - self.left, 1)

    @property
    def cells(self) -> int:
        """Cells of steps that are drawn."""
        table = self._table
        return min(self.room, len(table.first)) if table is not None else 0

    @property
    def _wide(self) -> int:
        """How wide a cell of steps is drawn: few steps are not lost on a wide screen."""
        return max(min(self.room // max(self.cells, 1), _WIDEST), 1)

    def show(
        self,
        table: StepTable | None,
        order: I8,
        selected: tuple[int, int],
        waiting: Waiting | None,
    ) -> None:
        """Draw the ranks of ``table`` in ``order``, that of a line and a cell as ``selected``.

        ``waiting`` says how long others waited for each.
        """
        self._waiting = waiting
        self._table, self._order, self._selected = table, order, selected
        self.reach(len(order) if table is not None else 0)
        self._reveal()
        self.redraw()

    def on_resize(self) -> None:
        self.show(self._table, self._order, self._selected, self._waiting)

    def _reveal(self) -> None:
        row = max(self._selected[0], 0)
        if (row, self.size) != self._revealed:
            self._revealed = (row, self.size)
            self.reveal_rows(row, row)

    # Drawing

    def strip(self, row: int) -> Strip:
        drawn = (self._table, self.size.width)
        if drawn != self._drawn:
            self._drawn = drawn
            self._strips.clear()
        if self._table is None or row >= len(self._order):
            return self.padded([], 0)
        key = int(self._order[row]), self._selected[1] if row == self._selected[0] else ABSENT - 1
        if key not in self._strips:
            self._strips[key] = self._draw(self._table, *key)
        return self._strips[key]

    def forget(self) -> None:
        self._strips.clear()
        super().forget()

    def _draw(self, table: StepTable, rank: int, cell: int) -> Strip:
        """The line of ``rank``, whose ``cell`` is selected; one that is not is below `ABSENT`."""
        base, palette, _ = self.look
        style = palette.cursor if cell >= ABSENT else base
        total = int(table.total[rank])
        value = "–" if total == ABSENT else format_ns(total)
        far = deviation_words(table.total_deviation(rank))
        head = f"{fill(cut(self._labels[rank], self.label), self.label)}"
        head += f"{value:>{VALUE}}{far:>{FAR}}{self._caused_by(rank)} "
        segments = [Segment(head, style), *self._cells_of(table, rank, cell)]
        return self.padded(segments, sum(len(one.text) for one in segments))

    def _caused_by(self, rank: int) -> str:
        """How long others waited for ``rank``, marked where that is beyond chance."""
        if self._caused is None or self._waiting is None:
            return ""
        caused = int(self._caused[rank])
        text = "–" if caused == UNKNOWN else format_ns(caused)
        return f"{text:>{CAUSED - 1}}{'!' if self._waiting.is_late(rank) else ' '}"

    def _cells_of(self, table: StepTable, rank: int, selected: int) -> list[Segment]:
        base, palette, _ = self.look
        if not table.by_step:
            return [self._bar(table, rank)]
        found, wide = table.cells(rank, self.cells), self._wide
        strengths = strength_of(found.deviation).tolist()
        segments = []
        for place, (far, column) in enumerate(
            zip(found.deviation.tolist(), found.column.tolist(), strict=True)
        ):
            if column == ABSENT:
                text, style = _MISSING, base + palette.quiet
            else:
                text, style = glyph(far), palette.change(strengths[place], far == np.inf)
            style = palette.cursor if place == selected else style
            segments.append(Segment(text.center(wide), style))
        return segments

    def _bar(self, table: StepTable, rank: int) -> Segment:
        """What the rank has in the whole run, as a bar."""
        base, palette, _ = self.look
        part = max(int(table.total[rank]), 0) / max(int(table.total.max()), 1)
        strength = float(strength_of(np.array([table.total_deviation(rank)]))[0])
        ink = palette.change(strength, False).bgcolor if strength else palette.quiet.color
        return Segment("━" * round(part * self.room), base + Style(color=ink))

    # Mouse

    def on_click(self, event: events.Click) -> None:
        row = self.scroll_offset.y + event.y
        if row < len(self._order):
            cell = (event.x - self.left) // self._wide
            self.post_message(self.Chosen(row, cell, opens=event.chain == 2))
