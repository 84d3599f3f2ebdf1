"""Name the GPUs of an export at a glance: one of thousands of files in a folder."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from flame.core.errors import InputError
from flame.core.readers.nsys.reader import TABLES
from flame.core.readers.shared.heads import read_unpacked_head
from flame.core.readers.sqlite.connection import connect

_HEAD = 1 << 16
_GPUS = ("TARGET_INFO_GPU", "TARGET_INFO_CUDA_GPU")  # the newer one first
_MOST_TABLES, _MOST_GPUS = 10_000, 64
_LONGEST = 1 << 20
"""Bytes of a name."""


def glance(path: Path) -> tuple[str, ...] | None:
    """Name the GPUs of the machine that was recorded; none where the file does not say.

    None where the SQLite file at ``path`` is no export. Where its tables cannot be read (it is
    damaged, or being written) it is one if the name of one stands in its beginning.
    """
    try:
        with closing(connect(path)) as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
            query = f"SELECT name FROM sqlite_master WHERE type = 'table' LIMIT {_MOST_TABLES}"
            tables = {name for (name,) in connection.execute(query)}
            if tables.isdisjoint(TABLES):
                return None
            return next((names for names in _device_names(connection, tables) if names), ())
    except (InputError, OSError, sqlite3.Error):
        head = read_unpacked_head(path, _HEAD)
        return () if names_table(head) else None


def names_table(head: bytes) -> bool:
    """Tell whether the beginning of a database names a table of an export."""
    return any(table.encode() in head for table in TABLES)


def _device_names(connection: sqlite3.Connection, tables: set[str]) -> Iterator[tuple[str, ...]]:
    for table in _GPUS:
        if table in tables:
            with suppress(sqlite3.Error):
                columns = connection.execute(f"PRAGMA table_xinfo({table})").fetchall()
                if any(column[-1] for column in columns):
                    continue  # A column that is computed may take as long as it likes.
                rows = connection.execute(f"SELECT name FROM {table} LIMIT {_MOST_GPUS}").fetchall()
                yield tuple(name for (name,) in rows if isinstance(name, str))
