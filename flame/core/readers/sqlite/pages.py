"""Decode an SQLite file's pages by numpy, many rows at a time: a fast table source.

The file format is public and stable (https://sqlite.org/fileformat2.html). What is rare in traces
(overflow pages, rows shorter than the table, numbers stored as text, …) is left to SQLite, chunk
by chunk, so that both sources always say the same.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from flame.core.columns import I8, U1, Bool, Column
from flame.core.readers.sqlite.rows import SqliteSource
from flame.core.readers.sqlite.source import NULL, Intern

_BATCH = 1 << 22  # bytes of leaf pages decoded at a time
_LEAF, _INTERIOR = 13, 5
_FIRST_ROWID, _LAST_ROWID = -(1 << 63), (1 << 63) - 1
_WIDTH = np.array([0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0], np.int64)  # bytes by serial type below 12
_SIZES = np.append(_WIDTH, np.arange(116) >> 1)  # bytes by serial type below 128
_REAL, _ZERO, _ONE, _BLOB = 7, 8, 9, 12  # serial types; 10 and 11 are reserved


class UnsupportedError(Exception):
    """Raised for a part of the file that is for SQLite itself to read."""


@dataclass(frozen=True)
class _Leaves:
    """Leaf pages of a table in rowid order, and the largest rowid each may hold."""

    page: I8
    last: I8


class PageSource:
    """Tables of one SQLite file. All reads raise sqlite3.Error on damage."""

    def __init__(self, path: Path) -> None:
        self._sqlite = SqliteSource(path)
        self._file = path.open("rb", buffering=0)
        head = self._file.read(100)
        size = int.from_bytes(head[16:18], "big")
        self._page = 1 << 16 if size == 1 else size
        self._usable = self._page - head[20]
        self._pages = os.fstat(self._file.fileno()).st_size // self._page

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

    def chunks(
        self, table: str, ints: Sequence[str], texts: Mapping[str, Intern] | None = None
    ) -> Iterator[dict[str, Column]]:
        """Yield successive rows: int64 per name in ``ints``, int32 codes per name in ``texts``."""
        try:
            places, leaves = self._column_places(table), self._find_leaves(table)
        except (UnsupportedError, IndexError):
            yield from self._sqlite.chunks(table, ints, texts)
            return
        count = max(_BATCH // self._page, 1)
        before = np.append(_FIRST_ROWID, leaves.last[:-1] + 1)
        for first in range(0, len(leaves.page), count):
            pages = leaves.page[first : first + count]
            try:
                chunks = [self._decode_pages(pages, places, ints, texts or {})]
            except (UnsupportedError, IndexError):
                low, high = int(before[first]), int(leaves.last[first + len(pages) - 1])
                chunks = list(self._sqlite.chunks_between(table, ints, texts or {}, low, high))
                self._check_count(pages, sum(len(chunk[ints[0]]) for chunk in chunks))
            yield from (chunk for chunk in chunks if len(chunk[ints[0]]))

    def _check_count(self, pages: I8, rows_read: int) -> None:
        """Raise for damage if ``pages`` hold more rows: SQLite overlooks some by rowid."""
        with suppress(UnsupportedError):
            blocks = self._read_pages(pages)
            rows = blocks[:, 3].astype(np.int64) << 8 | blocks[:, 4]
            if (blocks[:, 0] == _LEAF).all() and rows.sum() == rows_read:
                return
        raise sqlite3.DatabaseError("a page is not where it belongs")

    def _column_places(self, table: str) -> dict[str, int]:
        """Return each column's place in a row; Unsupported for what is no plain rowid table."""
        schema = self._sqlite.rows("sqlite_master", ["type", "name", "sql"])
        sql = [text for kind, name, text in schema if (kind, name) == ("table", table)]
        if len(sql) != 1 or re.search(r"without\s+rowid", str(sql[0]), re.I):
            raise UnsupportedError
        places = self._sqlite.column_places(table)
        if not places or any(name.lower() == "rowid" for name in places):
            raise UnsupportedError
        return places

    def _find_leaves(self, table: str) -> _Leaves:
        """Walk the table's interior pages; Unsupported if they do not make a tree."""
        schema = self._sqlite.rows("sqlite_master", ["name", "rootpage"])
        roots = [page for name, page in schema if name == table and isinstance(page, int)]
        page, last = np.array(roots[:1], np.int64), np.array([_LAST_ROWID])
        for _ in range(20):  # a tree of 20 levels would not fit any disk
            blocks = self._read_pages(page)
            if not (blocks[:, 0] == _INTERIOR).any():
                return _Leaves(page, last)
            below = [
                self._read_children(*row)
                for row in zip(blocks, page.tolist(), last.tolist(), strict=True)
            ]
            page, last = (np.concatenate(part) for part in zip(*below, strict=True))
            if len(page) > self._pages:
                break
        raise UnsupportedError

    def _read_children(self, block: U1, page: int, last: int) -> tuple[I8, I8]:
        """Return the children of an interior page, and the largest rowid that each may hold."""
        if block[0] != _INTERIOR or page == 1:  # all leaves are equally deep
            raise UnsupportedError
        flat = np.concatenate([block, np.zeros(16, np.uint8)])
        count = int(block[3]) << 8 | int(block[4])
        pointer = 12 + 2 * np.arange(count)
        cell = flat[pointer].astype(np.int64) << 8 | flat[pointer + 1]
        children = _big_endian(flat, cell, 4)
        keys, _ = _varint(flat, cell + 4)
        rightmost = int.from_bytes(block[8:12].tobytes(), "big")
        return np.append(children, rightmost), np.append(keys, last)

    def _read_pages(self, pages: I8) -> U1:
        """Read the bytes of ``pages``, u8[len(pages), page size]; neighbours in one go."""
        if len(pages) == 0 or pages.min() < 1 or pages.max() > self._pages:
            raise UnsupportedError
        starts = np.flatnonzero(np.concatenate([[True], np.diff(pages) != 1]))
        sizes = np.diff(np.append(starts, len(pages)))
        parts = [
            os.pread(self._file.fileno(), size * self._page, (page - 1) * self._page)
            for page, size in zip(pages[starts].tolist(), sizes.tolist(), strict=True)
        ]
        blocks = np.frombuffer(b"".join(parts), np.uint8)
        if len(blocks) != len(pages) * self._page:
            raise UnsupportedError
        return blocks.reshape(len(pages), self._page)

    def _decode_pages(
        self, pages: I8, places: dict[str, int], ints: Sequence[str], texts: Mapping[str, Intern]
    ) -> dict[str, Column]:
        """Decode the rows of ``pages``; Unsupported where they hold anything unusual."""
        blocks = self._read_pages(pages)
        if (blocks[:, 0] != _LEAF).any() or (pages == 1).any():
            raise UnsupportedError
        cells = _Cells(blocks, self._usable)
        wanted = {places[name] for name in (*ints, *texts) if name in places}
        fields = cells.fields(wanted)
        size = len(cells)
        chunk: dict[str, Column] = {}
        for name in ints:
            known = name in places
            chunk[name] = cells.integers(*fields[places[name]]) if known else np.full(size, NULL)
        for name, intern in texts.items():
            values = cells.texts(*fields[places[name]]) if name in places else [None] * size
            chunk[name] = np.fromiter(map(intern, values), np.int32, size)
        return chunk

    def close(self) -> None:
        """Release the file."""
        self._file.close()
        self._sqlite.close()


