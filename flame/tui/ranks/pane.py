"""Show the ranks side by side, step by step: there are no rows to be shown over time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from textual import on
from textual.app import ComposeResult
from textual.message import Message

from flame.core.columns import I8
from flame.core.rank_summary.summary import RankSummary
from flame.core.units import format_count, format_counted, format_ns
from flame.tui.ranks.heat_map import CAUSED, FAR, VALUE, HeatMap
from flame.tui.ranks.imbalance import deviation_words
from flame.tui.ranks.rank_file import view_words
from flame.tui.ranks.session import RanksProjection
from flame.tui.ranks.step_table import ABSENT, StepTable, step_tables
from flame.tui.ranks.waiting import Waiting, waiting_of
from flame.tui.session.session import Projection
from flame.tui.shell.actions import Action, Move
from flame.tui.toolkit.background import Done, in_background
from flame.tui.toolkit.fields import fields
from flame.tui.toolkit.lines import Line, Lines, Piece, line_width
from flame.tui.toolkit.text import ELLIPSIS, cut_start, printable
from flame.tui.views.pane import Pane

_NUMBERS: I8 = np.zeros(0, np.int64)

_LEAST_HEIGHT = 15
"""Lines from which on some are for what is known of the selected rank."""

_ORDERS = {
    "caused": "by how long others waited for them",
    "number": "by number",
    "worst": "with the worst first",
}


class RankMeasures(NamedTuple):
    """Hold what ranks are measured by, and how they came to collectives."""

    tables: tuple[StepTable, ...]
    waiting: Waiting


def rank_measures(summary: RankSummary) -> RankMeasures:
    """Work out all that is shown of ``summary`` here."""
    return RankMeasures(step_tables(summary), waiting_of(summary))


class RanksPane(Pane):
    """Show what ranks did in each step; one of them, and a step, is selected.

    Below is what is known of the selected one besides.
    """

    name_ = "ranks"
    title = "Ranks"
    DEFAULT_CSS = """
    #ranks-head { height: 1; overflow-y: hidden; }
    #rank-about { height: 5; overflow-y: hidden; background: $surface; }
    """

    class Chosen(Message):
        """The user asks for the rank at ``place`` alone."""

        def __init__(self, place: int) -> None:
            super().__init__()
            self.place = place

    def __init__(self, shown: Projection, labels: tuple[str, ...]) -> None:
        super().__init__(shown)
        self._labels = labels
        self._measures: RankMeasures | None = None
        self._asked = False
        self._measure = 0
        self._ordered = 0
        self._rank = 0
        self._cell = 0

    def compose(self) -> ComposeResult:
        yield Lines(self._head, id="ranks-head")
        yield HeatMap(self._labels, id="heat-map")
        yield Lines(self._about_rank, id="rank-about")

    def on_resize(self) -> None:
        self.query_one("#rank-about").display = self.size.height >= _LEAST_HEIGHT

    def show(self, shown: Projection) -> None:
        before, self.shown = self.shown, shown
        assert isinstance(shown, RanksProjection)
        if not self._asked:
            self._asked = True
            summary = shown.summary
            in_background(lambda: rank_measures(summary), 0, self.post_message)
        if shown.places and before is not shown:
            self._rank = shown.places[0]
        self.query_one("#ranks-head", Lines).update()
        selected = (self._row, self._cell_shown)
        self.query_one(HeatMap).show(self._table, self._order, selected, self._waiting)
        self.query_one("#rank-about", Lines).update()

    @on(Done)
    def _worked(self, message: Done) -> None:
        result = message.result()
        assert isinstance(result, RankMeasures)
        self._measures = result
        assert isinstance(self.shown, RanksProjection)
        if not self.shown.places:
            self._go_to(0)
        self.show(self.shown)
        self.post_message(self.Changed())

    @property
    def busy(self) -> bool:
        return self._asked and self._measures is None

    @property
    def place(self) -> int:
        """The rank that is selected."""
        return self._rank

    @property
    def _tables(self) -> tuple[StepTable, ...]:
        return self._measures.tables if self._measures else ()

    @property
    def _waiting(self) -> Waiting | None:
        return self._measures.waiting if self._measures else None

    @property
    def _table(self) -> StepTable | None:
        return self._tables[self._measure] if self._tables else None

    @property
    def _orders(self) -> list[str]:
        """The orders there are: by what ranks caused only where that is known."""
        known = self._waiting is not None and self._waiting.most_first is not None
        return [one for one in _ORDERS if known or one != "caused"]

    @property
    def _sorted(self) -> str:
        return self._orders[self._ordered % len(self._orders)]

    @property
    def _order(self) -> I8:
        if self._table is None or self._waiting is None:
            return _NUMBERS
        if self._sorted == "caused" and self._waiting.most_first is not None:
            return self._waiting.most_first
        return np.arange(len(self._labels)) if self._sorted == "number" else self._table.worst_first

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
        self._ordered = (self._ordered + step) % len(self._orders)
        self._go_to(0)
        return f"ranks {_ORDERS[self._sorted]}"

    def match(self, step: int) -> str:
        """Select the next (+1) or previous (-1) rank with the searched number, name or file."""
        result = self.shown.view.matches.result
        text = result.query.text if result else ""
        rows = np.flatnonzero(np.isin(self._order, self._called(text)))
        if not len(rows):
            return f"no rank is called {printable(text)}"
        beyond = rows[rows > self._row] if step > 0 else rows[rows < self._row]
        at = 0 if step > 0 else -1
        self._go_to(int(beyond[at] if len(beyond) else rows[at]))
        return "" if len(rows) == 1 else f"{format_count(len(rows))} ranks are called that"

    def _called(self, text: str) -> list[int]:
        """The places of ranks with this number, or this text in their name or file."""
        assert isinstance(self.shown, RanksProjection)
        info = self.shown.summary.info
        if text.isdecimal():
            return [at for at, one in enumerate(info) if one.rank == int(text)]
        low = text.casefold()
        names = (f"{label} {one.path}" for label, one in zip(self._labels, info, strict=True))
        return [at for at, name in enumerate(names) if low in name.casefold()]

    def kinds(self, step: int) -> str:
        if len(self._tables) < 2:
            return "no other measure of ranks in this summary"
        self._measure = (self._measure + step) % len(self._tables)
        self._cell = 0
        return f"measure: {self._tables[self._measure].title}"

    # Drawing

    def _head(self, width: int, height: int) -> list[Line]:
        table = self._table
        if table is None:
            return [[Piece(f" {ELLIPSIS}", "dim")]]
        line = [*self._heads(), Piece(f" {table.title} ▾", "key", f"screen.{Move.KINDS(1)}")]
        return [
            [*line, Piece(cut_start(f"  {self._about(table)}", width - line_width(line)), "dim")]
        ]

    def _heads(self) -> Line:
        """The titles of the columns, a click on which sorts by them."""
        heads = {"number": "rank", "": "in all", "worst": "off", "caused": "caused"}
        widths = {
            "number": -self.query_one(HeatMap).label,
            "": VALUE,
            "worst": FAR,
            "caused": CAUSED,
        }
        return [
            self._head_of(key, text, widths[key])
            for key, text in heads.items()
            if not key or key in self._orders
        ]

    def _head_of(self, key: str, text: str, width: int) -> Piece:
        if not key:
            return Piece(text.rjust(width), "dim")
        orders = self._orders
        text += "▾" if key == self._sorted else ""
        text = text.ljust(-width) if width < 0 else text.rjust(width)
        step = orders.index(key) - orders.index(self._sorted)
        return Piece(text, "key", Action.SORT.click(step % len(orders)))

    def _about(self, table: StepTable) -> str:
        """What the columns are."""
        if not table.by_step:
            of = "of the whole run" if self._has_steps else "no steps in these traces"
            return of if table.scale is None else f"{of}, as a part of the GPU time"
        number = len(table.first)
        steps = f"{int(table.first[0])} to {int(table.last[-1])}"
        cells = self._cells
        packed = (
            f", {-(-number // max(cells, 1))} a cell: the farthest off" if cells < number else ""
        )
        scale = ", as a part of the step" if table.scale is not None else ""
        return f"steps {steps}{packed}, against the median of each{scale}"

    @property
    def _has_steps(self) -> bool:
        return any(one.by_step for one in self._tables)

    def _about_rank(self, width: int, height: int) -> list[Line]:
        """What is known of the selected rank besides."""
        if self._waiting is None or not isinstance(self.shown, RanksProjection):
            return []
        info = self.shown.summary.info[self._rank]
        opens = view_words(info.path)
        title: Line = [Piece(f"{self._labels[self._rank]}  ", "strong")]
        gpus = ", ".join(dict.fromkeys(info.gpus))
        title.append(
            Piece(
                cut_start(f"a: {opens}", width - line_width(title)), "key", Action.OPEN_RANK.click()
            )
        )
        title.append(
            Piece(cut_start(printable(f"  {gpus}"), max(width - line_width(title), 0)), "dim")
        )
        rows = [*self._waiting.rows(self._rank), ("by step", self._waiting.note_of_steps)]
        return [title, *fields(rows, width, prose=True)]

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
        there = format_counted(int(table.there[:, column].sum()), "rank", "ranks")
        far += " of the step" if far and table.scale is not None else ""
        return f"{format_ns(value)}  {far}  median {format_ns(median)} of {there}"

    # Mouse

    @on(HeatMap.Chosen)
    def _clicked(self, message: HeatMap.Chosen) -> None:
        self._go_to(message.row)
        if message.cell >= 0:
            self._cell = message.cell
        self.post_message(self.Changed(self.enter() if message.opens else ""))
