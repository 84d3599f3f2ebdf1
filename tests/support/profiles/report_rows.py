"""Read the tables of a report's section as dictionaries, and work out percentiles plainly."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from flame.core.report.table import Section


def table_rows(section: Section, key: str = "rows") -> list[dict[str, Any]]:
    """The rows of the table ``key``; what is in none of its columns is None."""
    tables = [table for table in section.tables if table.key == key]
    return [
        defaultdict(lambda: None, zip((column.key for column in table.columns), row, strict=True))
        for table in tables
        for row in table.rows
    ]


def rank(values: Sequence[int], percent: int) -> int:
    """The least value that at least ``percent`` per cent do not exceed."""
    return sorted(values)[(len(values) * percent + 99) // 100 - 1]
