"""Lay out the main screen for a summary of ranks."""

from __future__ import annotations

from typing import ClassVar

from flame.core.analysis.words.formats import terms_of
from flame.core.model.tree import Order
from flame.tui.details.details_pane import DetailsPane
from flame.tui.main.layout import MainLayout
from flame.tui.ranks.details_pane import RanksDetailsPane
from flame.tui.ranks.header import ranks_line
from flame.tui.ranks.pane import RanksPane
from flame.tui.ranks.session import RanksProjection, labels_of
from flame.tui.ranks.top_pane import RanksTopPane
from flame.tui.session.session import Projection
from flame.tui.timeline.pane import TimelinePane
from flame.tui.toolkit.lines import Line, palette_of
from flame.tui.views.icicle_pane import IciclePane
from flame.tui.views.pane import Pane
from flame.tui.views.sandwich_pane import SandwichPane
from flame.tui.widgets.screen_lines import HeaderLine


class RanksHeaderLine(HeaderLine):
    """Show how many ranks there are, and how they are projected; ``labels`` name them."""

    def __init__(self, usual_order: Order, labels: tuple[str, ...]) -> None:
        super().__init__(usual_order)
        self._labels = labels
        self._late = 0

    def show_late(self, number: int) -> None:
        """Say how many ranks are late to collectives beyond chance."""
        self._late = number
        self.update()

    def _header(self, width: int, height: int) -> list[Line]:
        shown = self._projection
        if self._trace is None or not isinstance(shown, RanksProjection):
            return []
        title, profile = self._trace
        order, terms = self._usual_order, terms_of(profile)
        palette = palette_of(self)
        return [ranks_line(title, shown, self._labels, palette, width, order, terms, self._late)]


class RanksLayout(MainLayout):
    """Hold the widgets of a summary, which has ranks in place of a timeline and a report."""

    PANES: ClassVar[tuple[type[Pane], ...]] = (IciclePane, SandwichPane, RanksTopPane)
    ranks: RanksPane
    ranks_details: RanksDetailsPane
    ranks_header: RanksHeaderLine

    @property
    def _panes_of_rows(self) -> tuple[Pane, ...]:
        return (self.ranks,)

    def _make_timeline(self, shown: Projection) -> TimelinePane:
        assert isinstance(shown, RanksProjection)
        self._labels = labels_of(shown.summary)
        self.ranks = RanksPane(shown, self._labels)
        return super()._make_timeline(shown)

    def _make_header(self, usual_order: Order) -> HeaderLine:
        self.ranks_header = RanksHeaderLine(usual_order, self._labels)
        return self.ranks_header

    def _make_details(self) -> DetailsPane:
        self.ranks_details = RanksDetailsPane(self._labels)
        return self.ranks_details
