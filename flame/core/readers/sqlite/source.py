"""Define a table source: named columns of tables as numpy chunks, whatever stores them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from flame.core.columns import Column
from flame.core.lazy_dataclass import dataclass
from flame.core.readers.sqlite.numbering import RowNumbers, TextNumbers

NULL = int(np.iinfo(np.int64).min)
"""An absent integer, and every value of a column that the table does not have."""

Chunk = dict[str, Column]
"""Columns of some rows by name, all of one length."""

ROWID, NUMBER, FILLED, TEXT = "rowid", "#number", "#filled", "#text"
"""Names of what no table has a column for; see `TableQuery`."""


@dataclass(frozen=True)
class TableKey:
    """Hold columns of integers that are numbered together, by ``rows``, in this order.

    One may be `TEXT`: the number of the text in column ``text``, by ``texts``; one `FILLED`: 1
    where any of the columns ``filled`` has a value, else 0.
    """

    names: Sequence[str]
    rows: RowNumbers
    text: str = ""
    texts: TextNumbers | None = None
    filled: Sequence[str] = ()


@dataclass(frozen=True)
class TableQuery:
    """Hold which columns are asked for of a table; those that it does not have are NULL.

    A chunk has i8 per name in ``ints``; `ROWID` are the numbers by which SQLite knows the rows.
    With ``key`` it has `NUMBER`, i4: the number of each row's key.
    """

    table: str
    ints: Sequence[str]
    key: TableKey | None = None


class TableSource(Protocol):
    """Read access to the tables of one file. Unknown tables are empty, unknown columns NULL."""

    def columns(self, table: str) -> frozenset[str]:
        """Return the column names of ``table``; empty if there is no such table."""

    def size(self, table: str) -> int:
        """Return about how many rows ``table`` has, cheaply; 0 if unknown."""

    def chunks(self, query: TableQuery) -> Iterator[Chunk]:
        """Yield the columns that ``query`` asks for of successive rows."""

    def rows(
        self, table: str, names: Sequence[str], condition: str = ""
    ) -> Iterator[tuple[object, ...]]:
        """Yield rows of a small table as plain values (str, int, float, None)."""

    def close(self) -> None:
        """Release the file."""
