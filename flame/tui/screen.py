"""The main screen: icicle, details and the lines around them, and what every key does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Thread
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Horizontal
from textual.events import DescendantFocus
from textual.message import Message
from textual.reactive import Reactive
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input

from flame.core.errors import FlameError, UsageError
from flame.core.project import default_levels
from flame.core.selection import Selection
from flame.tui import header
from flame.tui.details import details
from flame.tui.icicle import Icicle
from flame.tui.keys import FOOTER, bindings
from flame.tui.levels import LevelsDialog, toggled
from flame.tui.lines import Line, Lines, Piece, palette_of
from flame.tui.query import Query
from flame.tui.searchbox import SearchBox
from flame.tui.session import Projection, Session
from flame.tui.sheets import Sheet, coverage_lines, help_lines, warning_lines
from flame.tui.text import cut, cut_start, printable
from flame.tui.view import View

PATIENCE = 0.15
"""Seconds a projection may take before the status line says that it runs."""


class MainScreen(Screen[None]):
    """Shows one loaded trace: ``shown`` is on screen, ``wanted`` is what was last asked for."""

    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [*bindings()]
    # Instance variables of Screen, whose types ClassVar would contradict.
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (60, "-narrow"), (100, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (15, "-short"), (22, "-tall")]  # noqa: RUF012

    # As Screen has it, but for the repaint of all cells whenever the search box is entered or left.
    focused: Reactive[Widget | None] = Reactive(None, repaint=False)

    class Projected(Message):
        """A projection is ready; ``ticket`` says which."""

        def __init__(self, ticket: int, outcome: Projection | Exception) -> None:
            super().__init__()
            self.ticket = ticket
            self.outcome = outcome

    def __init__(self, session: Session, shown: Projection) -> None:
        super().__init__()
        self.session = session
        self.shown = shown
        self.wanted = shown.selection
        self._ticket = 0
        self.busy = False
        self._levels = {shown.metric.table: shown.selection.levels}
        self._note: Line = []
        self._query_before: Query | None = None

    @property
    def view(self) -> View:
        """What is on screen."""
        return self.shown.view

    # Composition

    def compose(self) -> ComposeResult:
        yield Lines(self._header, id="header")
        yield Lines(lambda width, height: [header.breadcrumb(self.view, width)], id="crumbs")
        with Container(id="body"):
            yield Icicle(self.view, id="icicle")
            yield Lines(self._details, id="details")
            yield Lines(self._empty, id="empty")
        with Horizontal(id="bottom"):
            yield SearchBox(id="search")
            yield Lines(self._status, id="status")
        yield Lines(lambda width, height: [header.footer(FOOTER, width)], id="keys")
        yield Lines(self._too_small, id="small")

    def on_mount(self) -> None:
        self._take(self.shown)
        warnings = self.session.profile.warnings
        if warnings and not self.shown.empty:
            more = f"  w: all {len(warnings)} notes" if len(warnings) > 1 else ""
            self._show(f"{printable(warnings[0])}{more}", "warning")

    def _header(self, width: int, height: int) -> list[Line]:
        trace, tree = (self.session.path, self.session.profile), self.view.tree
        return [header.header(*trace, self.shown.selection, tree, palette_of(self), width)]

    def _details(self, width: int, height: int) -> list[Line]:
        return details(self.view, palette_of(self), width)

    def _empty(self, width: int, height: int) -> list[Line]:
        metric = self.shown.metric
        text = "Nothing to show: the trace holds no GPU activity, NVTX range or CUDA call."
        if not self._bare:
            text = f"Nothing to show: the {metric.title} is zero everywhere. m: another metric."
        return [[Piece(text, "strong")], [], *warning_lines(self.session.profile, width)]

    @property
    def _bare(self) -> bool:
        return self.shown.metric.table == "host" and not self.session.profile.gpu_time

    def _status(self, width: int, height: int) -> list[Line]:
        if self._note:
            return [[piece._replace(text=cut(piece.text, width)) for piece in self._note]]
        return [header.search_status(self.view, width)]

    def _too_small(self, width: int, height: int) -> list[Line]:
        text = f"flame needs 60 × 15 cells, here are {self.size.width} × {self.size.height}"
        return [[Piece(cut_start(text, width), "warning")]]

    # Showing

    def _show(self, note: str = "", tone: str = "dim") -> None:
        """Bring the screen up to date, with ``note`` in the status line until the next key."""
        self._note = [Piece(f" {note}", tone)] if note else []
        self.query_one(Icicle).show(self.view)
        for name in ("#crumbs", "#details", "#status"):
            self.query_one(name, Lines).update()

    def _take(self, projection: Projection) -> None:
        """Show ``projection``."""
        self.shown = projection
        self.wanted = projection.selection
        self.set_class(projection.empty, "-empty")
        self._show()
        for name in ("#header", "#empty"):
            self.query_one(name, Lines).update()

    def _project(self, candidates: list[Selection]) -> None:
        """Show the first of ``candidates`` that has anything, as soon as it is worked out."""
        self.wanted = candidates[0]
        self._ticket += 1
        self.busy = True
        ticket, session = self._ticket, self.session
        self.set_timer(PATIENCE, self._say_pending)

        def work() -> None:
            outcome: Projection | Exception
            try:
                outcome = session.project(candidates)
            except Exception as error:
                outcome = error
            self.post_message(self.Projected(ticket, outcome))

        Thread(target=work, daemon=True).start()

    def _say_pending(self) -> None:
        if self.busy:
            self._show("working …")

    @on(Projected)
    def _projected(self, message: Projected) -> None:
        if message.ticket != self._ticket:
            return
        self.busy = False
        outcome = message.outcome
        if isinstance(outcome, Projection):
            self._levels[outcome.metric.table] = outcome.selection.levels
            self.view.carried_to(outcome.view)
            self._take(outcome)
        elif isinstance(outcome, FlameError):
            self.wanted = self.shown.selection
            self._show(str(outcome), "warning")
        else:
            raise outcome

    # Moving and zooming

    def action_across(self, step: int) -> None:
        self.view.move_across(step)
        self._show()

    def action_down(self) -> None:
        self.view.move_down()
        self._show()

    def action_up(self) -> None:
        top = self.view.cursor == self.view.zoom.node != 0
        self.view.move_up()
        self._show("u zooms out" if top else "")

    def action_home(self) -> None:
        self.action_select(self.view.zoom.node)

    def action_page(self, step: int) -> None:
        icicle = self.query_one(Icicle)
        icicle.scroll_to(y=icicle.scroll_offset.y + step * icicle.size.height, animate=False)

    def action_select(self, node: int) -> None:
        if not self.view.holds(node):
            self.view.reset()
        self.view.select(node)
        self._show()

    def action_zoom(self) -> None:
        self.view.zoom_in()
        self._show()

    def action_zoom_to(self, node: int) -> None:
        self.view.zoom_to(self.view.zoom_of(node))
        self._show()

    def action_out(self) -> None:
        self.view.zoom_out()
        self._show()

    def action_undo(self) -> None:
        self._show("" if self.view.undo() else "no zoom to undo")

    def on_icicle_chosen(self, message: Icicle.Chosen) -> None:
        if message.zoom:
            self.view.zoom_in()
        self._show()

    # Searching

    def action_search(self) -> None:
        self.set_focus(self.query_one(SearchBox))

    @on(DescendantFocus, "#search")
    def _search_begins(self) -> None:
        found = self.view.found
        self._query_before = found.query if found else None

    @on(Input.Changed)
    def _search_typed(self, event: Input.Changed) -> None:
        self._search(Query(event.value))

    @on(Input.Submitted)
    def _search_entered(self) -> None:
        self.set_focus(None)
        place, _ = self.view.shown_matches()
        if self.view.found and not place:
            self.view.next_match(1)
        self._show()

    def action_escape(self) -> None:
        box = self.query_one(SearchBox)
        if box.has_focus:
            self.set_focus(None)
            box.show(self._query_before)
            self._search(self._query_before)
        elif self.view.found:
            box.show(None)
            self._search(None)
        else:
            self.view.reset()
            self._show()

    def _search(self, query: Query | None) -> None:
        try:
            self.view.search(query)
        except UsageError as error:
            self.view.search(None)
            self._show(str(error), "warning")
        else:
            self._show()

    def action_match(self, step: int) -> None:
        if not self.view.found:
            self._show("no search yet: / begins one")
        else:
            self.view.next_match(step)
            self._show()

    def action_same(self) -> None:
        query = Query(self.view.tree.name(self.view.cursor), exact=True)
        self.query_one(SearchBox).show(query)
        self._search(query)

    # What is shown of the trace

    def action_metric(self, step: int) -> None:
        others = self.session.others(self.wanted, step)
        if others:
            self._project([self._with_own_levels(selection) for selection in others])
        else:
            self._show("no other metric in this trace")

    def _with_own_levels(self, selection: Selection) -> Selection:
        """``selection`` with the levels last chosen for the metric's table."""
        from flame.core.metrics import metric_of

        table = metric_of(selection.metric or "").table
        return replace(selection, levels=self._levels.get(table))

    def action_levels(self) -> None:
        usual = default_levels(self.shown.metric, self.wanted.naming)
        dialog = LevelsDialog(self.view.tree.levels, usual, self.shown.recorded)
        self.app.push_screen(dialog, self._set_levels)

    def _set_levels(self, levels: tuple[str, ...] | None) -> None:
        if levels:
            self._project([replace(self.wanted, levels=levels)])

    def action_level(self, level: str) -> None:
        usual = default_levels(self.shown.metric, self.wanted.naming)
        levels = toggled(self.wanted.levels or usual, level)
        if level not in self.shown.recorded:
            self._show(f"this trace has no {level} frames")
        elif levels:
            self._set_levels(levels)
        else:
            self._show("the last level stays on")

    def action_details(self) -> None:
        self.toggle_class("-no-details")
        self._show()

    def action_scroll_details(self, step: int) -> None:
        pane = self.query_one("#details", Lines)
        pane.scroll_to(y=pane.scroll_offset.y + step, animate=False)

    def action_coverage(self) -> None:
        self._sheet(lambda width: coverage_lines(self.session.profile, width))

    def action_help(self) -> None:
        self._sheet(lambda width: help_lines(palette_of(self), width))

    def _sheet(self, source: Callable[[int], list[Line]]) -> None:
        self.app.push_screen(Sheet(source))

    async def action_quit(self) -> None:
        await self.app.action_quit()
