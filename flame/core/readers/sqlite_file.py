"""Opening an SQLite file that belongs to somebody else: read-only, nothing written beside it."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from flame.core.errors import InputError

MAGIC = b"SQLite format 3\0"
_WAL_VERSION = 18  # offset of the header byte that is 2 in a database in WAL mode
_JOURNAL_MAGIC = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"


def refuse_unfinished(path: Path) -> None:
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


def connect(path: Path) -> sqlite3.Connection:
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
    # Exports hold texts that are not UTF-8 (environment values, user names).
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return connection
