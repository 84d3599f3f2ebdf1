"""Tables of SQLite files, whose pages compiled code and numpy decode: both say what SQLite says."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from pathlib import Path
from unittest import mock
from zlib import crc32

from flame.core.errors import InputError
from flame.core.names.nvtx import KEPT_PREFIXES, strip_running
from flame.core.readers.sqlite import pages
from flame.core.readers.sqlite.numbering import RowNumbers, Stripping, TextNumbers
from flame.core.readers.sqlite.pages import PageSource
from flame.core.readers.sqlite.rows import SqliteSource
from flame.core.readers.sqlite.source import FILLED, NUMBER, ROWID, TEXT, TableKey, TableQuery
from tests.fuzz.checks import FoundError, write
from tests.fuzz.mutations import INTEGERS
from tests.fuzz.target import Target
from tests.support.compiled import only_numpy

PAGE_SIZES = (512, 1024)
LARGER = (("plain", 4096), ("odd", 4096), ("plain", 65536))
TABLE = "t"
_SMALL_BATCH = 1 << 12

Rows = list[tuple[object, ...]]

_REFUSED = (InputError, sqlite3.Error, UnicodeDecodeError, MemoryError)
"""What SQLite raises of damage: in words that may be no text, and of rows of gigabytes."""

_TEXTS = ("mul, op_id = 7", None, "é", "", b"\xff\0", "range", "x" * 70)
_ODD = (*_TEXTS, 7, "12", 1.5, "y" * 900)
_KINDS = {
    "plain": "(a, b, c)",
    "typed": "(a INTEGER, b INTEGER, c TEXT)",
    "odd": "(a INTEGER, b REAL, c BLOB)",
    "without_rowid": "(a PRIMARY KEY, b, c) WITHOUT ROWID",
    "alias": "(a INTEGER PRIMARY KEY, b, c)",
    "added": "(a, b)",
}


def check(data: bytes) -> None:
    path = write("pages.sqlite", data)
    batch = _SMALL_BATCH if len(data) // 512 % 2 else pages._BATCH
    with mock.patch.object(pages, "_BATCH", batch):
        answers = _read(path, PageSource, (nullcontext, only_numpy), crc32(data))
    if not answers:
        return
    fast, reference = answers
    _compare("compiled", fast, "numpy", reference)
    if _is_whole(path):
        (plain,) = _read(path, SqliteSource, (nullcontext,), crc32(data))
        _compare("pages", reference, "SQLite", plain)


def _compare(one: str, found: Rows | None, other: str, expected: Rows | None) -> None:
    if found != expected:
        raise FoundError(f"{one} {_said(found)}, {other} {_said(expected)}")


def _said(rows: Rows | None) -> str:
    return "an error" if rows is None else f"{len(rows)} rows: {str(rows)[:300]}"


def _is_whole(path: Path) -> bool:
    """Whether SQLite finds no damage."""
    with suppress(*_REFUSED), closing(sqlite3.connect(path)) as database:
        return database.execute("PRAGMA integrity_check(1)").fetchall() == [("ok",)]
    return False


def _read(
    path: Path,
    kind: type[PageSource] | type[SqliteSource],
    ways: Sequence[Callable[[], AbstractContextManager[None]]],
    number: int,
) -> list[Rows | None]:
    """All rows in these ways, by one of several queries, with their keys and texts.

    None for what cannot be read; nothing where there is no table.
    """
    answers: list[Rows | None] = []
    try:
        with closing(kind(path)) as source:
            columns = sorted(source.columns(TABLE))[:4]
            for way in ways if columns else ():
                with way():
                    answers.append(_answer(source, _query(columns, number)))
    except _REFUSED:
        return []
    return answers


def _answer(source: PageSource | SqliteSource, query: TableQuery) -> Rows | None:
    try:
        return list(_rows(source, query))
    except _REFUSED:
        return None


def _query(columns: list[str], number: int) -> TableQuery:
    """One that wants a column twice, or such that there are not."""
    first, last, missing = columns[0], columns[-1], "missing"
    stripped = TextNumbers(Stripping(strip_running, KEPT_PREFIXES))
    named = TableKey((TEXT, first, FILLED), RowNumbers(3), last, stripped, columns[1:])
    filled = TableKey((FILLED, TEXT, missing), RowNumbers(3), last, TextNumbers(), [first, missing])
    if number % 2:
        return TableQuery(TABLE, columns, filled)
    return TableQuery(TABLE, [*columns[:2], ROWID, missing, first], named)


def _rows(source: PageSource | SqliteSource, query: TableQuery) -> Iterator[tuple[object, ...]]:
    key, names = query.key, dict.fromkeys(query.ints)
    for chunk in source.chunks(query):
        parts: list[list[object]] = [chunk[name].tolist() for name in names]
        if key and key.texts is not None:
            keys, texts = key.rows.rows().tolist(), [*key.texts, None]
            text = key.names.index(TEXT)
            rows = [(*row, texts[row[text]]) for row in keys]
            rows = [(*row[:text], *row[text + 1 :]) for row in rows]  # numbers are not compared
            parts.append([rows[number] for number in chunk[NUMBER].tolist()])
        yield from zip(*parts, strict=True)


def _made(kind: str, page_size: int) -> bytes:
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(f"PRAGMA page_size = {page_size}")
        database.execute(f"CREATE TABLE {TABLE} {_KINDS[kind]}")
        database.executemany(
            f"INSERT OR IGNORE INTO {TABLE} VALUES ({_holes(kind)})", _values(kind)
        )
        if kind == "added":
            database.execute(f"ALTER TABLE {TABLE} ADD COLUMN c DEFAULT 7")
            database.executemany(f"INSERT INTO {TABLE} VALUES (?, ?, ?)", _values("plain"))
        if kind == "plain":
            database.execute(f"UPDATE {TABLE} SET rowid = rowid - 5 - (rowid < 9) * {1 << 62}")
        database.commit()
        return database.serialize()


def _holes(kind: str) -> str:
    return "?, ?" if kind == "added" else "?, ?, ?"


def _values(kind: str) -> Iterable[tuple[object, ...]]:
    texts = _ODD if kind in ("odd", "added") else _TEXTS
    for number in range(70):
        value = INTEGERS[number % len(INTEGERS)] * (-1) ** (number // 20)
        row = (number if kind == "alias" else value, number % 3 or None, texts[number % len(texts)])
        yield row[:2] if kind == "added" else row


def seeds() -> list[bytes]:
    """Mostly small ones: a thousand times as many can be tried."""
    small = [(kind, size) for kind in _KINDS for size in PAGE_SIZES]
    return [_made(kind, size) for kind, size in (*small, *LARGER)]


def mutate(data: bytes, draw: random.Random) -> bytes:
    """Change cells by SQL, or bytes where the pages' headers, pointers and rows begin."""
    if draw.random() < 0.1:
        with closing(sqlite3.connect(":memory:")) as database, suppress(*_REFUSED):
            database.deserialize(data)
            _change_row(database, draw)
            database.commit()
            changed = database.serialize()
            return changed if len(changed) <= TARGET.longest else data
    size = int.from_bytes(data[16:18], "big") or 512
    size = 1 << 16 if size == 1 else size
    changing = bytearray(data)
    for _ in range(draw.choice((1, 1, 1, 2, 5))):
        _change_page(changing, size, draw)
    return bytes(changing)


