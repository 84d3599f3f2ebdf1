"""Show projections of a trace on a screen: ask for them, take them, search in them."""

from __future__ import annotations

from collections.abc import Sequence

from textual import on

from flame.core.errors import FlameError, UsageError
from flame.core.projection.selection import Selection
from flame.tui.main.selections import Outcome
from flame.tui.session.finder import Searched, TreeFinder
from flame.tui.session.projector import Projected, Projector
from flame.tui.session.query import Query
from flame.tui.session.session import Projection, Session
from flame.tui.shell.command import Command
from flame.tui.toolkit.background import call_once
from flame.tui.widgets.flame_screen import FlameScreen

DELAY = 0.15
"""Seconds that work may take before the status line says that it runs."""


class ProjectionScreen(FlameScreen):
    """Show a projection of ``session``, ``shown`` at first, by ``commands``."""

    def __init__(self, session: Session, shown: Projection, commands: Sequence[Command]) -> None:
        super().__init__(commands)
        self.projector = Projector(session, shown, self.post_message)
        self.finder = TreeFinder(self.post_message)
        self._promised = ""

    @property
    def session(self) -> Session:
        """What has been loaded, or recorded up to the moment that is shown."""
        return self.projector.session

    @property
    def shown(self) -> Projection:
        """The projection on screen."""
        return self.projector.shown

    @property
    def wanted(self) -> Selection:
        """What was last asked for."""
        return self.projector.wanted

    @property
    def searched(self) -> Query | None:
        return self.finder.query

    def _take(self) -> None:
        """Show a projection that has just arrived."""
        raise NotImplementedError

    # Projecting

    def _project(self, *candidates: Selection, note: str = "") -> None:
        """Show the first of ``candidates`` that has anything, as soon as it is worked out.

        The status line says ``note`` then.
        """
        self._promised = note
        self.projector.ask(list(candidates), self.finder.query)
        call_once(self, DELAY, self._say_pending)

    def apply(self, outcome: Outcome) -> None:
        """Show the selections that an action has come to, or its note."""
        if isinstance(outcome, str):
            self._show(outcome)
        elif outcome:
            self._project(*outcome)

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
            result = outcome.found
            if (result.query if result else None) != self.finder.query:
                self._search(self.finder.query)

    @on(Searched)
    def _searched(self, message: Searched) -> None:
        try:
            current = self.finder.take(message)
        except UsageError as error:
            self._refuse_search(error)
        else:
            if current:
                self._show()

    # Searching

    def _search(self, query: Query | None) -> None:
        try:
            self.finder.search(self.shown.view, query)
        except UsageError as error:
            self._refuse_search(error)
        else:
            self._show()
            call_once(self, DELAY, self._say_pending)

    def _refuse_search(self, error: UsageError) -> None:
        """Search for nothing, and say why."""
        self.finder.search(self.shown.view, None)
        self._show(str(error), "warning")
