"""Open an SQLite file that belongs to somebody else: read-only, nothing written beside it."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from shlex import quote as quote_word
from struct import Struct
from typing import NamedTuple
from urllib.parse import quote

from flame.core.errors import InputError
from flame.core.readers.sqlite.btree import PageFile, UnsupportedError
from flame.core.readers.sqlite.cells import measure_rows

_JOURNAL_MAGIC = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
_LONGEST_WAIT = 1.0  # seconds
_LONGEST_PATH = 504  # bytes: MAX_PATHNAME of SQLite's Unix layer, less a journal's suffix
_WAL, _UTF8 = 2, 1
_SCHEMA_PAGES = 64  # looked at together


class _Header(NamedTuple):
    """The parts of a database header that matter here (https://sqlite.org/fileformat2.html)."""

    page_size: int
    read_version: int
    changes: int
    pages: int
    encoding: int
    pages_valid_for: int

    @property
    def size(self) -> int:
        """How long the file must be, bytes; 0 if the header does not say."""
        bytes_per_page = 1 << 16 if self.page_size == 1 else self.page_size
        return self.pages * bytes_per_page if self.changes == self.pages_valid_for else 0


_LAYOUT = Struct(">16x H x B 4x I I 24x I 32x I 4x")


def _read_header(path: Path) -> _Header:
    with path.open("rb") as file:
        head = file.read(_LAYOUT.size)
    if len(head) < _LAYOUT.size:
        raise _cut_off_error(path, _LAYOUT.size)
    return _Header(*_LAYOUT.unpack(head))


def _cut_off_error(path: Path, size: int) -> InputError:
    there = f"{path.stat().st_size:,} of at least {size:,} bytes are there"
    return InputError(f"{path}: cut off: {there}; copy or export it again")


def refuse_unreadable(path: Path) -> None:
    """Raise InputError for a database that is incomplete, or that flame would read wrongly.

    SQLite itself overlooks a last page that is cut off. Changes in a journal beside the file could
    only be read by writing beside it (recovery, shared memory): flame never does.
    """
    if len(os.fsencode(os.path.realpath(path))) > _LONGEST_PATH:
        raise InputError(f"{path}: its path is too long for SQLite: move it or shorten the path")
    header = _read_header(path)
    if header.size > path.stat().st_size:
        raise _cut_off_error(path, header.size)
    if header.encoding > _UTF8:
        raise InputError(f"{path}: its texts are UTF-16, which no Nsight Systems export is")
    wal, journal = _journal_path(path, "-wal"), _journal_path(path, "-journal")
    in_wal = header.read_version == _WAL and _size_or_zero(wal)
    unfinished = wal if in_wal else journal if _is_hot(journal) else None
    if unfinished:
        raise InputError(
            f"{path}: still being written, or left unfinished: its last changes are in "
            f"{unfinished.name}; let the writer end, or run: sqlite3 {quote_word(str(path))} VACUUM"
        )


def _journal_path(path: Path, suffix: str) -> Path:
    """Return where SQLite keeps a journal: beside the target of a link."""
    return Path(os.path.realpath(path) + suffix)


def _size_or_zero(path: Path) -> int:
    with suppress(OSError):  # there is none, or its name would be too long
        return path.stat().st_size if path.is_file() else 0
    return 0


def _is_hot(journal: Path) -> bool:
    if not _size_or_zero(journal):
        return False
    with journal.open("rb") as file:
        return file.read(len(_JOURNAL_MAGIC)) == _JOURNAL_MAGIC


def connect(path: Path) -> sqlite3.Connection:
    """Open read-only; as immutable where SQLite would need to lock or write and cannot.

    A database in WAL mode, or with any file called like its log, would get a shared-memory file
    beside it, and one on a read-only file system cannot be locked.
    """
    _refuse_shared_schema(path)
    if _read_header(path).read_version == _WAL or _size_or_zero(_journal_path(path, "-wal")):
        return _open(path, "mode=ro&immutable=1")
    try:
        return _open(path, "mode=ro")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
            raise InputError(
                f"{path}: locked by a program that is writing it; try again when it has ended"
            ) from None
        return _open(path, "mode=ro&immutable=1")


def _refuse_shared_schema(path: Path) -> None:
    """Raise sqlite3.DatabaseError for a schema of more bytes than the file: SQLite reads it all."""
    with closing(PageFile(path)) as file:
        if not file.is_database:
            return  # SQLite says so
        try:
            leaves = file.find_leaves(1)
        except (UnsupportedError, IndexError):
            raise sqlite3.DatabaseError("a page of its schema is not where it belongs") from None
        room = path.stat().st_size
        for pages, _, _ in leaves.batches(_SCHEMA_PAGES):
            room -= measure_rows(file, pages)[1]
            if room < 0:
                raise sqlite3.DatabaseError("rows share their pages")


def _open(path: Path, mode: str) -> sqlite3.Connection:
    name = quote(str(path.absolute()), errors="surrogateescape")
    connection = sqlite3.connect(
        f"file:{name}?{mode}", timeout=_LONGEST_WAIT, uri=True, check_same_thread=False
    )
    # Exports hold texts that are not UTF-8 (environment values, user names).
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.set_authorizer(_authorize)
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _authorize(action: int, *_: object) -> int:
    """Let views compute what they like, but not for ever."""
    return sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_RECURSIVE else sqlite3.SQLITE_OK
