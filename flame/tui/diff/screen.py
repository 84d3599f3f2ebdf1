"""Show on the main screen what has changed between two sides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from textual import on
from textual.binding import BindingType

from flame.core.compare.basis import Per
from flame.core.compare.colouring import Measured
from flame.core.compare.noise.beyond_noise import BeyondNoise, find_beyond_noise, noise_marks
from flame.core.compare.sides import Sides
from flame.options.config import Config
from flame.options.state import AppState
from flame.tui.diff.header import LEGEND
from flame.tui.diff.layout import DiffLayout
from flame.tui.diff.notes import note_lines
from flame.tui.diff.report_pane import ComparisonReports
from flame.tui.diff.selection import WIDTHS, DiffSelection, TimelineSide
from flame.tui.diff.session import DiffProjection, DiffSession
from flame.tui.main.layout import MainLayout
from flame.tui.main.messages import Greeting
from flame.tui.main.screen import MainScreen
from flame.tui.report.source import ReportSource
from flame.tui.session.wording import lasts
from flame.tui.shell.actions import check_actions
from flame.tui.shell.base_app import BaseApp
from flame.tui.shell.command import Command
from flame.tui.shell.commands import DIFF_COMMANDS, bindings
from flame.tui.shell.start import Start
from flame.tui.toolkit.clipboard import copied
from flame.tui.toolkit.dialog.page import Page
from flame.tui.toolkit.latest import Answer, LatestRequest
from flame.tui.toolkit.lines import Line
from flame.tui.toolkit.palette import Palette
from flame.tui.widgets.legend import legend_lines


class FoundNoise(Answer[DiffProjection, BeyondNoise]):
    """Bring what of a comparison has changed beyond noise."""


class DiffScreen(MainScreen, inherit_bindings=False):
    """Show a comparison; ``words`` are those of the command line that name what is compared."""

    KEYS: ClassVar[Sequence[Command]] = DIFF_COMMANDS
    LAYOUT: ClassVar[type[MainLayout]] = DiffLayout
    SOURCE: ClassVar[ReportSource] = ComparisonReports()
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(DIFF_COMMANDS)]

    def __init__(
        self,
        session: DiffSession,
        shown: DiffProjection,
        words: Sequence[str],
        state: AppState | None = None,
        config: Config | None = None,
        keymap: Mapping[str, str] | None = None,
        start: Start | None = None,
    ) -> None:
        super().__init__(session, shown, state, config, keymap, start)
        self._words = words
        self._noise = LatestRequest(_find_noise, FoundNoise, self.post_message, in_turn=True)

    @property
    def _kind(self) -> str:
        return ""  # the levels of a comparison are those that both sides have

    @property
    def _compared(self) -> DiffProjection:
        shown = self.shown
        assert isinstance(shown, DiffProjection)
        return shown

    @property
    def _chosen(self) -> DiffSelection:
        """What was last asked for."""
        wanted = self.wanted
        assert isinstance(wanted, DiffSelection)
        return wanted

    def _greeting(self) -> Greeting | None:
        left = self._compared.comparison.left_out
        words = "; ".join(f"without {level}: {why}" for level, why in left)
        return Greeting(words, "warning", "w: notes") if words else None

    # What is beyond noise

    @property
    def busy(self) -> bool:
        return super().busy or self._noise.busy

    def look_for_findings(self) -> None:
        """Find out what has changed beyond noise: findings are of one trace."""
        self._noise.ask(self._compared)

    @on(FoundNoise)
    def _found_noise(self, message: FoundNoise) -> None:
        """Draw what has been found: of what is no longer shown it is kept."""
        self._noise.take(message)
        marks, found = noise_marks(message.request.comparison), message.result()
        if marks.found is None:
            marks.found = found
            assert isinstance(self.parts, DiffLayout)
            self.parts.learn()
            self._follow()

    # What is compared, and how it is drawn

    def action_basis(self, step: int) -> None:
        """Compare on the next basis that both sides have."""
        session, here = self.session, self._compared.comparison.basis.kind
        assert isinstance(session, DiffSession)
        ring = [per for per in session.bases if per != "activity" or lasts(self.shown.metric)]
        at = next((place for place, per in enumerate(ring) if _kind_of(per) == here), 0)
        pers = [ring[(at + step * far) % len(ring)] for far in range(1, len(ring))]
        self._project(*(replace(self._chosen, per=per) for per in pers))

    def action_width(self, step: int) -> None:
        """Draw the widths of another side, or of both, or the timeline of the other side."""
        if self.pane is self.parts.timeline:
            side: TimelineSide = "new" if self._chosen.timeline == "base" else "base"
            self._project(replace(self._chosen, timeline=side))
            return
        at = WIDTHS.index(self._chosen.width)
        others = [WIDTHS[(at + step * far) % len(WIDTHS)] for far in range(1, len(WIDTHS))]
        self._project(*(replace(self._chosen, width=width) for width in others))

    def action_all_changes(self) -> None:
        """Colour all changes, or those alone that may be more than chance."""
        self._project(replace(self._chosen, all_changes=not self._chosen.all_changes))

    def action_measure(self) -> None:
        """Colour by the change of what is below a frame too, or of itself alone."""
        other: Measured = "self" if self._chosen.measured == "total" else "total"
        self._project(replace(self._chosen, measured=other))

    # Other words than for a trace

    def action_sass(self) -> None:
        """Show the instructions of the selected frame's kernel on both sides."""
        from flame.tui.diff.sampled.listed import listed_sides
        from flame.tui.diff.sampled.own_groups import Places

        view = self.view
        found = listed_sides(self._compared, Places.of(self._compared, view, view.cursor.node))
        if isinstance(found, str):
            self._show(found)
            return
        from flame.tui.sass.screen import SassScreen

        over = SassScreen(self.keymap, self.config.editor, self.session.inputs, *found)
        assert isinstance(self.app, BaseApp)
        self.app.call_later(self.app.present, over)

    def action_coverage(self) -> None:
        sides, comparison = self._sides, self._compared.comparison
        self.app.push_screen(Page(lambda width: [*note_lines(sides, comparison, width)]))

    @property
    def _sides(self) -> Sides:
        assert isinstance(self.session, DiffSession)
        return self.session.sides

    def _reading(self, palette: Palette, width: int) -> list[Line]:
        return legend_lines(LEGEND, palette, width)

    def action_copy(self, what: str) -> None:
        if what != "command":
            super().action_copy(what)
            return
        from flame.tui.diff.command_line import diff_line

        session = self.session
        line = diff_line(self._words, session.options, self._compared, self.state(), self.config)
        self._show(copied(self.app, line, "the command line of this view"))


def _find_noise(shown: DiffProjection) -> Iterator[BeyondNoise]:
    """Find out what has changed beyond noise, and in which colours that is drawn."""
    found = find_beyond_noise(shown.comparison)
    shown.colouring.strength_by(found)
    yield found


def _kind_of(per: Per) -> str:
    return per if isinstance(per, str) else "unit"


check_actions(DiffScreen, (command.action for command in DIFF_COMMANDS))