class _Cells:
    """All rows on a batch of leaf pages, and where the fields of each are."""

    def __init__(self, blocks: U1, usable: int) -> None:
        count, size = blocks.shape
        # Reads of eight bytes may begin at the very last one.
        self._flat = np.concatenate([blocks.reshape(-1), np.zeros(16, np.uint8)])
        rows = blocks[:, 3].astype(np.int64) << 8 | blocks[:, 4]
        base = np.repeat(np.arange(count) * size, rows)
        number = np.arange(len(base)) - np.repeat(np.cumsum(rows) - rows, rows)
        pointer = base + 8 + 2 * number
        cell = base + (self._flat[pointer].astype(np.int64) << 8 | self._flat[pointer + 1])
        payload, at = _varint(self._flat, cell)
        if len(payload) and payload.max() > usable - 35:
            raise UnsupportedError  # continues on overflow pages
        rowid, self._header = _varint(self._flat, at)
        if (rowid[1:] <= rowid[:-1]).any() or (count > 1 and not rows.all()):
            raise UnsupportedError  # damaged: a page of another place
        length, self._types = _varint(self._flat, self._header)
        self._data = self._header + length
        self._end = self._header + payload
        if (self._end > base + size).any():
            raise UnsupportedError

    def __len__(self) -> int:
        return len(self._header)

    def fields(self, wanted: set[int]) -> dict[int, tuple[I8, I8]]:
        """Return (serial type, position) of the ``wanted`` columns of every row."""
        fields = {}
        at, data = self._types, self._data
        for column in range(max(wanted, default=-1) + 1):
            if (at >= self._data).any():
                raise UnsupportedError  # written before the column was added
            serial, at = _varint(self._flat, at)
            if column in wanted:
                fields[column] = (serial, data)
            data = data + _sizes(serial)
            if (serial < 0).any() or (data > self._end).any():
                raise UnsupportedError  # damaged
        return fields

    def integers(self, serial: I8, at: I8) -> I8:
        """Return the values of an integer column."""
        if len(serial) and (serial.max() >= 10 or (serial == _REAL).any()):
            raise UnsupportedError
        value = _big_endian(self._flat, at, _WIDTH[serial])
        value[serial == 0] = NULL
        value[serial == _ZERO] = 0
        value[serial == _ONE] = 1
        return value

    def texts(self, serial: I8, at: I8) -> list[bytes | None]:
        """Return the values of a text column, as stored."""
        if not serial.any():
            return [None] * len(serial)
        if ((serial > 0) & (serial < _BLOB)).any():
            raise UnsupportedError  # a number
        raw = self._flat.tobytes()
        end = at + _sizes(serial)
        parts = zip((serial > 0).tolist(), at.tolist(), end.tolist(), strict=True)
        return [raw[low:high] if there else None for there, low, high in parts]


