"""The main screen: the views, details and the lines around them, and what every key does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from textual import on
from textual.events import DescendantFocus
from textual.widgets import Input

from flame.core.analysis.layers import find_layers
from flame.core.analysis.wording import terms_of
from flame.core.errors import FlameError, UsageError
from flame.core.model.frames import Kind
from flame.core.model.metrics import metric_of
from flame.core.model.tree import ORDERS, Arrangement
from flame.core.projection.filters import Filter
from flame.core.projection.levels import default_levels, explain_missing_levels
from flame.core.projection.selection import Selection
from flame.options.config import Config
from flame.options.state import State
from flame.tui.details.collector import Collected
from flame.tui.dialogs.filters import FiltersDialog
from flame.tui.dialogs.levels import LevelsChoice, LevelsDialog, toggled, why_absent
from flame.tui.main import actions
from flame.tui.main.layout import Face
from flame.tui.session.finder import Searched
from flame.tui.session.projector import Projected
from flame.tui.session.query import Query
from flame.tui.session.session import Projection, Session
from flame.tui.shell.actions import Move, QuickFilter, check_actions
from flame.tui.shell.commands import COMMANDS, Command, means_something
from flame.tui.shell.keymap import remapped
from flame.tui.toolkit.lines import Lines, palette_of
from flame.tui.toolkit.scroll_pane import ScrollPane
from flame.tui.toolkit.text import cut, printable
from flame.tui.views.icicle import Icicle
from flame.tui.views.icicle_pane import IciclePane
from flame.tui.views.pane import MOVES, Pane
from flame.tui.views.sandwich_pane import SandwichPane
from flame.tui.views.top_pane import TopPane
from flame.tui.widgets.chips import quick_filter
from flame.tui.widgets.pages import Sheet, coverage_lines, help_lines
from flame.tui.widgets.search_box import SearchBox

_LAYER = 48
PATIENCE = 0.15
"""Seconds that work may take before the status line says that it runs."""


class MainScreen(Face):
    """Shows one loaded trace; ``KEYS`` are its commands."""

    KEYS: ClassVar[Sequence[Command]] = COMMANDS

    def __init__(
        self,
        session: Session,
        shown: Projection,
        state: State | None = None,
        config: Config | None = None,
        keymap: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(session, shown, config or Config(), remapped(self.KEYS, keymap or {}))
        self.keymap = keymap or {}
        self._state = state or State()
        self._query_before: Query | None = None

    def on_mount(self) -> None:
        self._turn_to(self.pane)
        self._take()
        self._restore(self._state)
        if not self.shown.empty:
            self._greet()

    def _greet(self) -> None:
        """Say what is wrong with the trace, or else how to see more in it."""
        warnings, tree = self.session.profile.warnings, self.shown.view.tree
        if lack := explain_missing_levels(self.session.profile, tree.metric, tree.levels):
            self._show(lack, "warning", "L: levels")
        elif warnings:
            more = f"w: all {len(warnings)} notes" if len(warnings) > 1 else "w: notes"
            self._show(printable(warnings[0]), "warning", more)
        elif layers := find_layers(tree):
            said = f"{layers.number} of {cut(layers.name, _LAYER)} stand apart"
            self._show(said, more="L f: as one")

    def _restore(self, state: State) -> None:
        """Come back to the place that ``state`` names, as far as it is there."""
        view, tree = self.shown.view, self.shown.view.tree
        view.zoom_to(view.viewport.zoom_of(tree.find(tuple(state.zoom))))
        view.cursor.select(tree.find(tuple(state.selected or state.zoom)))
        if state.search:
            query = Query(state.search, exact=state.exact)
            self.query_one(SearchBox).show(query)
            self._search(query)
        self.action_show_view(state.view)

    # Projecting

    def _project(self, *candidates: Selection) -> None:
        """Show the first of ``candidates`` that has anything, as soon as it is worked out."""
        self.projector.ask(list(candidates), self.finder.query)
        self.set_timer(PATIENCE, self._say_pending)

    def _change(self, **changes: object) -> None:
        """Show what is wanted with ``changes`` to the selection."""
        self._project(replace(self.wanted, **changes))  # type: ignore[arg-type]

    def _say_pending(self) -> None:
        if self.projector.busy or self.finder.busy:
            self._show("working …")

    @on(Projected)
    def _projected(self, message: Projected) -> None:
        outcome = self.projector.take(message)
        if isinstance(outcome, FlameError):
            self._show(str(outcome), "warning")
        elif outcome is not None:
            self._take()
            found = outcome.found
            if (found.query if found else None) != self.finder.query:
                self._search(self.finder.query)

    @on(Searched)
    def _searched(self, message: Searched) -> None:
        if self.finder.take(message):
            self._show()

    @on(Collected)
    def _collected(self, message: Collected) -> None:
        if self.collector.take(message):
            self.query_one("#details", Lines).update()

    @on(Pane.Changed)
    def _pane_changed(self, message: Pane.Changed) -> None:
        if message.note is None:
            self._follow()
        else:
            self._show(message.note)

    @on(Pane.Filtered)
    def _pane_filtered(self, message: Pane.Filtered) -> None:
        kept = [one for one in self.wanted.where if type(one) is not type(message.filter)]
        self._change(where=(*kept, message.filter))

    @on(Icicle.Hovered)
    def _hovered(self, message: Icicle.Hovered) -> None:
        self._hover = message.node
        self.query_one("#status", Lines).update()

    # Views

    def action_view(self, step: int) -> None:
        place = (self.panes.index(self.pane) + step) % len(self.panes)
        self.action_show_view(self.panes[place].name_)

    def action_show_view(self, name: str) -> None:
        chosen = next((pane for pane in self.panes if pane.name_ == name), self.panes[0])
        if chosen is not self.pane:
            self._turn_to(chosen)
            self.call_after_refresh(self._show)

    def action_sandwich(self) -> None:
        frame = int(self.view.tree.frame[self.view.cursor.node])
        self._sandwich(frame)

    @on(TopPane.Sandwiched)
    def _sandwiched(self, message: TopPane.Sandwiched) -> None:
        self._sandwich(message.frame)

    def action_sass(self) -> None:
        self._show(actions.show_instructions(self))

    @on(IciclePane.Opened)
    def _opened(self) -> None:
        self.action_sass()

    def _sandwich(self, frame: int) -> None:
        pane = self.query_one(SandwichPane)
        pane.subject(frame)
        self.action_show_view(pane.name_)
        self._show()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return means_something(action, parameters, self.pane.name_)

    # Moving and zooming

    def action_move(self, way: str, step: int = 1) -> None:
        """Have the view that is shown make the `Move` called ``way``."""
        self._show(MOVES[Move(way)](self.pane, step))

    def action_select(self, node: int) -> None:
        """Select a frame of the shown tree, from a click on its name."""
        view = self.shown.view
        if not view.viewport.holds(node):
            view.reset()
        view.cursor.select(node)
        if isinstance(self.pane, SandwichPane):
            self.pane.subject(int(view.tree.frame[node]))
        self._show()

    def action_zoom_to(self, node: int) -> None:
        self.shown.view.zoom_to(self.shown.view.viewport.zoom_of(node))
        self.action_show_view(IciclePane.name_)
        self._show()

    def action_undo(self) -> None:
        self._undo(-1, "nothing to undo")

    def action_redo(self) -> None:
        self._undo(1, "nothing to redo")

    def _undo(self, step: int, nothing: str) -> None:
        if self.pane.undo(forward=step > 0):
            self._show()
        elif not self.projector.back(self.finder.query, step):
            self._show(nothing)

    # Searching

    def action_search(self) -> None:
        self.set_focus(self.query_one(SearchBox))

    @on(DescendantFocus, "#search")
    def _search_begins(self) -> None:
        self._query_before = self.finder.query

    @on(Input.Changed, "#search")
    def _search_typed(self, event: Input.Changed) -> None:
        self._search(Query(event.value))

    @on(Input.Submitted, "#search")
    def _search_entered(self) -> None:
        self.set_focus(None)
        view = self.shown.view
        place, _ = view.matches.place_of(view.cursor.node)
        self._show(self.pane.match(1) if view.matches.result and not place else "")

    def action_escape(self) -> None:
        box = self.query_one(SearchBox)
        if box.has_focus:
            self.set_focus(None)
            box.show(self._query_before)
            self._search(self._query_before)
        elif (note := self.pane.escape()) is not None:
            self._show(note)
        elif self.finder.query:
            box.show(None)
            self._search(None)
        else:
            self.shown.view.reset()
            self._show()

    def _search(self, query: Query | None) -> None:
        try:
            self.finder.search(self.shown.view, query)
        except UsageError as error:
            self.finder.search(self.shown.view, None)
            self._show(str(error), "warning")
        else:
            self._show()
            self.set_timer(PATIENCE, self._say_pending)

    def action_match(self, step: int) -> None:
        searched = self.shown.view.matches.result is not None
        self._show(self.pane.match(step) if searched else "no search yet: / begins one")

    def action_same(self) -> None:
        query = Query(self.view.tree.name(self.view.cursor.node), exact=True)
        self.query_one(SearchBox).show(query)
        self._search(query)

    # Filters

    def action_filters(self) -> None:
        view = self.view
        tree, node = view.tree, view.cursor.node
        dialog = FiltersDialog(
            self.session.profile, self.wanted.where, tree.name(node), tree.kind(node)
        )
        self.app.push_screen(dialog, self._set_filters)

    def _set_filters(self, where: tuple[Filter, ...] | None) -> None:
        if where is not None and where != self.wanted.where:
            self._change(where=where)

    def action_unfilter(self, place: int) -> None:
        where = self.wanted.where
        self._change(where=where[:place] + where[place + 1 :])

    def action_quick(self, kind: str) -> None:
        tree, node = self.view.tree, self.view.cursor.node
        if tree.kind(node) == Kind.ROOT:
            self._show("select a frame first: this is the root")
            return
        one = quick_filter(QuickFilter(kind), tree.name(node))
        if one not in self.wanted.where:
            self._change(where=(*self.wanted.where, one))

    # What is shown of the trace

    def action_metric(self, step: int) -> None:
        others = self.session.others(self.wanted, step)
        if others:
            self._project(*map(self._with_own_levels, others))
        else:
            self._show("no other metric in this trace")

    def _with_own_levels(self, selection: Selection) -> Selection:
        """``selection`` with the levels last chosen for the metric's table."""
        table = metric_of(selection.metric or "", self.session.profile.metrics).table
        return replace(selection, levels=self.projector.levels_of(table))

    def action_levels(self) -> None:
        usual = default_levels(self.session.profile, self.shown.metric, self.wanted.naming)
        choice = LevelsChoice(self.shown.view.tree.levels, self.wanted.naming.fold)
        terms = terms_of(self.session.profile)
        dialog = LevelsDialog(choice, usual, self.shown.recorded, terms)
        self.app.push_screen(dialog, self._set_levels)

    def _set_levels(self, choice: LevelsChoice | None) -> None:
        if choice:
            naming = replace(self.wanted.naming, fold=choice.fold)
            self._change(levels=choice.levels, naming=naming)

    def action_level(self, level: str) -> None:
        usual = default_levels(self.session.profile, self.shown.metric, self.wanted.naming)
        levels = toggled(self.wanted.levels or usual, level)
        if level not in self.shown.recorded:
            self._show(why_absent(level))
        elif levels:
            self._change(levels=levels)
        else:
            self._show("the last level stays on")

    def action_invert(self) -> None:
        self._arrange(inverted=not self.wanted.arrangement.inverted)

    def action_collapse(self) -> None:
        self._arrange(collapsed=not self.wanted.arrangement.collapsed)

    def action_sort(self, step: int) -> None:
        note = self.pane.sort(step)
        if note is None:
            place = ORDERS.index(self.wanted.arrangement.order) + step
            self._arrange(order=ORDERS[place % len(ORDERS)])
        else:
            self._show(note)

    def _arrange(self, **changes: object) -> None:
        arrangement: Arrangement = replace(self.wanted.arrangement, **changes)  # type: ignore[arg-type]
        self._change(arrangement=arrangement)

    # Around the views

    def action_details(self) -> None:
        self.toggle_class("-no-details")
        small = self.has_class("-narrow") and self.has_class("-short")
        hidden = small and not self.has_class("-no-details")
        self._show("the details need 100 columns or 22 rows" if hidden else "")

    def action_scroll_details(self, step: int) -> None:
        self.query_one(ScrollPane).scroll(step)

    def action_coverage(self) -> None:
        self.app.push_screen(Sheet(lambda width: coverage_lines(self.session.profile, width)))

    def action_help(self) -> None:
        self.app.push_screen(
            Sheet(lambda width: help_lines(self.commands, palette_of(self), width), wide=True)
        )

    def action_theme(self, step: int) -> None:
        self._show(actions.next_theme(self, step))

    def action_palette(self) -> None:
        self.app.action_command_palette()

    # Handing over

    def state(self) -> State:
        """Where the app is, as far as the selection does not say it."""
        view, query = self.shown.view, self.finder.query
        return State(
            view=self.pane.name_,
            zoom=list(view.tree.names(view.viewport.zoom.node)),
            selected=list(view.tree.names(view.cursor.node)),
            search=query.text if query else "",
            exact=bool(query and query.exact),
        )

    def action_copy(self, what: str) -> None:
        self._show(actions.copy(self, what))

    def action_source(self) -> None:
        self._show(actions.open_source(self))

    def action_export(self) -> None:
        actions.export(self, self._show)

    def action_screenshot(self) -> None:
        self._show(actions.screenshot(self))

    async def action_quit(self) -> None:
        await self.app.action_quit()


check_actions(MainScreen, (command.action for command in COMMANDS))
