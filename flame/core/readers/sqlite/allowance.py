"""Bound what SQLite gives of a file's tables by what the file has room for.

A file may be made so that SQLite reads the same bytes again and again, and a view may compute rows.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

MOST_ROWS = 1 << 16
"""Rows that are given at a time."""
_SMALLEST_ROW = 6  # bytes: its pointer, and at least four for itself
_SMALLEST_FILE = 1 << 20  # bytes: of a smaller one as much may be read as of this
_TEXTS = 4  # times the file: numbers are longer as texts, and defaults stand in no row

_COUNTED = frozenset((str, bytes))

Row = tuple[Any, ...]


def most_rows(size: int) -> int:
    """Return how many rows a file of ``size`` bytes has room for."""
    return size // _SMALLEST_ROW


class TableAllowance:
    """Hold how much was read of each table of a file of ``size`` bytes."""

    def __init__(self, size: int) -> None:
        self.size = max(size, _SMALLEST_FILE)
        self._rows: dict[str, int] = {}
        self._texts: dict[str, int] = {}

    def parts(self, table: str, cursor: sqlite3.Cursor, texts: slice) -> Iterator[list[Row]]:
        """Yield the rows of ``cursor``, which are of ``table``, so many at a time as are small.

        ``texts`` is where texts may be in them. Raises sqlite3.DatabaseError beyond what
        the tables of the file can hold together, each counted as often as it was read most.
        """
        rows, read, size, taken = [], 0, 0, 0
        for row in cursor:
            rows.append(row)
            for value in row[texts]:
                if value.__class__ in _COUNTED:
                    size += len(value)
            if len(rows) == MOST_ROWS or size > self.size:
                read, taken = read + len(rows), taken + size
                self._note(table, read, taken)
                yield rows
                rows, size = [], 0
        self._note(table, read + len(rows), taken + size)
        if rows:
            yield rows

    def _note(self, table: str, rows: int, texts: int) -> None:
        self._rows[table] = max(self._rows.get(table, 0), rows)
        self._texts[table] = max(self._texts.get(table, 0), texts)
        too_many = sum(self._rows.values()) > most_rows(self.size)
        if too_many or sum(self._texts.values()) > _TEXTS * self.size:
            raise sqlite3.DatabaseError("its tables give more than the file has room for")