def _change_row(database: sqlite3.Connection, draw: random.Random) -> None:
    column = draw.choice("abc")
    value = draw.choice((*INTEGERS, -1, 1 << 62, None, "text", "x" * 600, b"", 0.5, "9"))
    where = f"WHERE random() % {draw.choice((1, 3, 20))} = 0"
    how = draw.randrange(5)
    if how == 0:
        database.execute(f"DELETE FROM {TABLE} {where}")
    elif how == 1:
        database.execute(f"UPDATE {TABLE} SET rowid = rowid + ?", [draw.choice((1, -300, 1 << 40))])
    elif how == 2:
        database.execute(f"ALTER TABLE {TABLE} ADD COLUMN d{draw.randrange(9)} DEFAULT 5")
    else:
        database.execute(f"UPDATE {TABLE} SET {column} = ? {where}", [value])


def _change_page(data: bytearray, size: int, draw: random.Random) -> None:
    """A byte of a page: of its header, a pointer, the beginning of a row, or anywhere.

    Or a page or a pointer is that of another.
    """
    count = len(data) // size
    if count < 2:
        return
    page = draw.randrange(1, count) * size
    cells = min(int.from_bytes(data[page + 3 : page + 5], "big"), max(size - 8, 0) // 2)
    how, at = draw.randrange(11), page + draw.randrange(12)
    if how == 10 and cells:
        one, other = (page + 8 + 2 * draw.randrange(cells) for _ in range(2))
        data[one : one + 2] = data[other : other + 2]
        return
    if how == 1 and cells:
        at = page + 8 + draw.randrange(2 * cells)
    elif how == 2:
        other = draw.randrange(count) * size
        data[page : page + size] = data[other : other + size]
        return
    elif how > 3 and cells:
        pointer = page + 8 + 2 * draw.randrange(cells)
        at = page + int.from_bytes(data[pointer : pointer + 2], "big") + draw.randrange(12)
    elif how > 2:
        at = draw.randrange(len(data))
    if at < len(data):
        data[at] = draw.choice((0, 1, 8, 9, 10, 12, 13, 127, 128, 255, draw.randrange(256)))


TARGET = Target("pages", seeds, check, mutate, 1 << 17, share=0.95)
