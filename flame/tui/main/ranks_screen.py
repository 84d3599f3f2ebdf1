"""Show a summary of ranks on the main screen, and lead to the trace of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import msgspec
from textual import on
from textual.binding import BindingType

from flame.core.frame import COLOURS, IMBALANCE
from flame.core.model.tree import Order
from flame.core.rank_summary.summary import RankSummary
from flame.options.config import Config
from flame.options.state import AppState
from flame.tui.main.layout import MainLayout
from flame.tui.main.messages import Greeting
from flame.tui.main.projection_screen import DELAY
from flame.tui.main.ranks_layout import RanksLayout
from flame.tui.main.screen import MainScreen
from flame.tui.main.selections import replace_filter
from flame.tui.ranks.facts import RankFacts, RankSubject, rank_facts
from flame.tui.ranks.header import LEGEND
from flame.tui.ranks.imbalance import deviation_words
from flame.tui.ranks.open_rank import open_rank
from flame.tui.ranks.pane import RanksPane
from flame.tui.ranks.rank_file import view_words
from flame.tui.ranks.session import RanksProjection, RanksSession, labels_of, without_ranks
from flame.tui.ranks.waiting import Waiting, waiting_of
from flame.tui.shell.actions import Action, check_actions
from flame.tui.shell.command import Command
from flame.tui.shell.commands import RANKS_COMMANDS, bindings
from flame.tui.shell.start import Start
from flame.tui.toolkit.background import call_once
from flame.tui.toolkit.latest import Answer, LatestRequest
from flame.tui.toolkit.lines import Line, Piece
from flame.tui.toolkit.palette import Palette
from flame.tui.toolkit.text import cut_start, printable
from flame.tui.views.icicle_pane import IciclePane
from flame.tui.views.pane import Pane
from flame.tui.views.top_pane import TopPane
from flame.tui.widgets.legend import legend_lines

_COLOURS = ("level", IMBALANCE, "category")
"""In the order in which a key turns them."""

assert {*_COLOURS} == {*COLOURS, IMBALANCE}


class Worst(Answer[RankSubject, "RankFacts | None"]):
    """Bring how the selected frame is spread over ranks."""


class Judged(Answer[RankSummary, Waiting]):
    """Bring what collectives tell of the ranks."""


def _judge(summary: RankSummary) -> Iterator[Waiting]:
    yield waiting_of(summary)


class RanksScreen(MainScreen, inherit_bindings=False):
    """Show ranks together, how far they are apart, and each by itself."""

    KEYS: ClassVar[Sequence[Command]] = RANKS_COMMANDS
    LAYOUT: ClassVar[type[MainLayout]] = RanksLayout
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(RANKS_COMMANDS)]
    parts: RanksLayout

    def __init__(
        self,
        session: RanksSession,
        shown: RanksProjection,
        state: AppState | None = None,
        config: Config | None = None,
        keymap: Mapping[str, str] | None = None,
        start: Start | None = None,
    ) -> None:
        state = state and msgspec.structs.replace(state, section="")  # there is no report
        super().__init__(session, shown, state, config, keymap, start)
        self._finding = LatestRequest(rank_facts, Worst, self.post_message, in_turn=True)
        self._untouched = True
        self._judging = LatestRequest(_judge, Judged, self.post_message, in_turn=True)

    def _clear_note(self) -> None:
        self._untouched = False
        super()._clear_note()

    @property
    def _ranks(self) -> RanksSession:
        session = self.session
        assert isinstance(session, RanksSession)
        return session

    @property
    def _of_ranks(self) -> RanksProjection:
        shown = self.shown
        assert isinstance(shown, RanksProjection)
        return shown

    def _greeting(self) -> Greeting | None:
        lost = self._ranks.summary.lost
        if lost:
            word = "rank is" if len(lost) == 1 else "ranks are"
            first = printable(lost[0].path)
            return Greeting(f"{len(lost):,} {word} lacking: {first}", "warning", "w: which")
        return super()._greeting()

    def look_for_findings(self) -> None:
        """Look for ranks for which others wait; a report is of activities."""
        if self._judging.latest is None:
            self._judging.ask(self._ranks.summary)

    @on(Judged)
    def _judged(self, message: Judged) -> None:
        self._judging.take(message)
        late = message.result().late_words(labels_of(message.request))
        self.parts.ranks_header.show_late(len(late))
        if late and self._untouched and not message.request.lost:
            self._show(late[0], "warning", "p: ranks")

    @property
    def busy(self) -> bool:
        return super().busy or self._finding.busy or self._judging.busy

    def _turn_to(self, pane: Pane) -> None:
        super()._turn_to(pane)
        self.set_class(pane is self.parts.ranks, "-report")  # no details, which are of a frame

    def _as_it_is(self, command: Command) -> Command:
        if command.action == Action.WORST_RANK and self._of_ranks.places is not None:
            return command._replace(label="all ranks")
        return super()._as_it_is(command)

    def _footer_commands(self) -> list[Command]:
        return [self._as_it_is(one) for one in super()._footer_commands()]

    def _status_without_note(self, width: int) -> Line:
        if self.pane is self.parts.ranks:
            return [Piece(cut_start(f" {self.pane.hint()}", width))]
        return super()._status_without_note(width)

    def _go_to_match(self) -> None:
        if self.pane is self.parts.ranks and self.finder.query:
            self._show(self.pane.match(1))
        else:
            super()._go_to_match()

    # Ranks

    def action_worst_rank(self) -> None:
        """Show the rank alone that is farthest off in the selected frame, or all ranks again."""
        shown = self._of_ranks
        if shown.places is not None:
            self._show_all_ranks()
            return
        if not shown.can_compare:
            self._show("each rank has frames of its own here: R puts them together again")
            return
        view = self.view
        facts = self.parts.ranks_details.facts_of(shown, view)
        if facts is not None:
            self._go_to_worst(facts)
        else:
            self._finding.ask(RankSubject(shown, view, view.cursor.node))
            call_once(self, DELAY, self._say_finding)

    def _say_finding(self) -> None:
        if self._finding.busy:
            self._show("working …")

    @on(Worst)
    def _found(self, message: Worst) -> None:
        current, facts = self._finding.take(message), message.result()
        if current and facts is not None:
            self._go_to_worst(facts)

    def _go_to_worst(self, facts: RankFacts) -> None:
        place = int(facts.spread.farthest[0])
        if place < 0:
            self._show("all ranks have the same of this frame")
            return
        far = deviation_words(facts.deviation_of(place))
        self._show_rank(place, f"{far} of the median here" if far else "alone has this frame")

    def action_one_rank(self, place: int) -> None:
        """Show the rank at ``place`` alone."""
        self._show_rank(place)

    @on(RanksPane.Chosen)
    def _chosen(self, message: RanksPane.Chosen) -> None:
        self._show_rank(message.place)
        self.action_show_view(IciclePane.name_)

    def _show_rank(self, place: int, why: str = "") -> None:
        session = self._ranks
        opens = f"a: {view_words(session.summary.info[place].path)}"
        label = labels_of(session.summary)[place]
        note = " · ".join(filter(None, (label, why, "r: all ranks", opens)))
        self._project(replace_filter(self.wanted, session.rank_filter(place)), note=note)

    def _show_all_ranks(self) -> None:
        self._project(replace(self.wanted, where=without_ranks(self.wanted.where)))

    def action_open_rank(self) -> None:
        """Open the trace of the rank that is shown, or selected in the view of ranks."""
        places = self._of_ranks.places
        if self.pane is self.parts.ranks:
            place = self.parts.ranks.place
        elif places is not None and len(places) == 1:
            place = places[0]
        else:
            self._show("which rank? r goes to the worst in this frame, then a opens its trace")
            return
        selection, state = self.shown.selection, self.state()
        self._show(open_rank(self.app, self._ranks, place, selection, state))

    def _escape(self) -> None:
        """Leave what there is to leave; of a rank alone the last thing is that."""
        viewport = self.shown.view.viewport
        zoomed = viewport.zoom != viewport.zoom_of(0)
        here = isinstance(self.pane, IciclePane | TopPane)
        if here and self._of_ranks.places is not None and not (zoomed or self.finder.query):
            self._show_all_ranks()
        elif self.pane is self.parts.ranks and not self.finder.query:
            self.action_show_view(IciclePane.name_)
        else:
            super()._escape()

    # Other words than for a trace

    def action_colours(self) -> None:
        """Colour by level, by the imbalance of ranks, by category of kernels."""
        at = _COLOURS.index(self.wanted.colours)
        others = _COLOURS[at + 1 :] + _COLOURS[:at]
        if others[0] == IMBALANCE and not self._of_ranks.can_compare:
            others = others[1:]
        self._project(replace(self.wanted, colours=others[0]))

    def action_sort(self, step: int) -> None:
        """Sort what the view has of its own, or siblings by weight or name: nothing has a start."""
        note = self.pane.sort(step)
        if note is not None:
            self._show(note)
            return
        layout = self.wanted.layout
        order: Order = "weight" if layout.order == "name" else "name"
        self._project(replace(self.wanted, layout=replace(layout, order=order)))

    def _reading(self, palette: Palette, width: int) -> list[Line]:
        return legend_lines(LEGEND, palette, width)


check_actions(RanksScreen, (command.action for command in RANKS_COMMANDS))
