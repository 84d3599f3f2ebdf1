"""Show what ran when on one side of a comparison: the sides have no clock in common."""

from __future__ import annotations

import numpy as np

from flame.core.compare.sides import KeptRun
from flame.core.projection.filters import Steps
from flame.tui.diff.session import DiffProjection
from flame.tui.session.query import find_in_time
from flame.tui.session.session import Projection
from flame.tui.session.tree_view import TreeView
from flame.tui.timeline.layouts import Layouts
from flame.tui.timeline.pane import TimelinePane

_KEPT = "a kept base has sums, and no times"
_NO_WINDOW = "a window of one trace is none of the other: filter each side on the command line"


class DiffTimelinePane(TimelinePane):
    """Show the first run of one side by itself; what is selected is so in the union, too."""

    def __init__(self, shown: DiffProjection) -> None:
        self._union = shown
        self._run = shown.run_over_time
        super().__init__(shown.alone(self._run))

    @property
    def view(self) -> TreeView:
        return self._union.view

    def show(self, shown: Projection) -> None:
        assert isinstance(shown, DiffProjection)
        before, run = self._union, shown.run_over_time
        self._union, own = shown, self.shown
        if before.comparison is not shown.comparison or run != self._run:
            own = shown.alone(run)
        if own.profile is not self.shown.profile:
            self._forget()
        self._run = run
        self._follow_union(own)
        super().show(own)

    def _forget(self) -> None:
        """Begin anew: the trace is another one."""
        self._time, self._layouts = None, Layouts(self.post_message)

    @property
    def _lack(self) -> str:
        """Why there is no timeline, and whether the other side has one."""
        given = self._union.comparison.sides
        if not (lack := super()._lack):
            return ""
        if isinstance(given.runs[self._run], KeptRun):
            lack = _KEPT
        others = (run for run in [*given][1 - given.side_of_run[self._run]] if run.profile.timed)
        return f"{lack}: D shows the other side" if any(others) else lack

    def _follow_union(self, own: Projection) -> None:
        """Select and search in the run's own tree what is selected and searched in the union."""
        union = self._union.comparison.union
        node = self._union.view.cursor.node
        if int(union.node[self._run][own.view.cursor.node]) != node:
            places = np.flatnonzero(union.node[self._run] == node)
            widest = int(places[np.argmax(own.view.tree.total[places])]) if len(places) else 0
            own.view.cursor.select(widest)
        found, known = self._union.view.matches.result, own.view.matches.result
        query = found.query if found else None
        if query != (known.query if known else None):
            own.view.matches.mark(find_in_time(own.view.tree, query))

    def _selected(self, note: str = "") -> str:
        before = self.shown.view.cursor.node
        note = super()._selected(note)
        node = self.shown.view.cursor.node
        if node != before:
            view = self._union.view
            target = int(self._union.comparison.union.node[self._run][node])
            if not view.viewport.holds(target):
                view.reset()
            view.cursor.select(target)
        return note

    def enter(self) -> str:
        if self._time is not None and self._time.viewport.brush is not None:
            self._time.viewport.brush = None
            return _NO_WINDOW
        return super().enter()

    @property
    def _step(self) -> Steps | None:
        return None
