"""Keep the tables of allocations that were asked for last."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property, lru_cache

from flame.core.model.activities import Activities, TableCut

_MOST = 10
"""Tables of memory that are kept: of the metrics under the filters that were shown last."""


class CutTables(ABC):
    """Makes tables of allocations, of a metric within a cut, and keeps the last of them."""

    @abstractmethod
    def _make_table(self, metric: str, cut: TableCut) -> Activities:
        """Make the table that `table` returns."""

    def table(self, metric: str, cut: TableCut) -> Activities:
        """Get the table of the allocations that ``metric`` measures within ``cut``."""
        return self._tables(metric, cut)

    @cached_property
    def _tables(self) -> Callable[[str, TableCut], Activities]:
        return lru_cache(_MOST)(self._make_table)
