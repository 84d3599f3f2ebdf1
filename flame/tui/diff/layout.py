"""Lay out the main screen for a comparison."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Horizontal

from flame.core.analysis.words.formats import terms_of
from flame.core.model.tree import Order
from flame.tui.details.details_pane import DetailsPane
from flame.tui.diff.details_pane import DiffDetailsPane
from flame.tui.diff.header import change_line, title_line
from flame.tui.diff.report_pane import DiffReportPane
from flame.tui.diff.session import DiffProjection
from flame.tui.diff.timeline_pane import DiffTimelinePane
from flame.tui.diff.top_pane import DiffTopPane
from flame.tui.main.layout import MainLayout
from flame.tui.report.pane import ReportPane
from flame.tui.report.worker import ReportWorker
from flame.tui.session.projector import Projector
from flame.tui.session.session import Projection
from flame.tui.timeline.pane import TimelinePane
from flame.tui.toolkit.lines import Line, Lines, palette_of
from flame.tui.views.icicle_pane import IciclePane
from flame.tui.views.pane import Pane
from flame.tui.views.sandwich_pane import SandwichPane
from flame.tui.widgets.screen_lines import HeaderLine


class DiffHeaderLine(HeaderLine):
    """Show what is compared, and how it is projected."""

    def _header(self, width: int, height: int) -> list[Line]:
        shown = self._projection
        if self._trace is None or not isinstance(shown, DiffProjection):
            return []
        title, profile = self._trace
        return [title_line(title, shown, palette_of(self), width, terms_of(profile))]


class ChangeLine(Lines):
    """Show how much all that is compared has changed, on which basis, and how that is drawn."""

    def __init__(self) -> None:
        super().__init__(self._change, id="change")
        self._compared: DiffProjection | None = None
        self._over_time = False

    def turn_to(self, pane: Pane) -> None:
        """Say of a timeline whose it is, and of other views how wide frames are."""
        self._over_time = isinstance(pane, DiffTimelinePane)
        self.update()

    def show(self, shown: DiffProjection) -> None:
        """Draw the change of ``shown``."""
        self._compared = shown
        self.update()

    def _change(self, width: int, height: int) -> list[Line]:
        if self._compared is None:
            return []
        return [change_line(self._compared, palette_of(self), width, self._over_time)]


class DiffLayout(MainLayout):
    """Hold the widgets of a comparison."""

    PANES: ClassVar[tuple[type[Pane], ...]] = (IciclePane, SandwichPane, DiffTopPane)

    def _make_timeline(self, shown: Projection) -> TimelinePane:
        assert isinstance(shown, DiffProjection)
        return DiffTimelinePane(shown)

    def _make_report(self, shown: Projection, reports: ReportWorker) -> ReportPane:
        return DiffReportPane(shown, reports)

    def _make_header(self, usual_order: Order) -> HeaderLine:
        self.change = ChangeLine()
        return DiffHeaderLine(usual_order)

    def _make_details(self) -> DetailsPane:
        return DiffDetailsPane()

    def compose(self) -> ComposeResult:
        yield self.header
        yield self.change
        with Horizontal(id="place"):
            yield self.tabs
            yield self.crumbs
            yield self.folds
            yield self.recalled
        yield self.chips
        yield self.body

    def learn(self) -> None:
        """Show which changes are beyond noise: that has just been found out."""
        self.change.update()
        self.details.update()
        for pane in self.panes:
            if isinstance(pane, DiffTopPane):
                pane.learn()

    def turn_to(self, pane: Pane) -> None:
        super().turn_to(pane)
        self.change.turn_to(pane)

    def show_projection(self, projector: Projector) -> None:
        session, shown = projector.session, projector.shown
        assert isinstance(shown, DiffProjection)
        self.header.show(session.inputs.title, session.profile, shown)
        self.change.show(shown)
        self.chips.show(projector.wanted.where, session.profile)
        self.folds.show(shown.folds_numbers)
        self.empty.update()
