"""Define a table source: named columns of tables as numpy chunks, whatever stores them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np

from flame.core.columns import Column

NULL = int(np.iinfo(np.int64).min)
"""An absent integer, and every value of a column that the table does not have."""

Intern = Callable[[bytes | None], int]
"""Turns a text (UTF-8 as stored, None for NULL) into an int32 code."""


class TableSource(Protocol):
    """Read access to the tables of one file. Unknown tables are empty, unknown columns NULL."""

    def columns(self, table: str) -> frozenset[str]:
        """Return the column names of ``table``; empty if there is no such table."""

    def size(self, table: str) -> int:
        """Return about how many rows ``table`` has, cheaply; 0 if unknown."""

    def chunks(
        self, table: str, ints: Sequence[str], texts: Mapping[str, Intern] | None = None
    ) -> Iterator[dict[str, Column]]:
        """Yield successive rows: int64 per name in ``ints``, int32 codes per name in ``texts``."""

    def rows(
        self, table: str, names: Sequence[str], condition: str = ""
    ) -> Iterator[tuple[object, ...]]:
        """Yield rows of a small table as plain values (str, int, float, None)."""

    def close(self) -> None:
        """Release the file."""
