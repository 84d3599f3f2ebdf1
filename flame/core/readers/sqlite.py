"""The reference table source: Python's sqlite3, read-only, never writing next to the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from urllib.parse import quote

import numpy as np

from flame.core.columns import Column
from flame.core.errors import InputError
from flame.core.readers.tables import NULL, Intern

MAGIC = b"SQLite format 3\0"
_CHUNK = 1 << 16
_WAL_VERSION = 18  # offset of the header byte that is 2 in a database in WAL mode
_JOURNAL_MAGIC = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"


class SqliteSource:
    """Tables of one SQLite file. All reads raise sqlite3.Error on damage."""

    def __init__(self, path: Path) -> None:
        _refuse_unfinished(path)
        self._connection = _connect(path)
        # Exports hold texts that are not UTF-8 (environment values, user names).
        self._connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        self._columns: dict[str, frozenset[str]] = {}

    def columns(self, table: str) -> frozenset[str]:
        """Column names of ``table``; empty if there is no such table."""
        if table not in self._columns:
            found = self._connection.execute(f"PRAGMA table_info({_quoted(table)})")
            self._columns[table] = frozenset(str(row[1]) for row in found)
        return self._columns[table]

    def size(self, table: str) -> int:
        """The largest rowid: the number of rows unless some were deleted."""
        return max(self._rowid(table, "max") or 0, 0) if self.columns(table) else 0

    def chunks(
        self, table: str, ints: Sequence[str], texts: Mapping[str, Intern] | None = None
    ) -> Iterator[dict[str, Column]]:
        """Successive rows: int64 per name in ``ints``, int32 codes per name in ``texts``.

        SQLite itself writes each number column as one text per chunk, which numpy parses: twice as
        fast as a Python object per value. Texts come row by row through a cursor in step with it.
        """
        have = self.columns(table)
        if not have:
            return
        wanted = {name: intern for name, intern in (texts or {}).items() if name in have}
        for condition in self._slices(table):
            block = self._numbers(table, ints, condition)
            chunk: dict[str, Column] = dict(zip(ints, block, strict=True))
            size = len(block[0])
            for name, intern in (texts or {}).items():
                chunk[name] = np.full(size, intern(None), np.int32)
            for name, intern in wanted.items():
                column = self._select(table, [f"CAST({_quoted(name)} AS BLOB)"], condition)
                chunk[name] = np.fromiter(map(intern, chain.from_iterable(column)), np.int32, size)
            if size:
                yield chunk

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
        if "rowid" in self.columns(table):  # somebody's own column of that name
            return None
        with suppress(sqlite3.OperationalError):
            row = self._select(table, [f"{which}(rowid)"], condition).fetchone()
            return row[0] if isinstance(row[0], int) else None
        return None

    def _numbers(self, table: str, names: Sequence[str], condition: str) -> list[Column]:
        """One int64 column per name, of the rows that meet ``condition``."""
        have = self.columns(table)
        known = [name for name in names if name in have]
        counts = self._select(
            table, ["count(*)", *(f"count({_quoted(n)})" for n in known)], condition
        )
        size, *filled = counts.fetchone()
        # Columns without a value are frequent, and would be the longest texts.
        present = [name for name, some in zip(known, filled, strict=True) if some]
        texts = [f"CAST(group_concat({_integer(name)}) AS BLOB)" for name in present]
        row = self._select(table, texts, condition).fetchone() if present else ()
        found = {n: np.fromstring(t, np.int64, sep=",") for n, t in zip(present, row, strict=True)}
        return [found[name] if name in found else np.full(size, NULL) for name in names]

    def rows(
        self, table: str, names: Sequence[str], condition: str = ""
    ) -> Iterator[tuple[object, ...]]:
        """Rows of a small table as plain values; columns the table lacks are None."""
        have = self.columns(table)
        if have:
            yield from self._select(
                table, [_quoted(n) if n in have else "NULL" for n in names], condition
            )

    def _select(self, table: str, columns: list[str], condition: str = "") -> sqlite3.Cursor:
        return self._connection.execute(
            f"SELECT {', '.join(columns)} FROM {_quoted(table)} {condition}"
        )

    def close(self) -> None:
        """Release the file."""
        self._connection.close()


def _integer(name: str) -> str:
    """SQL for a column as a 64-bit integer, whatever a user stored there."""
    return f"ifnull(CAST({_quoted(name)} AS INTEGER), {NULL})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _refuse_unfinished(path: Path) -> None:
    """InputError for a database whose last changes are still in a journal beside it.

    Reading it right would mean to write beside it (recovery, shared memory): flame never does.
    """
    with path.open("rb") as file:
        in_wal_mode = file.read(_WAL_VERSION + 1)[_WAL_VERSION:] == b"\2"
    wal, journal = (Path(f"{path}{suffix}") for suffix in ("-wal", "-journal"))
    unfinished = wal if in_wal_mode and _size(wal) else journal if _is_hot(journal) else None
    if unfinished:
        raise InputError(
            f"{path}: still being written, or left unfinished: its last changes are in "
            f"{unfinished.name}; let the writer end, or run: sqlite3 {path} VACUUM"
        )


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _is_hot(journal: Path) -> bool:
    if not _size(journal):
        return False
    with journal.open("rb") as file:
        return file.read(len(_JOURNAL_MAGIC)) == _JOURNAL_MAGIC


def _connect(path: Path) -> sqlite3.Connection:
    """Open read-only; as immutable where SQLite would need to lock or write and cannot.

    A database in WAL mode would get a shared-memory file beside it, and one on a read-only
    file system cannot be locked.
    """
    with path.open("rb") as file:
        in_wal_mode = file.read(_WAL_VERSION + 1)[_WAL_VERSION:] == b"\2"
    if not in_wal_mode:
        with suppress(sqlite3.OperationalError):
            return _open(path, "mode=ro")
    return _open(path, "mode=ro&immutable=1")


def _open(path: Path, mode: str) -> sqlite3.Connection:
    name = quote(str(path.absolute()), errors="surrogateescape")
    connection = sqlite3.connect(f"file:{name}?{mode}", uri=True, check_same_thread=False)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA mmap_size = 17179869184")
    connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return connection
