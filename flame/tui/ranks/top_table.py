"""Compute the top table of a summary: how the sums of each frame are spread over ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from flame.core.columns import Column
from flame.core.model.tree import StackTree
from flame.core.rank_summary.summary import RankSummary
from flame.core.ranks.node_spread import NodeSpread, spread_of_frames
from flame.core.units import format_value
from flame.tui.ranks.imbalance import deviation_words
from flame.tui.toolkit.text import cut
from flame.tui.views.top_columns import HEADS, OF_TIMES, Head, TopColumns
from flame.tui.views.top_table import NONE, UNKNOWN, SlowColumns, TopTable

_RANK_WIDTH = 8

RANK_HEADS = (
    Head("own", "self", 9, "own"),
    Head("share", "%", 8, "total"),
    Head("mean", "mean", 9, "total"),
    Head("least", "min", 9, "least"),
    Head("median", "median", 9, "median"),
    Head("p95", "p95", 9, "p95"),
    Head("most", "max", 9, "most"),
    Head("worst", "worst", _RANK_WIDTH, "worst"),
    Head("imbalance", "imbal.", 9, "imbalance"),
)
_LONGEST_KEPT = (
    "mean", "most", "worst", "imbalance", "share", "median", "own", "least", "p95",
)  # fmt: skip
_WITHOUT_ROWS = (*(key for key in OF_TIMES if key not in ("count", "mean")),)


class RankTopColumns(TopColumns):
    """Choose the columns of a summary: values are those of a rank."""

    @property
    def heads(self) -> tuple[Head, ...]:
        return RANK_HEADS

    @property
    def kept_longest(self) -> tuple[str, ...]:
        return _LONGEST_KEPT


class SumColumns(TopColumns):
    """Choose the columns of some of the ranks of a summary, which has no single activities."""

    @property
    def heads(self) -> tuple[Head, ...]:
        return tuple(head for head in HEADS if head.key not in _WITHOUT_ROWS)


class SumTable(TopTable):
    """One row per frame of some of the ranks."""

    def complete(self) -> SlowColumns:
        """Work out the orders that take their time."""
        return self.later(None, np.zeros(0, np.int64), {})


class RankTable(SumTable):
    """One row per frame of all ranks of ``summary``, which ``labels`` name.

    By imbalance those are first whose worst rank has most more than the median.
    """

    def __init__(self, tree: StackTree, summary: RankSummary, labels: Sequence[str]) -> None:
        super().__init__(tree)
        self._summary, self._labels = summary, labels
        self._spread: NodeSpread | None = None

    def complete(self) -> SlowColumns:
        found = spread_of_frames(self._summary, self.tree, self.totals.frame)
        columns = {head.sorts: _SORTED[head.sorts](found) for head in RANK_HEADS[3:]}
        orders = {key: self._order(column) for key, column in columns.items()}
        return SlowColumns(None, orders | super().complete().orders, {}, found)

    def take(self, later: SlowColumns) -> None:
        super().take(later)
        self._spread = later.ranks

    @property
    def is_complete(self) -> bool:
        return self._spread is not None

    def cell(self, row: int, key: str) -> str:
        unit, ranks = self.tree.metric.unit, len(self._summary)
        if key == "mean":
            return format_value(int(self.totals.total[row]) / ranks, unit)
        if key == "own":
            own = int(self.totals.own[row])
            return format_value(own / ranks, unit) if own else NONE
        if key not in _SORTED:
            return super().cell(row, key)
        return UNKNOWN if self._spread is None else self._spread_of(self._spread, row, key)

    def _spread_of(self, found: NodeSpread, row: int, key: str) -> str:
        if key == "worst":
            worst = int(found.spread.worst[row])
            label = self._labels[worst].removeprefix("rank ")
            return cut(label, _RANK_WIDTH - 2) if worst >= 0 else NONE
        if key == "imbalance":
            return self._imbalance(found, row)
        value = int(_SORTED[key](found)[row])
        return format_value(value, self.tree.metric.unit) if value else NONE

    def _imbalance(self, found: NodeSpread, row: int) -> str:
        """How far the worst is above the median; of what most ranks lack, how many have it."""
        median, most = int(found.spread.median[row]), int(found.spread.most[row])
        if not most:
            return NONE
        if not median:
            return f"{int(found.spread.there[row])} of {found.spread.ranks}"
        return deviation_words((most - median) / median)


_SORTED: dict[str, Callable[[NodeSpread], Column]] = {
    "least": lambda found: found.spread.least,
    "median": lambda found: found.spread.median,
    "p95": lambda found: found.spread.p95,
    "most": lambda found: found.spread.most,
    "worst": lambda found: found.spread.worst,
    "imbalance": lambda found: found.excess,
}
"""What rows are sorted by under each column."""