def _sizes(serial: I8) -> I8:
    """Return how many bytes values of these serial types take."""
    if len(serial) and serial.min() >= 0 and serial.max() < len(_SIZES):
        return _SIZES[serial]
    return np.where(serial < _BLOB, _WIDTH[np.minimum(serial, 11)], (serial - _BLOB) >> 1)


def _big_endian(flat: U1, at: I8, width: Column | int) -> I8:
    """Decode signed big-endian numbers of ``width`` bytes (0 to 8) at ``at``."""
    eight = np.lib.stride_tricks.as_strided(flat[:8].view(">i8"), (len(flat) - 7,), (1,))
    value = eight[at].astype(np.int64)
    shifted: I8 = value >> np.minimum(64 - 8 * np.asarray(width), 63)
    return shifted


def _varint(flat: U1, at: I8) -> tuple[I8, I8]:
    """Decode SQLite's variable-length integers at ``at``; return the positions behind them too."""
    first = flat[at]
    value, after = first.astype(np.int64), at + 1
    more = np.flatnonzero(first >= 0x80)
    if len(more):
        value[more], after[more] = _long_varint(flat, at[more])
    return value, after


def _long_varint(flat: U1, at: I8) -> tuple[I8, I8]:
    """Decode varints of two to nine bytes; the ninth counts with all its bits."""
    value, after = np.zeros(len(at), np.int64), at.copy()
    going: Bool = np.ones(len(at), bool)
    for _ in range(8):
        byte = flat[after[going]].astype(np.int64)
        value[going] = value[going] << 7 | (byte & 0x7F)
        after[going] += 1
        going[going] = byte >= 0x80
        if not going.any():
            return value, after
    value[going] = value[going] << 8 | flat[after[going]]
    after[going] += 1
    return value, after
