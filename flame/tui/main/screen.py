"""Show a trace on the main screen, and do what every key asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message

from flame.core.analysis.iterations import measure_iterations
from flame.core.analysis.words.formats import reworded, terms_of
from flame.core.model.tree import Order
from flame.options.config import Config
from flame.options.state import AppState
from flame.tui.main import actions, selections
from flame.tui.main.layout import MainLayout
from flame.tui.main.messages import Greeting, empty_lines, greeting
from flame.tui.main.place import go_to, state_of
from flame.tui.main.reporting_screen import ReportingScreen
from flame.tui.main.selection_screen import applied
from flame.tui.session.glossary import WORDS
from flame.tui.session.query import Query
from flame.tui.session.recall import SETTINGS, Remembering, kind_of, misfit, usual_again
from flame.tui.session.session import Projection, Session
from flame.tui.shell.actions import Action, Move, check_actions
from flame.tui.shell.base_app import BaseApp
from flame.tui.shell.command import Command
from flame.tui.shell.commands import COMMANDS, bindings, means_something
from flame.tui.shell.keymap import remapped
from flame.tui.shell.start import Start
from flame.tui.toolkit.background import Done, in_background
from flame.tui.toolkit.dialog.page import Page
from flame.tui.toolkit.lines import Line, Piece, RowView, palette_of
from flame.tui.toolkit.palette import Palette
from flame.tui.toolkit.text import cut_start
from flame.tui.toolkit.themes import AUTO
from flame.tui.views.icicle import Icicle
from flame.tui.views.icicle_pane import IciclePane
from flame.tui.views.pane import Pane
from flame.tui.views.sandwich_pane import SandwichPane
from flame.tui.views.top_pane import TopPane
from flame.tui.widgets.header import frame_status, search_status
from flame.tui.widgets.help_page import HelpPage, word_lines
from flame.tui.widgets.pages import coverage_lines, help_lines


class MainScreen(ReportingScreen):
    """Show one loaded trace by the commands ``KEYS``, laid out by ``LAYOUT``.

    Siblings are in ``USUAL_ORDER`` at first.
    """

    KEYS: ClassVar[Sequence[Command]] = COMMANDS
    LEAST = (20, 5)
    USUAL_ORDER: ClassVar[Order] = "weight"
    ADAPTS: ClassVar[bool] = True
    LAYOUT: ClassVar[type[MainLayout]] = MainLayout
    BINDINGS: ClassVar[list[BindingType]] = [*bindings()]

    class Settled(Message):
        """Say that what is worked out of the trace after the first picture is there."""

    def __init__(
        self,
        session: Session,
        shown: Projection,
        state: AppState | None = None,
        config: Config | None = None,
        keymap: Mapping[str, str] | None = None,
        start: Start | None = None,
    ) -> None:
        super().__init__(session, shown, remapped(self.KEYS, keymap or {}))
        self.config = config or Config()
        self.keymap = keymap or {}
        self._recalled, self.memory = (start or Start()).recalled, (start or Start()).memory
        self._remembering = Remembering(self.memory, shown, self._kind)
        self.parts = self.LAYOUT(shown, self.USUAL_ORDER, self._empty, self.ADAPTS, self.reports)
        self.parts.details.remarks = self.remarks
        self.pane = self.parts.panes[0]
        self._state = state or AppState()
        self._hover = -1
        self._has_steps: bool | None = None
        self.set_class(not self.config.details, "-no-details")

    @property
    def pane_name(self) -> str:
        """How options and states spell the view that is shown."""
        return self.pane.name_

    @property
    def busy(self) -> bool:
        """Whether something that was asked for is being worked out."""
        looking = self._has_steps is None or self.reports.busy
        return self.projector.busy or self.finder.busy or self.pane.busy or looking

    # Composition

    def compose(self) -> ComposeResult:
        yield from self.parts.compose()
        yield from self._compose_bottom()

    def on_mount(self) -> None:
        self._turn_to(self.pane)
        self._take()
        go_to(self.shown.view, self._state)
        if self._state.section:
            self.parts.report.choose(self._state.section, self._state.row)
        if self._state.search:
            self._search_for(Query(self._state.search, exact=self._state.exact))
        self.action_show_view(self._state.view)
        self._look_for_steps()
        greeted = self._greeting()
        if greeted and not self.shown.empty:
            self._show(*greeted)

    def _greeting(self) -> Greeting | None:
        """What is to be said at once of what is shown."""
        profile, shown = self.session.profile, self.shown
        lack = misfit(self._recalled, profile, shown.selection) if self._kind else ""
        return greeting(profile, shown.view.tree, lack)

    def _look_for_steps(self) -> None:
        """Find out whether the trace has steps, and measure them: it may take a while."""
        profile = self.session.profile
        in_background(lambda: len(measure_iterations(profile)), 0, self.post_message)

    @on(Done)
    def _looked_for_steps(self, message: Done) -> None:
        self._has_steps = message.result() != 0
        self.key_line.update()
        self.post_message(self.Settled())
        self.look_for_findings()

    def _empty(self, width: int, height: int) -> list[Line]:
        return empty_lines(self.session.profile, self.shown.metric, width)

    def _status(self, width: int, height: int) -> list[Line]:
        if self._hover >= 0:
            return [frame_status(self.view, self._hover, width)]
        return super()._status(width, height)

    def _status_without_note(self, width: int) -> Line:
        searched = self.shown.view.matches.result is not None
        if self.pane.hint() and (not searched or self.pane is self.parts.report):
            return [Piece(cut_start(f" {self.pane.hint()}", width))]
        return search_status(self.view if searched else self.pane.described, width)

    def _footer_commands(self) -> list[Command]:
        missing: set[str] = set() if self.session.is_sampled else {Action.SASS}
        missing |= set() if len(self.view.layout.joined.chains) else {Move.CHAIN()}
        if not self._has_steps:
            missing.add(Action.STEPS)
        elif not self.shown.view.viewport.zoom.node:
            missing.add(Move.OUT())  # which leaves room for the steps on 80 columns
        kept = [one for one in super()._footer_commands() if one.action not in missing]
        reports = self.pane is self.parts.report or self.came_from_report
        other = self._has_steps or reports or self.pane.gap_label()
        return [self._as_it_is(one) for one in kept] if other else kept

    def _as_it_is(self, command: Command) -> Command:
        """``command`` by what it does to what is selected, or after a jump from the report."""
        label = self.pane.enter_label() if command.action == Move.ENTER() else ""
        label = self.pane.gap_label() if command.action == Move.LONGEST_GAP(1) else label
        if command.action == Action.ESCAPE and self.came_from_report:
            label = "report"
        return command._replace(label=label) if label else command

    # Showing

    def _follow(self) -> None:
        self._hover = -1
        self.parts.show_cursor(self.projector, self.pane)
        self.key_line.update()
        self.status_line.update()

    @property
    def _kind(self) -> str:
        """The kind of traces for which levels are remembered; empty where they are not."""
        return kind_of(self.session.profile)

    def _take(self) -> None:
        """Show a projection that has just arrived."""
        self._remembering.follow(self.shown)
        self.set_class(self.shown.empty, "-empty")
        self._colour()
        self._reach_goal()
        self._show(self._promised)
        self._promised = ""
        self.parts.show_projection(self.projector)
        self.parts.recalled.display = self._is_recalled
        self._show_findings()
        if self._has_steps is not None:
            self.look_for_findings()

    @property
    def _is_recalled(self) -> bool:
        """Whether the picture is as it is because of what is remembered from earlier starts."""
        shown, names = self.shown.selection, self.config.kernel_names
        is_remembered = bool(self.memory.preferences.names)
        return is_remembered and usual_again(self._recalled, shown, names, self._kind) != shown

    def _colour(self) -> None:
        """Draw what ran on a GPU in the colours that are asked for."""
        by_category = self.shown.selection.colours == "category"
        if isinstance(self.app, BaseApp) and self.app.by_category != by_category:
            self.app.by_category = by_category
            for view in self.query(RowView):
                view.restyle()

    def _turn_to(self, pane: Pane) -> None:
        self.pane = pane
        self.set_class(pane is self.parts.report, "-report")
        self.parts.turn_to(pane)
        self.key_line.update()

    @on(Pane.Changed)
    def _pane_changed(self, message: Pane.Changed) -> None:
        if message.note is None:
            self._follow()
        else:
            self._show(message.note)

    @on(Pane.Filtered)
    def _pane_filtered(self, message: Pane.Filtered) -> None:
        self._project(selections.replace_filter(self.wanted, message.filter))

    @on(Pane.StepsAsked)
    def _steps_asked(self) -> None:
        self.action_steps()

    @on(Icicle.Hovered)
    def _hovered(self, message: Icicle.Hovered) -> None:
        self._hover = message.node
        self.status_line.update()

    # Views

    action_sass = applied(actions.show_instructions)

    def action_view(self, step: int) -> None:
        self.action_show_view(self.parts.pane_after(self.pane, step).name_)

    def action_show_view(self, name: str) -> None:
        pane = self.parts.pane_named(name)
        self.forget_jump(name)
        if pane is not self.pane:
            if isinstance(self.app, BaseApp):
                self.app.hold()
            self._turn_to(pane)
            self.call_after_refresh(self._show_view)

    def _show_view(self) -> None:
        """Show what is in the view, now that it has its size, and draw all of it."""
        self._show()
        if isinstance(self.app, BaseApp):
            pane = self.pane
            self.app.release_when_ready(lambda: not pane.awaits_rows)

    def action_sandwich(self) -> None:
        self._sandwich(int(self.view.tree.frame[self.view.cursor.node]))

    @on(TopPane.Sandwiched)
    def _sandwiched(self, message: TopPane.Sandwiched) -> None:
        self._sandwich(message.frame)

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

    action_move = applied(actions.move)

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

    def _go_to_match(self) -> None:
        view = self.shown.view
        place, _ = view.matches.place_of(view.cursor.node)
        self._show(self.pane.match(1) if view.matches.result and not place else "")

    def _escape(self) -> None:
        if self._go_back():
            return
        if (note := self.pane.escape()) is not None:
            self._show(note)
        elif self.finder.query:
            self._search_for(None)
        else:
            self.shown.view.reset()
            self._show()

    def action_match(self, step: int) -> None:
        searched = self.shown.view.matches.result is not None
        self._show(self.pane.match(step) if searched else "no search yet: / begins one")

    def action_same(self) -> None:
        self._search_for(Query(self.view.tree.name(self.view.cursor.node), exact=True))

    # Around the views

    def action_details(self) -> None:
        self.toggle_class("-no-details")
        small = self.has_class("-narrow") and self.has_class("-short")
        hidden = small and not self.has_class("-no-details")
        self.memory.remember(details=False if self.has_class("-no-details") else None)
        self._show("the details need 100 columns or 22 rows" if hidden else "")

    def action_forget(self) -> None:
        """Forget all settings, and show as usual what they changed."""
        forgotten = self.memory.forget()
        if forgotten.theme is not None and isinstance(self.app, BaseApp):
            self.app.theme = self.app.theme_of(AUTO)
        if forgotten.details is not None:
            self.remove_class("-no-details")
        words = ", ".join(SETTINGS[name] for name in forgotten.names)
        note = f"forgotten: {words}" if words else "nothing is remembered"
        usual = usual_again(forgotten, self.wanted, self.config.kernel_names, self._kind)
        if usual == self.wanted:
            self._show(note)
        else:
            self._project(usual, note=note)

    def action_coverage(self) -> None:
        self.app.push_screen(Page(lambda width: coverage_lines(self.session.profile, width)))

    def _help(self, width: int) -> list[Line]:
        terms = terms_of(self.session.profile)
        palette = palette_of(self)
        keys = help_lines(self.commands, palette, width, terms, self._reading(palette, width))
        return [*keys, *word_lines(terms, width)]

    def _reading(self, palette: Palette, width: int) -> list[Line] | None:
        """How to read the picture; None where it is the tree of one trace."""
        return None

    def said(self, text: str) -> str:
        """Say ``text``, which speaks of ranges in general, in the words of the trace."""
        return reworded(text, terms_of(self.session.profile))

    def action_words(self, word: str = WORDS) -> None:
        """Explain all words on the screens, beginning at ``word``."""
        self.app.push_screen(HelpPage(self._help, word))

    # Handing over

    action_copy = applied(actions.copy)
    action_source = applied(actions.open_source)
    action_screenshot = applied(actions.screenshot)

    def state(self) -> AppState:
        """Tell where the app is, as far as the selection does not say it."""
        return state_of(self.pane.name_, self.shown.view, self.finder.query, self.pane.section)

    def action_export(self) -> None:
        actions.export(self, self._show)

    async def action_quit(self) -> None:
        await self.app.action_quit()


check_actions(MainScreen, (command.action for command in COMMANDS))
