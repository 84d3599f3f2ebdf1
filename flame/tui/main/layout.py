"""Lay out the main screen: the views, the details, and the lines above them."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Horizontal

from flame.core.analysis.words.memory import moment_words
from flame.core.model.tree import Order
from flame.tui.details.details_pane import DetailsPane
from flame.tui.main.body import Body
from flame.tui.report.pane import ReportPane
from flame.tui.report.worker import ReportWorker
from flame.tui.session.projector import Projector
from flame.tui.session.session import Projection
from flame.tui.timeline.pane import TimelinePane
from flame.tui.toolkit.lines import Line, Lines
from flame.tui.views.busy_line import BusyLine
from flame.tui.views.icicle_pane import IciclePane
from flame.tui.views.pane import Pane
from flame.tui.views.sandwich_pane import SandwichPane
from flame.tui.views.top_pane import TopPane
from flame.tui.widgets.screen_lines import (
    Breadcrumb,
    FilterChips,
    FoldChip,
    HeaderLine,
    RecalledChip,
    ViewTabs,
)

Composer = Callable[[int, int], list[Line]]
"""Composes lines for a width and height."""


class MainLayout:
    """Hold the widgets of the main screen; ``empty`` composes the lines where there is no frame.

    ``usual_order`` is that of siblings at first; the layout ``adapts`` to shallow trees.
    ``reports`` works out the report.
    """

    PANES: ClassVar[tuple[type[Pane], ...]] = (IciclePane, SandwichPane, TopPane)
    """Views that need no more than what is shown."""

    def __init__(
        self,
        shown: Projection,
        usual_order: Order,
        empty: Composer,
        adapts: bool,
        reports: ReportWorker,
    ) -> None:
        self.timeline = self._make_timeline(shown)
        self.report = self._make_report(shown, reports)
        self.panes: tuple[Pane, ...] = (
            *(kind(shown) for kind in self.PANES),
            *self._panes_of_rows,
        )
        self.header = self._make_header(usual_order)
        self.busy = BusyLine(id="busy")
        self.tabs = ViewTabs({pane.name_: pane.title for pane in self.panes})
        self.crumbs = Breadcrumb()
        self.folds = FoldChip()
        self.recalled = RecalledChip()
        self.chips = FilterChips()
        self.details = self._make_details()
        self.empty = Lines(empty, id="empty")
        self.body = Body(self.panes, self.details, self.empty, adapts)

    @property
    def _panes_of_rows(self) -> tuple[Pane, ...]:
        """Views that need the rows of a trace."""
        return self.timeline, self.report

    def _make_timeline(self, shown: Projection) -> TimelinePane:
        return TimelinePane(shown)

    def _make_report(self, shown: Projection, reports: ReportWorker) -> ReportPane:
        return ReportPane(shown, reports)

    def _make_header(self, usual_order: Order) -> HeaderLine:
        return HeaderLine(usual_order)

    def _make_details(self) -> DetailsPane:
        return DetailsPane()

    def compose(self) -> ComposeResult:
        """Yield the widgets from the top to the views."""
        yield self.header
        yield self.busy
        with Horizontal(id="place"):
            yield self.tabs
            yield self.crumbs
            yield self.folds
            yield self.recalled
        yield self.chips
        yield self.body

    def pane_named(self, name: str) -> Pane:
        """Return the view called ``name``, the first one if none is called so."""
        return next((pane for pane in self.panes if pane.name_ == name), self.panes[0])

    def pane_after(self, pane: Pane, step: int) -> Pane:
        """Return the view ``step`` further than ``pane``."""
        return self.panes[(self.panes.index(pane) + step) % len(self.panes)]

    def show_projection(self, projector: Projector) -> None:
        """Show in the lines what is projected, and by which filters."""
        session = projector.session
        self.header.show(session.inputs.title, session.profile, projector.shown)
        self.busy.show(session.profile, projector.shown.selection.where)
        moment = moment_words(session.profile, projector.shown.selection)
        self.chips.show(projector.wanted.where, session.profile, moment)
        self.folds.show(projector.shown.folds_numbers)
        self.empty.update()

    def show_cursor(self, projector: Projector, pane: Pane) -> None:
        """Show in the lines and details which frame is selected in ``pane``."""
        shown = projector.shown
        pane.show(shown)
        self.crumbs.show(shown.view)
        self.details.show(shown.profile, shown, pane.described, pane.name_)
        self.body.fit(pane)

    def turn_to(self, pane: Pane) -> None:
        """Show ``pane`` in place of the other views."""
        for other in self.panes:
            other.display = other is pane
        self.tabs.show(pane.name_)
        self.body.fit(pane)
