"""The reference table source: Python's sqlite3, read-only, never writing next to the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
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
        if not self.columns(table):
            return 0
        try:
            row = self._connection.execute(f"SELECT max(rowid) FROM {_quoted(table)}").fetchone()
        except sqlite3.OperationalError:  # a view has no rowid
            return 0
        return int(row[0] or 0) if isinstance(row[0], int) else 0

    def chunks(
        self, table: str, ints: Sequence[str], texts: Mapping[str, Intern] | None = None
    ) -> Iterator[dict[str, Column]]:
        """Successive rows: int64 per name in ``ints``, int32 codes per name in ``texts``.

        Numbers and texts come through cursors of their own, in step: numbers then go into numpy
        without a Python object per row.
        """
        texts = texts or {}
        have = self.columns(table)
        if not have:
            return
        known = [name for name in ints if name in have]
        numbers = self._select(
            table, [f"ifnull(CAST({_quoted(n)} AS INTEGER), {NULL})" for n in known]
        )
        text_cursors = {
            name: self._select(table, [f"CAST({_quoted(name)} AS BLOB)"])
            for name in texts
            if name in have
        }
        while True:
            flat = np.fromiter(chain.from_iterable(islice(numbers, _CHUNK)), np.int64)
            block = flat.reshape(-1, len(known))
            if not len(block):
                return
            chunk: dict[str, Column] = dict(zip(known, np.ascontiguousarray(block.T), strict=True))
            for name in ints:
                chunk.setdefault(name, np.full(len(block), NULL))
            for name, intern in texts.items():
                chunk[name] = _codes(text_cursors.get(name), intern, len(block))
            yield chunk

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


def _codes(cursor: sqlite3.Cursor | None, intern: Intern, count: int) -> Column:
    """The next ``count`` texts of ``cursor`` as codes."""
    if cursor is None:
        return np.full(count, intern(None), np.int32)
    texts: Iterator[bytes | None] = chain.from_iterable(islice(cursor, count))
    return np.fromiter(map(intern, texts), np.int32, count)


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
