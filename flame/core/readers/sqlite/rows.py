"""Read rows as Python's sqlite3 gives them: the reference table source."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from flame.core.readers.sqlite.allowance import Row, TableAllowance, most_rows
from flame.core.readers.sqlite.connection import connect, refuse_unreadable
from flame.core.readers.sqlite.source import FILLED, NULL, NUMBER, ROWID, TEXT, Chunk, TableQuery

_ANYWHERE, _NOWHERE = slice(None), slice(0)  # of a row's values


class SqliteSource:
    """Tables of one SQLite file. All reads raise sqlite3.Error on damage."""

    def __init__(self, path: Path) -> None:
        refuse_unreadable(path)
        size = path.stat().st_size
        self._connection = connect(path)
        self._columns: dict[str, frozenset[str]] = {}
        self._most_rows = most_rows(size)
        self._allowance = TableAllowance(size)
        longest = self._connection.getlimit(sqlite3.SQLITE_LIMIT_LENGTH)
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(longest, self._allowance.size))

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
        """Return the largest rowid: the number of rows unless some were deleted.

        It is never more than the file has room for.
        """
        if not self._has_rowids(table):
            return 0
        with suppress(sqlite3.OperationalError):  # a table WITHOUT ROWID
            row = self._connection.execute(_select(table, ["max(rowid)"])).fetchone()
            return min(max(row[0], 0), self._most_rows) if isinstance(row[0], int) else 0
        return 0

    def _has_rowids(self, table: str) -> bool:
        """Return False for a view, whose rows SQLite might all run through, and hidden rowids."""
        if "rowid" in map(str.lower, self.columns(table)):
            return False
        query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ? COLLATE NOCASE"
        return self._connection.execute(query, (table,)).fetchone() is not None

    def chunks(self, query: TableQuery) -> Iterator[Chunk]:
        """Yield the columns that ``query`` asks for of successive rows."""
        # NOT INDEXED: an index that holds all the columns would give its own order of rows.
        yield from self._chunks(query, "NOT INDEXED" if self._has_rowids(query.table) else "")

    def chunks_between(self, query: TableQuery, low: int, high: int) -> Iterator[Chunk]:
        """Yield the rows with rowids from ``low`` to ``high``, both included."""
        return self._chunks(query, f"WHERE rowid BETWEEN {low} AND {high}")

    def _chunks(self, query: TableQuery, condition: str) -> Iterator[Chunk]:
        have = self.columns(query.table)
        if not have:
            return
        keyed = query.key.names if query.key else ()
        selected = [
            *(self._integer(query.table, name) for name in query.ints),
            *(self._key_part(query, name) for name in keyed),
        ]
        texts = slice(len(query.ints), None) if TEXT in keyed else _NOWHERE
        for rows in self._select(query.table, selected, condition, texts):
            yield _chunk(query, list(zip(*rows, strict=True)))

    def _key_part(self, query: TableQuery, name: str) -> str:
        """Return SQL for a part of the key; for the text itself, not for its number."""
        key, have = query.key, self.columns(query.table)
        assert key is not None
        if name == TEXT:
            return f"CAST({_quote(key.text)} AS BLOB)" if key.text in have else "NULL"
        if name == FILLED:
            present = (f"{_quote(column)} IS NOT NULL" for column in key.filled if column in have)
            return " OR ".join(present) or "0"
        return self._integer(query.table, name)

    def _integer(self, table: str, name: str) -> str:
        """Return SQL for a column as a 64-bit integer, whatever a user stored there."""
        if name == ROWID and self._knows_rowids(table):
            return ROWID
        if name not in self.columns(table):
            return str(NULL)
        return f"ifnull(CAST({_quote(name)} AS INTEGER), {NULL})"

    def _knows_rowids(self, table: str) -> bool:
        """Return whether the rows can be asked for their rowids."""
        with suppress(sqlite3.OperationalError):  # a table WITHOUT ROWID
            self._connection.execute(_select(table, [ROWID], "LIMIT 0"))
            return self._has_rowids(table)
        return False

    def rows(
        self, table: str, names: Sequence[str], condition: str = ""
    ) -> Iterator[tuple[object, ...]]:
        """Yield rows of a small table as plain values; columns the table lacks are None."""
        have = self.columns(table)
        if have:
            columns = [_quote(name) if name in have else "NULL" for name in names]
            for rows in self._select(table, columns, condition, _ANYWHERE):
                yield from rows

    def _select(
        self, table: str, columns: list[str], condition: str, texts: slice
    ) -> Iterator[list[Row]]:
        cursor = self._connection.execute(_select(table, columns, condition))
        return self._allowance.parts(table, cursor, texts)

    def close(self) -> None:
        """Release the file."""
        self._connection.close()


def _select(table: str, columns: list[str], condition: str = "") -> str:
    return f"SELECT {', '.join(columns)} FROM {_quote(table)} {condition}"


def _chunk(query: TableQuery, columns: list[Row]) -> Chunk:
    chunk: Chunk = {
        name: np.array(column, np.int64) for name, column in zip(query.ints, columns, strict=False)
    }
    if key := query.key:
        parts = zip(key.names, columns[len(query.ints) :], strict=True)
        chunk[NUMBER] = key.rows.number(
            [
                key.texts.number(part)
                if name == TEXT and key.texts is not None
                else np.array(part, np.int64)
                for name, part in parts
            ]
        )
    return chunk


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
