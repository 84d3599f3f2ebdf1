"""Decode an SQLite file's pages many rows at a time: a fast table source.

What neither the compiled part nor numpy can decode is left to SQLite, batch by batch, so that all
sources always say the same.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np

from flame.core.columns import I8, Column
from flame.core.compiled import pages as compiled_pages
from flame.core.compiled.library import compiled
from flame.core.compiled.pages import (
    INTEGER,
    KEY_FILLED,
    KEY_INTEGER,
    KEY_TEXT,
    Key,
    PageDecoder,
    Wanted,
)
from flame.core.readers.sqlite.btree import Leaves, PageFile, UnsupportedError
from flame.core.readers.sqlite.cells import Cells, Fields, count_rows, measure_rows
from flame.core.readers.sqlite.numbering import NO_TEXT
from flame.core.readers.sqlite.rows import SqliteSource
from flame.core.readers.sqlite.source import (
    FILLED,
    NULL,
    NUMBER,
    ROWID,
    TEXT,
    Chunk,
    TableKey,
    TableQuery,
)

_BATCH = 1 << 22  # bytes of leaf pages decoded at a time

Decode = Callable[[I8], Chunk]
"""Decodes the rows on leaf pages; Unsupported where they hold anything unusual."""


class PageSource:
    """Tables of one SQLite file. All reads raise sqlite3.Error on damage."""

    def __init__(self, path: Path) -> None:
        with ExitStack() as opened:  # The file may go away meanwhile.
            self._sqlite = opened.enter_context(closing(SqliteSource(path)))
            self._file = opened.enter_context(closing(PageFile(path)))
            self._size = path.stat().st_size
            self._opened = opened.pop_all()

    def columns(self, table: str) -> frozenset[str]:
        """Return the column names of ``table``; empty if there is no such table."""
        return self._sqlite.columns(table)

    def size(self, table: str) -> int:
        """Return the largest rowid: the number of rows unless some were deleted."""
        return self._sqlite.size(table)

    def rows(
        self, table: str, names: Sequence[str], condition: str = ""
    ) -> Iterator[tuple[object, ...]]:
        """Yield rows of a small table as plain values; columns the table lacks are None."""
        return self._sqlite.rows(table, names, condition)

    def chunks(self, query: TableQuery) -> Iterator[Chunk]:
        """Yield the columns that ``query`` asks for of successive rows."""
        try:
            places, leaves = self._column_places(query.table), self._find_leaves(query.table)
        except (UnsupportedError, IndexError):
            yield from self._sqlite.chunks(query)
            return
        decode = self._decoder(places, query)
        room = self._size
        for pages, low, high in leaves.batches(max(_BATCH // self._file.page_size, 1)):
            try:
                chunks = [decode(pages)]
            except (UnsupportedError, IndexError):
                rows, taken = measure_rows(self._file, pages)
                room -= taken
                if room < 0:
                    raise sqlite3.DatabaseError("rows share their pages") from None
                chunks = _exactly(rows, self._sqlite.chunks_between(query, low, high))
            yield from filter(_length, chunks)

    def _column_places(self, table: str) -> dict[str, int]:
        """Return each column's place in a row; Unsupported for what is no plain rowid table."""
        schema = self._sqlite.rows("sqlite_master", ["type", "name", "sql"])
        sql = [text for kind, name, text in schema if (kind, name) == ("table", table)]
        if len(sql) != 1 or re.search(r"without\s+rowid", str(sql[0]), re.I):
            raise UnsupportedError
        places = self._sqlite.column_places(table)
        if not places or any(name.lower() == ROWID for name in places):
            raise UnsupportedError
        return places

    def _find_leaves(self, table: str) -> Leaves:
        schema = self._sqlite.rows("sqlite_master", ["name", "rootpage"])
        known = [(name, page) for name, page in schema if isinstance(page, int) and page]
        roots = [page for name, page in known if name == table]
        if not roots:
            raise UnsupportedError
        if [page for _, page in known].count(roots[0]) > 1:
            raise sqlite3.DatabaseError("two tables have the same pages")
        return self._file.find_leaves(roots[0])

    def _decoder(self, places: Mapping[str, int], query: TableQuery) -> Decode:
        numpy_decode = _NumpyDecoder(self._file, places, query)
        if compiled() is None:
            return numpy_decode
        return _CompiledDecoder(self._file, places, query)

    def close(self) -> None:
        """Release the file."""
        self._opened.close()


