"""Define a table source: named columns of tables as numpy chunks, whatever stores them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from flame.core.columns import Column

NULL = int(np.iinfo(np.int64).min)
"""An absent integer, and every value of a column that the table does not have."""

Intern = Callable[[bytes | None], int]
"""Turns a text (UTF-8 as stored, None for NULL) into an int32 code."""

Chunk = dict[str, Column]
"""Columns of some rows by name, all of one length."""

ROWID, FILLED = "rowid", "filled"


@dataclass(frozen=True)
class TableQuery:
    """Hold which columns are asked for of a table; those that it does not have are NULL.

    Asked for are int64 per name in ``ints``, int32 codes per name in ``texts``; the name `ROWID`
    gives the numbers by which SQLite knows the rows. With ``filled`` there is a column `FILLED`:
    whether any of the columns with these names has a value. Where ``running`` is not None, texts
    that differ only in a running number at their end (``, op_id = 871``) may be given to their
    `Intern` as one, without the number, unless they begin with a byte of ``running``.
    """

    table: str
    ints: Sequence[str]
    texts: Mapping[str, Intern] = field(default_factory=dict)
    filled: Sequence[str] = ()
    running: bytes | None = None


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
