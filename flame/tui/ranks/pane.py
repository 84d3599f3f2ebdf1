"""Show the ranks side by side, step by step: there are no rows to be shown over time."""

from __future__ import annotations

import numpy as np
from textual import on
from textual.app import ComposeResult
from textual.message import Message

from flame.core.columns import I8
from flame.core.units import format_count, format_ns
from flame.tui.ranks.heat_map import FAR, VALUE, HeatMap
from flame.tui.ranks.imbalance import deviation_words
from flame.tui.ranks.session import RanksProjection
from flame.tui.ranks.step_table import ABSENT, StepTable, step_tables
from flame.tui.session.session import Projection
from flame.tui.shell.actions import Action, Move
from flame.tui.toolkit.background import Done, in_background
from flame.tui.toolkit.lines import Line, Lines, Piece
from flame.tui.toolkit.text import ELLIPSIS, cut_start
from flame.tui.views.pane import Pane

_NUMBERS: I8 = np.zeros(0, np.int64)


class RanksPane(Pane):
    """Show what ranks did in each step; one of them, and a step, is selected."""

    name_ = "ranks"
    title = "Ranks"
    DEFAULT_CSS = "#ranks-head { height: 1; overflow-y: hidden; }"

    class Chosen(Message):
        """The user asks for the rank at ``place`` alone."""

        def __init__(self, place: int) -> None:
            super().__init__()
            self.place = place

    def __init__(self, shown: Projection, labels: tuple[str, ...]) -> None:
        super().__init__(shown)
        self._labels = labels
        self._tables: tuple[StepTable, ...] | None = None
        self._asked = False
        self._measure = 0
        self._by_number = True
        self._rank = 0
        self._cell = 0

    def compose(self) -> ComposeResult:
        yield Lines(self._head, id="ranks-head")
        yield HeatMap(self._labels, id="heat-map")

    def show(self, shown: Projection) -> None:
        before, self.shown = self.shown, shown
        assert isinstance(shown, RanksProjection)
        if not self._asked:
            self._asked = True
            summary = shown.summary
            in_background(lambda: step_tables(summary), 0, self.post_message)
        if shown.places and before is not shown:
            self._rank = shown.places[0]
        self.query_one("#ranks-head", Lines).update()
        selected = (self._row, self._cell_shown)
        self.query_one(HeatMap).show(self._table, self._order, selected)

    @on(Done)
    def _worked(self, message: Done) -> None:
        result = message.result()
        assert isinstance(result, tuple)
        self._tables = result
        self.show(self.shown)
        self.post_message(self.Changed())

    @property
    def busy(self) -> bool:
        return self._asked and self._tables is None

    @property
    def place(self) -> int:
        """The rank that is selected."""
        return self._rank

    @property
    def _table(self) -> StepTable | None:
        return self._tables[self._measure] if self._tables else None

    @property
    def _order(self) -> I8:
        if self._table is None:
            return _NUMBERS
        return np.arange(len(self._labels)) if self._by_number else self._table.worst_first

    @property
    def _row(self) -> int:
        places = np.flatnonzero(self._order == self._rank)
        return int(places[0]) if len(places) else -1

    @property
    def _cells(self) -> int:
        """Cells of steps that are drawn."""
        return self.query_one(HeatMap).cells

    @property
    def _cell_shown(self) -> int:
        return min(self._cell, self._cells - 1)

    # Moves

    def _go_to(self, row: int) -> str:
        if len(self._order):
            self._rank = int(self._order[min(max(row, 0), len(self._order) - 1)])
        return ""

    def up(self) -> str:
        return self._go_to(self._row - 1)

    def down(self) -> str:
        return self._go_to(self._row + 1)

    def home(self) -> str:
        return self._go_to(0)

    def end(self) -> str:
        return self._go_to(len(self._order) - 1)

    def page(self, step: int) -> str:
        height = self.query_one(HeatMap).inner.height
        return self._go_to(self._row + step * max(height - 1, 1))

    def across(self, step: int) -> str:
        self._cell = min(max(self._cell_shown + step, 0), max(self._cells - 1, 0))
        return ""

    def enter(self) -> str:
        self.post_message(self.Chosen(self._rank))
        return ""

    def sort(self, step: int) -> str:
        self._by_number = not self._by_number
        self._go_to(0)
        return f"ranks {self._order_word}"

    def kinds(self, step: int) -> str:
        if self._tables is None or len(self._tables) < 2:
            return "no other measure of ranks in this summary"
        self._measure = (self._measure + step) % len(self._tables)
        self._cell = 0
        return f"measure: {self._tables[self._measure].title}"

    @property
    def _order_word(self) -> str:
        return "by number" if self._by_number else "with the worst first"

    # Drawing

    def _head(self, width: int, height: int) -> list[Line]:
        table = self._table
        if table is None:
            return [[Piece(f" {ELLIPSIS}", "dim")]]
        heat_map = self.query_one(HeatMap)
        rank = "rank▾" if self._by_number else "rank"
        order = Action.SORT.click(1)
        line: Line = [
            Piece(f"{rank:{heat_map.label}}", "key", order),
            Piece("in all".rjust(VALUE), "dim"),
        ]
        worst = "off" if self._by_number else "worst▾"
        line.append(Piece(worst.rjust(FAR), "key", order))
        line.append(Piece(f" {table.title} ▾", "key", f"screen.{Move.KINDS(1)}"))
        room = width - sum(len(piece.text) for piece in line)
        return [[*line, Piece(cut_start(f"  {self._about(table)}", room), "dim")]]

    def _about(self, table: StepTable) -> str:
        """What the columns are."""
        if not table.by_step:
            return "of the whole run" if len(self._steps_known) else "no steps in these traces"
        number = len(table.first)
        steps = f"{int(table.first[0])} to {int(table.last[-1])}"
        cells = self._cells
        packed = (
            f", {-(-number // max(cells, 1))} a cell: the farthest off" if cells < number else ""
        )
        return f"steps {steps}{packed}, against the median of each"

    @property
    def _steps_known(self) -> tuple[StepTable, ...]:
        return tuple(one for one in self._tables or () if one.by_step)

    def hint(self) -> str:
        table = self._table
        if table is None:
            return ""
        label = self._labels[self._rank]
        if not table.by_step:
            return f"{label} · {table.title} {format_ns(int(table.total[self._rank]))}"
        column = int(table.cells(self._rank, self._cells).column[self._cell_shown])
        if column == ABSENT:
            return f"{label} · has none of these steps"
        return f"{label} · {self._step(table, column)} · {self._value(table, column)}"

    def _step(self, table: StepTable, column: int) -> str:
        first, last = int(table.first[column]), int(table.last[column])
        return f"step {first}" if first == last else f"longest of steps {first} to {last}"

    def _value(self, table: StepTable, column: int) -> str:
        value, median = int(table.values[self._rank, column]), int(table.median[column])
        far = deviation_words(float(table.deviation(self._rank)[column]))
        there = format_count(int(table.there[:, column].sum()))
        return f"{format_ns(value)}  {far}  median {format_ns(median)} of {there} ranks"

    # Mouse

    @on(HeatMap.Chosen)
    def _clicked(self, message: HeatMap.Chosen) -> None:
        self._go_to(message.row)
        if message.cell >= 0:
            self._cell = message.cell
        self.post_message(self.Changed(self.enter() if message.opens else ""))
