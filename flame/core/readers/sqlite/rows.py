"""Read rows as Python's sqlite3 gives them: the reference table source."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from flame.core.columns import Column
from flame.core.readers.sqlite.connection import connect, refuse_unreadable
from flame.core.readers.sqlite.source import NULL, Intern

_CHUNK = 1 << 16


class SqliteSource:
    """Tables of one SQLite file. All reads raise sqlite3.Error on damage."""

    def __init__(self, path: Path) -> None:
        refuse_unreadable(path)
        self._connection = connect(path)
        self._columns: dict[str, frozenset[str]] = {}

    def columns(self, table: str) -> frozenset[str]:
        """Return the column names of ``table``; empty if there is no such table."""
        if table not in self._columns:
            # Unlike table_info, this names generated columns.
            rows = self._connection.execute(f"PRAGMA table_xinfo({_quote(table)})")
            self._columns[table] = frozenset(str(row[1]) for row in rows)
        return self._columns[table]

    def column_places(self, table: str) -> dict[str, int]:
        """Return where each column of an ordinary table stands in its rows.

        Empty where a column is not stored as it is: the rowid's other name, a generated one.
        """
        info = self._connection.execute(f"PRAGMA table_xinfo({_quote(table)})").fetchall()
        if any(key or hidden for *_, key, hidden in info):
            return {}
        return {str(name): place for place, name, *_ in info}

    def size(self, table: str) -> int:
        """Return the largest rowid: the number of rows unless some were deleted."""
        if not self._has_rowids(table):
            return 0
        with suppress(sqlite3.OperationalError):  # a table WITHOUT ROWID
            row = self._connection.execute(_select(table, ["max(rowid)"])).fetchone()
            return max(row[0], 0) if isinstance(row[0], int) else 0
        return 0

    def _has_rowids(self, table: str) -> bool:
        """Return False for a view, whose rows SQLite might all run through, and hidden rowids."""
        if "rowid" in map(str.lower, self.columns(table)):
            return False
        query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ? COLLATE NOCASE"
        return self._connection.execute(query, (table,)).fetchone() is not None

    def chunks(
        self, table: str, ints: Sequence[str], texts: Mapping[str, Intern] | None = None
    ) -> Iterator[dict[str, Column]]:
        """Yield successive rows: int64 per name in ``ints``, int32 codes per name in ``texts``."""
        # NOT INDEXED: an index that holds all the columns would give its own order of rows.
        scan = "NOT INDEXED" if self._has_rowids(table) else ""
        yield from self._chunks(table, ints, texts or {}, scan)

    def chunks_between(
        self, table: str, ints: Sequence[str], texts: Mapping[str, Intern], low: int, high: int
    ) -> Iterator[dict[str, Column]]:
        """Yield the rows with rowids from ``low`` to ``high``, both included."""
        return self._chunks(table, ints, texts, f"WHERE rowid BETWEEN {low} AND {high}")

    def _chunks(
        self, table: str, ints: Sequence[str], texts: Mapping[str, Intern], condition: str
    ) -> Iterator[dict[str, Column]]:
        have = self.columns(table)
        if not have:
            return
        numbers = [_integer(name) if name in have else str(NULL) for name in ints]
        strings = [f"CAST({_quote(name)} AS BLOB)" if name in have else "NULL" for name in texts]
        cursor = self._connection.execute(_select(table, [*numbers, *strings], condition))
        while rows := cursor.fetchmany(_CHUNK):
            columns = list(zip(*rows, strict=True))
            chunk: dict[str, Column] = {
                name: np.array(column, np.int64)
                for name, column in zip(ints, columns, strict=False)
            }
            for (name, intern), column in zip(texts.items(), columns[len(ints) :], strict=True):
                chunk[name] = np.fromiter(map(intern, column), np.int32, len(rows))
            yield chunk

    def rows(
        self, table: str, names: Sequence[str], condition: str = ""
    ) -> Iterator[tuple[object, ...]]:
        """Yield rows of a small table as plain values; columns the table lacks are None."""
        have = self.columns(table)
        if have:
            columns = [_quote(name) if name in have else "NULL" for name in names]
            yield from self._connection.execute(_select(table, columns, condition))

    def close(self) -> None:
        """Release the file."""
        self._connection.close()


def _select(table: str, columns: list[str], condition: str = "") -> str:
    return f"SELECT {', '.join(columns)} FROM {_quote(table)} {condition}"


def _integer(name: str) -> str:
    """Return SQL for a column as a 64-bit integer, whatever a user stored there."""
    return f"ifnull(CAST({_quote(name)} AS INTEGER), {NULL})"


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
