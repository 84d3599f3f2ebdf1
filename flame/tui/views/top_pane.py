"""Show every frame of the tree in a sortable table."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import ClassVar, NamedTuple

import numpy as np
from textual import on
from textual.app import ComposeResult
from textual.message import Message
from textual.timer import Timer

from flame.core.analysis.sandwich import merge_places
from flame.core.analysis.words.formats import level_word, terms_of
from flame.core.columns import I4, I8
from flame.core.model.frames import Kind
from flame.core.projection.filters import Steps
from flame.core.units import format_count, format_counted
from flame.tui.session.carry import matching_frames, select_frame
from flame.tui.session.query import SearchResult
from flame.tui.session.session import Projection
from flame.tui.session.steps import steps_of_frame
from flame.tui.session.tree_view import TreeView
from flame.tui.session.wording import lasts
from flame.tui.toolkit.background import Done, Pace, call_once, in_background
from flame.tui.toolkit.lines import Line, Piece
from flame.tui.toolkit.text import cut_start
from flame.tui.views.pane import Pane
from flame.tui.views.top_columns import NAME, Head, TopColumns
from flame.tui.views.top_metrics import measure_shown
from flame.tui.views.top_rows import TAG, Heads, TableRows, tag_cells
from flame.tui.views.top_table import UNKNOWN, SlowColumns, TopTable
from flame.tui.views.top_work import work_of_frames

AT_ONCE = 50_000
"""Tree nodes up to which totals take a few milliseconds."""

PACE = 1.0
"""Seconds between two tables of a trace that grows."""


class _Later(NamedTuple):
    """The whole table of a later state, and how long it took."""

    shown: Projection
    table: TopTable
    seconds: float


class DescribedRow(NamedTuple):
    """All places of ``frame`` in the tree view with this ``number``, merged."""

    number: int
    frame: int
    view: TreeView


class TopPane(Pane):
    """Show totals and percentiles per frame; ``shown.view`` has the selected one at one place."""

    name_ = "top"
    title = "Top"
    FIRST: ClassVar[str] = "own"
    """The order at first, and as long as the one that is wanted is not known."""

    class Sandwiched(Message):
        """The user asks for the sandwich of ``frame``."""

        def __init__(self, frame: int) -> None:
            super().__init__()
            self.frame = frame

    def __init__(self, shown: Projection) -> None:
        super().__init__(shown)
        self._busy = False
        self._of: Projection | None = None
        self._ticket = 0
        self._table: TopTable | None = None
        self._wanted = (self.FIRST, False)
        self._kind: Kind | None = None
        self._by = ""
        self._rows: I4 = np.zeros(0, np.int32)
        self._found: SearchResult | None = None
        self._chosen_by: tuple[object, ...] | None = None
        self._pace = Pace(PACE)
        self._timer: Timer | None = None
        self._described: DescribedRow | None = None

    def compose(self) -> ComposeResult:
        yield Heads(self._heads, id="heads")
        yield TableRows(id="table")

    def show(self, shown: Projection) -> None:
        self.shown = shown
        goes_on = self._table is not None and self._of is not None and shown.follows(self._of)
        if goes_on:
            self._go_on(shown)
        elif self._of is not shown:
            self._begin(shown)
        self._choose()
        self.query_one(Heads).update()
        rows = self.query_one(TableRows)
        known = (self._table, self._rows, self._place(), self._columns)
        rows.show(*known, terms_of(shown.profile), self._tag, goes_on)

    @property
    def busy(self) -> bool:
        return self._busy

    @property
    def described(self) -> TreeView:
        view = self.shown.view
        frame = int(view.tree.frame[view.cursor.node])
        if not view.cursor.node:
            return view
        if self._described is None or self._described[:2] != (view.number, frame):
            places = view.places(frame)
            merged = view.derive(lambda tree: merge_places(tree, places))
            self._described = DescribedRow(view.number, frame, merged)
        return self._described.view

    # Working out

    def _begin(self, shown: Projection) -> None:
        """Forget the table of another projection, and make this one's."""
        self._of, self._table = shown, None
        self._ticket += 1
        self._busy = True
        if len(shown.view.tree) <= AT_ONCE:
            self._take(self._make(shown))
        else:
            self._work(lambda: self._make(shown))

    def _make(self, shown: Projection) -> TopTable:
        return TopTable(shown.view.tree)

    def _complete(self, table: TopTable, shown: Projection) -> SlowColumns:
        """Work out the part of ``table`` that takes its time."""
        if shown.profile.ranks is not None:
            return table.estimated(shown.profile)
        metric = shown.metric
        members = shown.members() if lasts(metric) else None
        values = metric.values(shown.profile.table(metric))
        parts = table.parts_of(shown.profile, shown.selection.where)
        later, frames = table.later(members, values, parts), table.totals.frame
        return later._replace(work=work_of_frames(shown), measured=measure_shown(shown, frames))

    def _go_on(self, shown: Projection) -> None:
        """Work out a later table, which takes the place of this one when it is complete."""
        begin = monotonic()
        if self._busy:
            return
        if wait := self._pace.wait():
            self._timer = self._timer or call_once(self, wait, self._again)
            return
        self._busy, self._ticket = True, self._ticket + 1

        def work() -> _Later:
            table = self._make(shown)
            table.take(self._complete(table, shown))
            return _Later(shown, table, monotonic() - begin)

        in_background(work, self._ticket, self.post_message)

    def _again(self) -> None:
        self._timer = None
        if self.display:
            self.show(self.shown)

    def _work(self, work: Callable[[], TopTable | SlowColumns]) -> None:
        in_background(work, self._ticket, self.post_message)

    @on(Done)
    def _worked(self, message: Done) -> None:
        result = message.result()
        if message.ticket != self._ticket:
            return
        if isinstance(result, TopTable):
            self._take(result)
        elif isinstance(result, SlowColumns) and self._table is not None:
            if self._wanted[0] not in self._table.orders:  # the rows stand by another until now
                self.query_one(TableRows).begin_at_first()
            self._table.take(result)
            self._busy = False
        elif isinstance(result, _Later):
            self._replace(result)
        self.show(self.shown)

    def _replace(self, later: _Later) -> None:
        self._of, self._table, self._chosen_by = later.shown, later.table, None
        self._busy = False
        self._pace.delay(later.seconds, since=monotonic())
        if self._kind not in later.table.kinds:
            self._kind = None

    def _take(self, table: TopTable) -> None:
        """Show ``table``, and have the rest of it worked out."""
        self._table, self._chosen_by, shown = table, None, self.shown
        if self._kind not in table.kinds:
            self._kind = None
        self._work(lambda: self._complete(table, shown))

    # Choosing

    @property
    def _order(self) -> tuple[str, bool]:
        """The order wanted; until it is known, the first one."""
        known = self._table is not None and self._wanted[0] in self._table.orders
        return self._wanted if known else (self.FIRST, False)

    def _choose(self) -> None:
        """Gather the rows, if they are not those already gathered."""
        if self._table is None:
            self._rows, self._chosen_by = np.zeros(0, np.int32), None
            return
        found, chosen_by = self.view.matches.result, (*self._order, self._kind)
        if chosen_by != self._chosen_by or found is not self._found:
            self._chosen_by, self._found = chosen_by, found
            fits = None if found is None else matching_frames(self.view.tree, found)
            self._rows = self._table.rows(*chosen_by, fits)

    def _place(self) -> int:
        """Where the selected frame stands among the rows, -1 if it is not there."""
        if self._table is None:
            return -1
        row = self._table.row_of(int(self.view.tree.frame[self.view.cursor.node]))
        places = np.flatnonzero(self._rows == row)
        return int(places[0]) if len(places) else -1

    def _select(self, place: int) -> None:
        """Select the frame at ``place``, where it is widest, in the zoomed part if it is there."""
        if self._table is None or not len(self._rows):
            return
        row = self._rows[min(max(place, 0), len(self._rows) - 1)]
        select_frame(self.view, int(self._table.totals.frame[row]))

    def _in_zoom(self, row: int) -> bool:
        """Whether the frame in ``row`` can be selected without zooming out."""
        assert self._table is not None
        places = self.view.places(int(self._table.totals.frame[row]))
        return len(self.view.viewport.held(places)) > 0

    # Moves

    def up(self) -> str:
        self._select(self._place() - 1)
        return ""

    def down(self) -> str:
        self._select(self._place() + 1)
        return ""

    def home(self) -> str:
        self._select(0)
        return ""

    def end(self) -> str:
        self._select(len(self._rows) - 1)
        return ""

    def page(self, step: int) -> str:
        height = self.query_one(TableRows).inner.height
        self._select(self._place() + step * max(height - 1, 1))
        return ""

    def match(self, step: int) -> str:
        if not len(self._rows):
            return "no row matches"
        place = self._place()
        self._select((place + step) % len(self._rows) if place >= 0 else 0)
        return ""

    def enter(self) -> str:
        if self._place() < 0:
            return "select a row first"
        if len(self._steps) > 1:
            self.post_message(self.StepsAsked())
        elif len(self._steps) and not self._filtered:
            self.post_message(self.Filtered(Steps.of(self._steps.tolist())))
        else:
            self.post_message(self.Sandwiched(int(self.view.tree.frame[self.view.cursor.node])))
        return ""

    def enter_label(self) -> str:
        if len(self._steps) > 1:
            return "steps"
        return "this step" if len(self._steps) and not self._filtered else ""

    @property
    def _steps(self) -> I8:
        """The steps that the selected row stands for."""
        return steps_of_frame(self.shown, int(self.view.tree.frame[self.view.cursor.node]))

    @property
    def _filtered(self) -> bool:
        """Whether the step of the selected row is all that is shown."""
        return Steps.of(self._steps.tolist()) in self.shown.selection.where

    def sort(self, step: int) -> str:
        keys = [*self._columns.titles]
        at = keys.index(self._wanted[0]) if self._wanted[0] in keys else -max(step, 0)
        return self._sort_by(keys[(at + step) % len(keys)])

    def column(self, step: int) -> str:
        return self.sort(step)

    def sort_by(self, number: int) -> str:
        keys = [*self._columns.titles]
        place = number - 1 if number else len(keys) - 1
        return self._sort_by(keys[place]) if place < len(keys) else f"there are {len(keys)} columns"

    def _sort_by(self, key: str, backwards: bool = False) -> str:
        """Sort by ``key``, and go to the first row: the largest is what one sorts for."""
        self._wanted = (key, backwards)
        self._choose()
        self.query_one(TableRows).begin_at_first()
        if len(self._rows) and self._in_zoom(int(self._rows[0])):
            self._select(0)
        return f"sorted by {self._columns.titles[key]}"

    def parts(self, step: int) -> str:
        ring = ("", *(self._table.parts if self._table else ()))
        if len(ring) == 1:
            return "one GPU and one file: there is nothing to set side by side"
        self._by = ring[(ring.index(self._by) + step) % len(ring) if self._by in ring else 0]
        if self._wanted[0] not in self._columns.titles:
            self._wanted = ("total", False)
        return f"columns: per {self._by}" if self._by else "columns: percentiles"

    def kinds(self, step: int) -> str:
        if self._table is None:
            return ""
        ring = (None, *self._table.kinds)
        self._kind = ring[(ring.index(self._kind) + step) % len(ring)]
        return f"rows: {self._word or 'all'}"

    # Drawing

    @property
    def _word(self) -> str:
        """What the rows are, where they are of one kind."""
        kind, terms = self._kind, terms_of(self.shown.profile)
        return level_word(kind.title, terms) if kind else ""

    @property
    def _tag(self) -> int:
        """Cells that say what a row is: none where all are of one kind."""
        alike = self._kind is not None or (self._table and len(self._table.kinds) < 2)
        return 0 if alike else TAG

    @property
    def _columns(self) -> TopColumns:
        """The columns wanted; those of parts from when these are known."""
        timed, found = lasts(self.shown.metric), self._table and self._table.parts.get(self._by)
        table, names = self._table, found.names if found else ()
        return TopColumns(
            timed, self._wanted[0], self._by, names, *(table.besides if table else ())
        )

    def _heads(self, width: int, height: int) -> list[Line]:
        line = [self._head(head) for head in (*self._columns.fitting(width), NAME)]
        room = width - sum(len(piece.text) for piece in line)
        return [[*line, Piece(cut_start(f"  {self._number()}", room), "dim")]]

    def _head(self, head: Head) -> Piece:
        """The title, marked where the table is sorted by it."""
        key, backwards = self._wanted
        marked = head.sorts == key and head.title not in ("", "%")
        falls = (key == NAME.key) == backwards
        mark = ("▾" if falls else "▴") if self._order[0] == key else UNKNOWN
        text = head.title + (mark if marked else "")
        text = text.rjust(head.width or len(text) + 2 + tag_cells(self._tag, self.size.width))
        return Piece(text, "key" if marked else "dim", f"sort('{head.sorts}')")

    def _number(self) -> str:
        """How many rows there are, of which kind, and how many of them match."""
        if self._table is None:
            return UNKNOWN
        whole = self._table.number(self._kind)
        kind = f"{self._word} " if self._word else ""
        zoomed = ", unzoomed" if self.view.viewport.zoom.node else ""
        if self.view.matches.result is None:
            return f"{format_counted(whole, f'{kind}row', f'{kind}rows')}{zoomed}"
        found = f"{format_count(len(self._rows))} of {format_count(whole)}"
        return f"{found} {kind}match{zoomed}"

    # Mouse

    @on(Heads.Clicked)
    def _head_clicked(self, message: Heads.Clicked) -> None:
        key, backwards = self._wanted
        self._sort_by(message.key, not backwards if message.key == key else False)
        self.post_message(self.Changed(""))

    @on(TableRows.Chosen)
    def _chosen(self, message: TableRows.Chosen) -> None:
        self._select(message.place)
        self.post_message(self.Changed(self.enter() if message.opens else ""))