def _length(chunk: Chunk) -> int:
    return len(next(iter(chunk.values())))


def _exactly(rows: int, chunks: Iterable[Chunk]) -> list[Chunk]:
    """Return ``chunks``; raise for damage unless they have so many rows together.

    SQLite overlooks some by rowid, or goes on to other pages.
    """
    kept = list(chunks)
    if sum(map(_length, kept)) != rows:
        raise sqlite3.DatabaseError("a page is not where it belongs")
    return kept


class _NumpyDecoder:
    """Decode batches of pages by numpy."""

    def __init__(self, file: PageFile, places: Mapping[str, int], query: TableQuery) -> None:
        self._file, self._places, self._query = file, places, query
        key = query.key
        asked = [*query.ints, *((*key.names, key.text, *key.filled) if key else ())]
        self._wanted = {places[name] for name in asked if name in places}

    def __call__(self, pages: I8) -> Chunk:
        """Decode the rows on ``pages``."""
        _refuse_first(pages)
        file = self._file
        cells = Cells(file.read(pages), len(pages), file.page_size, file.usable)
        fields = cells.fields(self._wanted)
        chunk = {name: self._integers(cells, fields, name) for name in self._query.ints}
        if key := self._query.key:
            parts = [self._key_part(cells, fields, key, name) for name in key.names]
            chunk[NUMBER] = key.rows.number(parts)
        return chunk

    def _integers(self, cells: Cells, fields: Fields, name: str) -> Column:
        if name == ROWID:
            return cells.rowid
        if name not in self._places:
            return np.full(len(cells), NULL)
        return cells.integers(*fields[self._places[name]])

    def _key_part(self, cells: Cells, fields: Fields, key: TableKey, name: str) -> Column:
        if name == FILLED:
            present = [fields[self._places[one]] for one in key.filled if one in self._places]
            return cells.filled(present)
        if name != TEXT or key.texts is None:
            return self._integers(cells, fields, name)
        if key.text not in self._places:
            return np.full(len(cells), NO_TEXT)
        return key.texts.number(cells.texts(*fields[self._places[key.text]]))


class _CompiledDecoder:
    """Decode batches of pages by the compiled library."""

    def __init__(self, file: PageFile, places: Mapping[str, int], query: TableQuery) -> None:
        self._file, self._query = file, query
        wanted = [Wanted(places[name], INTEGER, name) for name in query.ints if name in places]
        if ROWID in query.ints:
            wanted.append(Wanted(-1, compiled_pages.ROWID, ROWID))
        if key := query.key:
            wanted += _key_columns(key, places)
        self._decoder = PageDecoder(wanted, _compiled_key(query.key), NULL)

    def __call__(self, pages: I8) -> Chunk:
        """Decode the rows on ``pages``."""
        _refuse_first(pages)
        file = self._file
        flat = file.read(pages)
        size = int(count_rows(flat, len(pages), file.page_size).sum())
        found = self._decoder.decode(flat, (len(pages), file.page_size, file.usable), size)
        if found is None:
            raise UnsupportedError
        columns, number = found
        chunk: Chunk = {
            name: columns[name] if name in columns else np.full(size, NULL)
            for name in self._query.ints
        }
        if self._query.key:
            chunk[NUMBER] = number
        return chunk


def _key_columns(key: TableKey, places: Mapping[str, int]) -> Iterator[Wanted]:
    for slot, name in enumerate(key.names):
        if name == FILLED:
            yield from (
                Wanted(places[one], KEY_FILLED, slot=slot) for one in key.filled if one in places
            )
        elif name == TEXT:
            if key.text in places:
                yield Wanted(places[key.text], KEY_TEXT, slot=slot)
        elif name in places:
            yield Wanted(places[name], KEY_INTEGER, slot=slot)


def _compiled_key(key: TableKey | None) -> Key | None:
    if key is None or key.rows.table is None:
        return None
    absent = {FILLED: 0, TEXT: NO_TEXT}
    texts = None if key.texts is None else key.texts.table
    return Key(key.rows.table, [absent.get(name, NULL) for name in key.names], texts)


def _refuse_first(pages: I8) -> None:
    """Refuse the first page of the file, which has another header."""
    if (pages == 1).any():
        raise UnsupportedError
