"""The reference table source: Python's sqlite3, read by several threads at once."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import chain
from pathlib import Path

import numpy as np

from flame.core.columns import I8, Column
from flame.core.readers.sqlite_file import connect, refuse_unreadable
from flame.core.readers.tables import NULL, Intern

_CHUNK = 1 << 16
_MAX_THREADS = 8
_NO_TEXT = -1

Texts = list[bytes | None]


class SqliteSource:
    """Tables of one SQLite file. All reads raise sqlite3.Error on damage.

    SQLite itself writes each column of a chunk as one text, which numpy parses: twice as fast as a
    Python object per value, and outside Python's lock, so that threads with connections of their
    own read chunks ahead.
    """

    def __init__(self, path: Path) -> None:
        refuse_unreadable(path)
        self._path = path
        self._connections = [connect(path)]
        self._of_thread = threading.local()
        self._columns: dict[str, frozenset[str]] = {}
        self._threads = min(_MAX_THREADS, os.cpu_count() or 1)
        self._pool = ThreadPoolExecutor(self._threads, "flame-read")

    def _connection(self) -> sqlite3.Connection:
        """The calling thread's own."""
        own: sqlite3.Connection | None = getattr(self._of_thread, "connection", None)
        if own is None:
            own = self._of_thread.connection = connect(self._path)
            self._connections.append(own)
        return own

    def columns(self, table: str) -> frozenset[str]:
        """Column names of ``table``; empty if there is no such table."""
        if table not in self._columns:
            # Unlike table_info, this names generated columns.
            found = self._connections[0].execute(f"PRAGMA table_xinfo({_quoted(table)})")
            self._columns[table] = frozenset(str(row[1]) for row in found)
        return self._columns[table]

    def size(self, table: str) -> int:
        """The largest rowid: the number of rows unless some were deleted."""
        return max(self._rowid(table, "max") or 0, 0) if self.columns(table) else 0

    def chunks(
        self, table: str, ints: Sequence[str], texts: Mapping[str, Intern] | None = None
    ) -> Iterator[dict[str, Column]]:
        """Successive rows: int64 per name in ``ints``, int32 codes per name in ``texts``."""
        if not self.columns(table):
            return
        interns = texts or {}
        names = [name for name in interns if name in self.columns(table)]
        for numbers, strings in self._ahead(table, ints, names):
            chunk = _chunk(ints, interns, numbers, strings)
            if len(numbers[0]):
                yield chunk

    def places(self, table: str) -> dict[str, int]:
        """Where each column of an ordinary table stands in its rows.

        Empty where a column is not stored as it is: the rowid's other name, a generated one.
        """
        info = self._connections[0].execute(f"PRAGMA table_xinfo({_quoted(table)})").fetchall()
        if any(key or hidden for *_, key, hidden in info):
            return {}
        return {str(name): place for place, name, *_ in info}

    def between(
        self, table: str, ints: Sequence[str], texts: Mapping[str, Intern], low: int, high: int
    ) -> dict[str, Column]:
        """The rows with rowids from ``low`` to ``high``, both included, as one chunk."""
        names = [name for name in texts if name in self.columns(table)]
        condition = f"WHERE rowid BETWEEN {low} AND {high}"
        return _chunk(ints, texts, *self._read(table, ints, names, condition))

    def _ahead(
        self, table: str, ints: Sequence[str], texts: list[str]
    ) -> Iterator[tuple[list[Column], dict[str, Texts]]]:
        """Numbers and texts of every chunk in order, while later chunks are being read."""
        slices = self._slices(table)
        pending: deque[Future[tuple[list[Column], dict[str, Texts]]]] = deque()
        for condition in slices:
            pending.append(self._pool.submit(self._read, table, ints, texts, condition))
            if len(pending) > self._threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()

    def _slices(self, table: str) -> Iterator[str]:
        """SQL conditions that cut ``table`` into chunks in rowid order, gaps jumped over.

        A view, or a table WITHOUT ROWID, is one chunk.
        """
        low = self._rowid(table, "min")
        high = self._rowid(table, "max")
        if low is None or high is None:
            yield ""
            return
        while low is not None:
            last = low + _CHUNK - 1
            yield f"WHERE rowid BETWEEN {low} AND {last}"
            after = f"WHERE rowid > {last}"
            low = self._rowid(table, "min", after) if last < high else None

    def _rowid(self, table: str, which: str, condition: str = "") -> int | None:
        """The smallest or largest rowid; None where there are no rowids, or no rows."""
        if not self._has_rowids(table):
            return None
        with suppress(sqlite3.OperationalError):
            query = _select(table, [f"{which}(rowid)"], condition)
            row = self._connections[0].execute(query).fetchone()
            return row[0] if isinstance(row[0], int) else None
        return None

    def _has_rowids(self, table: str) -> bool:
        """Not a view, of which SQLite might run through all rows, nor hidden by a user's column."""
        if "rowid" in map(str.lower, self.columns(table)):
            return False
        query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ? COLLATE NOCASE"
        return self._connections[0].execute(query, (table,)).fetchone() is not None

    def _read(
        self, table: str, ints: Sequence[str], texts: list[str], condition: str
    ) -> tuple[list[Column], dict[str, Texts]]:
        """One chunk, read by a thread of the pool."""
        connection = self._connection()
        known = [name for name in ints if name in self.columns(table)]
        if condition:
            numbers = _numbers(connection, table, known, condition)
            strings = {name: _texts(connection, table, name, condition) for name in texts}
        else:
            numbers, strings = _all_at_once(connection, table, known, texts)
        size = int(numbers.pop("")[0])
        columns = [numbers[name] if name in numbers else np.full(size, NULL) for name in ints]
        if any(len(column) != size for column in (*columns, *strings.values())):
            raise sqlite3.DatabaseError("its rows changed while they were read")
        return columns, strings

    def rows(
        self, table: str, names: Sequence[str], condition: str = ""
    ) -> Iterator[tuple[object, ...]]:
        """Rows of a small table as plain values; columns the table lacks are None."""
        have = self.columns(table)
        if have:
            columns = [_quoted(name) if name in have else "NULL" for name in names]
            yield from self._connections[0].execute(_select(table, columns, condition))

    def close(self) -> None:
        """Release the file."""
        for connection in self._connections:
            connection.interrupt()  # a chunk that nobody waits for any more
        self._pool.shutdown(cancel_futures=True)
        for connection in self._connections:
            connection.close()


