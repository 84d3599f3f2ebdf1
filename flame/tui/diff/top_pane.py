"""Show every frame of a comparison in a table, those that have changed most first."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from flame.core.columns import I8
from flame.core.compare.noise.beyond_noise import noise_marks
from flame.tui.diff.session import DiffProjection
from flame.tui.diff.top_table import DiffColumns, DiffTable
from flame.tui.session.session import Projection
from flame.tui.session.wording import lasts
from flame.tui.views.top_columns import Columns
from flame.tui.views.top_pane import TopPane
from flame.tui.views.top_rows import TableRows
from flame.tui.views.top_table import SlowColumns, TopTable

_NO_STEPS: I8 = np.zeros(0, np.int64)


class DiffTopPane(TopPane):
    """Show what each frame was and is, and why it has changed."""

    FIRST: ClassVar[str] = "delta"

    def _make(self, shown: Projection) -> TopTable:
        assert isinstance(shown, DiffProjection)
        return DiffTable(shown.colouring.sides, noise_marks(shown.comparison))

    def _complete(self, table: TopTable, shown: Projection) -> SlowColumns:
        return table.later(None, _NO_STEPS, {})

    def learn(self) -> None:
        """Show which changes are beyond noise: that has just been found out."""
        self.query_one(TableRows).forget()
        table = self._table
        if isinstance(table, DiffTable):
            self._work(lambda: SlowColumns(None, table.by_evidence(), {}))

    @property
    def _steps(self) -> I8:
        """None: a step of one trace is not one of the other."""
        return _NO_STEPS

    @property
    def _columns(self) -> Columns:
        return DiffColumns(lasts(self.shown.metric), self._wanted[0])
