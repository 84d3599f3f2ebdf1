"""Show every frame of a summary in a table: what ranks have of it, and which one the most."""

from __future__ import annotations

import numpy as np

from flame.core.columns import I8
from flame.tui.ranks.session import RanksProjection, labels_of
from flame.tui.ranks.top_table import RankTable, RankTopColumns, SumColumns, SumTable
from flame.tui.session.session import Projection
from flame.tui.session.wording import lasts
from flame.tui.views.top_columns import TopColumns
from flame.tui.views.top_pane import TopPane
from flame.tui.views.top_table import SlowColumns, TopTable

_NO_STEPS: I8 = np.zeros(0, np.int64)


class RanksTopPane(TopPane):
    """Show frames with columns of all ranks; of some of them with their sums alone."""

    def _make(self, shown: Projection) -> TopTable:
        assert isinstance(shown, RanksProjection)
        tree = shown.view.tree
        if not _compares(shown):
            return SumTable(tree)
        return RankTable(tree, shown.summary, labels_of(shown.summary))

    def _complete(self, table: TopTable, shown: Projection) -> SlowColumns:
        assert isinstance(table, SumTable)
        return table.complete()

    @property
    def _steps(self) -> I8:
        """None: the steps of ranks have a view of their own."""
        return _NO_STEPS

    @property
    def _columns(self) -> TopColumns:
        if _compares(self.shown):
            return RankTopColumns(lasts(self.shown.metric), self._wanted[0])
        return SumColumns(lasts(self.shown.metric), self._wanted[0])


def _compares(shown: Projection) -> bool:
    """Whether what is shown is of all ranks, so that they can be set side by side."""
    return isinstance(shown, RanksProjection) and shown.places is None and shown.can_compare
