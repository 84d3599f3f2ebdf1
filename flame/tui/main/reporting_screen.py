"""Bring the report to the main screen: work on it, count its findings, go where its rows lead."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on

from flame.core.analysis.utilization import utilizations
from flame.core.timeline.busy_time import TimeWindow
from flame.tui.details.root_facts import has_root_facts
from flame.tui.main.layout import MainLayout
from flame.tui.main.selection_screen import SelectionScreen
from flame.tui.report.pane import ReportPane
from flame.tui.report.source import ReportSource, TraceReports
from flame.tui.report.worker import BUDGET, FINDINGS, TAILS, ReportWorker, Worked
from flame.tui.timeline.pane import TimelinePane
from flame.tui.views.icicle_pane import IciclePane
from flame.tui.views.pane import Pane

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flame.core.report.table import Place
    from flame.tui.details.labels import Label
    from flame.tui.session.session import Projection, Session
    from flame.tui.session.tree_view import TreeView
    from flame.tui.shell.command import Command

FEW = 100_000
"""Activities up to which findings are worked out before anybody asks for them: in 0.3 s at most."""


class ReportingScreen(SelectionScreen):
    """Show a projection in views of which one is the report."""

    parts: MainLayout
    SOURCE: ClassVar[ReportSource] = TraceReports()

    def __init__(self, session: Session, shown: Projection, commands: Sequence[Command]) -> None:
        super().__init__(session, shown, commands)
        self.reports = ReportWorker(self.post_message, self.SOURCE)
        self._goal: Place | None = None
        self._jumped_to = ""

    def action_show_view(self, name: str) -> None:
        """Show the view called ``name``."""
        raise NotImplementedError

    # Findings

    def look_for_findings(self) -> None:
        """Work out the findings of what is shown, where that is quick and the report is not shown.

        Of a large trace they take seconds, and rows that have not been read of one from the cache.
        """
        profile = self.session.profile
        wanted = not profile.resolved and profile.totals is None and profile.size <= FEW
        if wanted and not isinstance(self.pane, ReportPane) and self._can_be_judged():
            self.reports.ask(self.shown, (FINDINGS, BUDGET, TAILS))

    def _can_be_judged(self) -> bool:
        """Whether there is enough on any GPU for a finding that is more than information."""
        from flame.core.report.findings.finding import FEWEST_ACTIVITIES, SHORTEST_WINDOW

        profile, where = self.session.profile, self.shown.selection.where
        longest = max((gpu.length for gpu in utilizations(profile, where)), default=0)
        return profile.size >= FEWEST_ACTIVITIES and longest >= SHORTEST_WINDOW

    @on(Worked)
    def _worked(self, message: Worked) -> None:
        if message.error is not None:
            raise message.error
        self._show_findings()
        if isinstance(self.pane, ReportPane):
            self.pane.show(self.shown)
        else:
            self.parts.details.update()
        self.key_line.update()
        self.status_line.update()

    def _show_findings(self) -> None:
        """Show in the header how many findings there are, where that is known."""
        known = self.reports.known(self.shown.selection)
        if FINDINGS not in known:
            self.parts.header.show_findings("")
            return
        from flame.tui.report.entries import chip_text

        self.parts.header.show_findings(*chip_text(known))

    def remarks(self, view: TreeView) -> list[tuple[Label, str]]:
        """Tell what is known from the report of the frame selected in ``view``."""
        known = self.reports.known(self.shown.selection)
        if not known:
            return []
        from flame.tui.report.remarks import remarks_on, why_idle

        node = view.cursor.node
        if node:
            return remarks_on(known, view.tree.name(node), view.tree.kind(node))
        is_whole = view is self.shown.view and has_root_facts(view.tree)
        return why_idle(known) if is_whole else []

    def action_findings(self) -> None:
        """Show the first finding of the report."""
        self.parts.report.choose_findings()
        self.action_show_view(ReportPane.name_)
        self._show()

    # Where rows lead

    @on(ReportPane.Jumped)
    def _jump(self, message: ReportPane.Jumped) -> None:
        place = message.place
        if place.window is not None:
            self.parts.timeline.wanted = TimeWindow(*place.window)
            self._go_to(TimelinePane)
            return
        from flame.tui.report.places import node_at, selection_at

        node = node_at(self.shown, place)
        if node < 0:
            self._goal = place
            self._project(selection_at(self.wanted, place))
        else:
            self._select(node)
        self._go_to(IciclePane)

    def _go_to(self, kind: type[Pane]) -> None:
        self._jumped_to = kind.name_
        self.action_show_view(kind.name_)

    def _select(self, node: int) -> None:
        """Select a frame, in the whole tree where it is not in the zoomed part."""
        view = self.shown.view
        if not view.viewport.holds(node):
            view.reset()
        view.cursor.select(node)

    def _reach_goal(self) -> None:
        """Select what a row led to, in the tree that had to be built for it."""
        goal, self._goal = self._goal, None
        if goal is None:
            return
        from flame.tui.report.places import node_at

        node = node_at(self.shown, goal)
        if node >= 0:
            self._select(node)

    @property
    def came_from_report(self) -> bool:
        """Whether a row of the report has led to the view that is shown."""
        return bool(self._jumped_to) and self._jumped_to == self.pane_name

    def forget_jump(self, name: str) -> None:
        """Lead back to the report no more, where the view called ``name`` is another."""
        if name != self._jumped_to:
            self._jumped_to = ""

    def _go_back(self) -> bool:
        """Return to the report from where one of its rows led; False where none did."""
        came, self._jumped_to = self.came_from_report, ""
        if came:
            if self.pane is self.parts.timeline:
                self.pane.undo()  # the brush, if it is still there
            self.action_show_view(ReportPane.name_)
            self._show()
        return came