def _chunk(
    ints: Sequence[str],
    texts: Mapping[str, Intern],
    numbers: list[Column],
    strings: dict[str, Texts],
) -> dict[str, Column]:
    """Named columns, texts as codes."""
    chunk = dict(zip(ints, numbers, strict=True))
    size = len(numbers[0])
    for name, intern in texts.items():
        codes = map(intern, strings[name]) if name in strings else [intern(None)] * size
        chunk[name] = np.fromiter(codes, np.int32, size)
    return chunk


def _numbers(
    connection: sqlite3.Connection, table: str, names: list[str], condition: str
) -> dict[str, I8]:
    """Columns that hold any value, and the number of rows under an empty name."""
    counts = ["count(*)", *(f"count({_quoted(name)})" for name in names)]
    size, *filled = connection.execute(_select(table, counts, condition)).fetchone()
    # Columns without a value are frequent, and would be the longest texts.
    present = [name for name, some in zip(names, filled, strict=True) if some]
    concatenated = [f"CAST(group_concat({_integer(name)}) AS BLOB)" for name in present]
    if not present:
        return {"": np.array([size])}
    row = connection.execute(_select(table, concatenated, condition)).fetchone()
    parsed: list[I8] = [np.fromstring(text or b"", np.int64, sep=",") for text in row]
    return {**dict(zip(present, parsed, strict=True)), "": np.array([size])}


def _texts(connection: sqlite3.Connection, table: str, name: str, condition: str) -> Texts:
    """One text column as bytes (None: NULL): all texts as one, cut by their lengths."""
    blob = f"CAST({_quoted(name)} AS BLOB)"
    lengths = f"CAST(group_concat(ifnull(length({blob}), {_NO_TEXT})) AS BLOB)"
    joined = f"CAST(group_concat({_quoted(name)}, '') AS BLOB)"
    with suppress(sqlite3.DataError):  # longer than a string of SQLite may be
        sizes, text = connection.execute(_select(table, [lengths, joined], condition)).fetchone()
        text = text or b""  # all NULL, or no rows
        size: I8 = np.fromstring(sizes or b"", np.int64, sep=",")
        end = np.cumsum(np.maximum(size, 0))
        if end[-1:].sum() == len(text):  # else the database is not in UTF-8
            begin = end - np.maximum(size, 0)
            parts = zip(size.tolist(), begin.tolist(), end.tolist(), strict=True)
            return [None if length < 0 else text[low:high] for length, low, high in parts]
    return list(chain.from_iterable(connection.execute(_select(table, [blob], condition))))


def _all_at_once(
    connection: sqlite3.Connection, table: str, names: list[str], texts: list[str]
) -> tuple[dict[str, I8], dict[str, Texts]]:
    """What `_numbers` and `_texts` give, in one statement.

    Without rowids an index may give each statement an order of its own.
    """
    columns = [*map(_integer, names), *(f"CAST({_quoted(name)} AS BLOB)" for name in texts), "1"]
    rows = connection.execute(_select(table, columns, "")).fetchall()
    values = list(zip(*rows, strict=True)) or [()] * len(columns)
    numbers = {name: np.array(values.pop(0), np.int64) for name in names}
    return numbers | {"": np.array([len(rows)])}, {name: [*values.pop(0)] for name in texts}


def _select(table: str, columns: list[str], condition: str) -> str:
    return f"SELECT {', '.join(columns)} FROM {_quoted(table)} {condition}"


def _integer(name: str) -> str:
    """SQL for a column as a 64-bit integer, whatever a user stored there."""
    return f"ifnull(CAST({_quoted(name)} AS INTEGER), {NULL})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
