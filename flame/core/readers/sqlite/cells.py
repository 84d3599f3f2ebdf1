"""Decode the rows on leaf pages by numpy, column by column: the reference of the compiled part.

What is rare in traces (overflow pages, rows shorter than the table, numbers stored as text, …) is
refused, and left to SQLite.
"""

from __future__ import annotations

import sqlite3

import numpy as np

from flame.core.columns import I8, U1, Bool, expand_ranges
from flame.core.readers.sqlite.btree import LEAF, PageFile, UnsupportedError, count_cells, header_at
from flame.core.readers.sqlite.source import NULL
from flame.core.readers.sqlite.varints import decode_big_endian, decode_varints

_WIDTH = np.array([0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0], np.int64)  # bytes by serial type below 12
_SIZES = np.append(_WIDTH, np.arange(116) >> 1)  # bytes by serial type below 128
_REAL, _ZERO, _ONE, _RESERVED, _BLOB = 7, 8, 9, 10, 12  # serial types

Fields = dict[int, tuple[I8, I8]]
"""Serial type and position of the values of some columns, by the columns' places."""


def count_rows(flat: U1, count: int, size: int) -> I8:
    """Return how many rows each of ``count`` leaf pages of ``size`` bytes says it has, i8[n].

    Unsupported where a page has no room for them: a few bytes would ask for gigabytes.
    """
    base = np.arange(count) * size
    if (flat[base] != LEAF).any():
        raise UnsupportedError
    return count_cells(flat, base, size)


def measure_rows(file: PageFile, pages: I8) -> tuple[int, int]:
    """Return how many rows leaf ``pages`` have, and bytes, those on overflow pages included.

    Raises sqlite3.DatabaseError where they are no leaves, or their rows overlap: SQLite itself
    would read what is there many times.
    """
    try:
        flat = file.read(pages)[: len(pages) * file.page_size + 16]
        base = np.arange(len(pages)) * file.page_size
        header = base + header_at(pages)
        if (flat[header] != LEAF).any():
            raise UnsupportedError
        rows = count_cells(flat, header, file.page_size)
        pointer = expand_ranges(header + 8, 2 * rows)[::2]
        offset = flat[pointer].astype(np.int64) << 8 | flat[pointer + 1]
        if (offset > file.page_size - 4).any():
            raise UnsupportedError
        cell = np.repeat(base, rows) + offset
        payload, at = decode_varints(flat, cell)
        _, row = decode_varints(flat, at)
    except (UnsupportedError, IndexError):
        raise sqlite3.DatabaseError("a page is not where it belongs") from None
    if (payload < 0).any():
        raise sqlite3.DatabaseError("a row has no size")
    taken = row - cell + _bytes_on_leaf(payload, file.usable)
    if _are_more_than_fit(taken, rows, header - base + 8, file.usable):
        raise sqlite3.DatabaseError("rows of a page overlap")
    return len(cell), sum(payload.tolist())


def _bytes_on_leaf(payload: I8, usable: int) -> I8:
    """Return how many bytes of rows of these sizes stand on their leaf."""
    least = (usable - 12) * 32 // 255 - 23
    some = least + (payload - least) % (usable - 4)
    longer = np.where(some <= usable - 35, some, least) + 4
    return np.where(payload <= usable - 35, payload, longer)


def _are_more_than_fit(taken: I8, rows: I8, header: I8 | int, usable: int) -> bool:
    """Return whether the ``rows`` of any page take more bytes than it has beside its ``header``."""
    filled = np.flatnonzero(rows)
    if len(filled) == 0:
        return False
    together = np.add.reduceat(taken, (np.cumsum(rows) - rows)[filled])
    return bool((together > (usable - header - 2 * rows)[filled]).any())


class Cells:
    """Find all rows on a batch of leaf pages, and where the fields of each are.

    ``flat`` u8 holds ``count`` pages of ``size`` bytes and a few more; ``rowid`` i8[rows].
    """

    def __init__(self, flat: U1, count: int, size: int, usable: int) -> None:
        self._flat = flat[: count * size + 16]
        rows = count_rows(self._flat, count, size)
        base = np.repeat(np.arange(count) * size, rows)
        number = np.arange(len(base)) - np.repeat(np.cumsum(rows) - rows, rows)
        pointer = base + 8 + 2 * number
        cell = base + (self._flat[pointer].astype(np.int64) << 8 | self._flat[pointer + 1])
        payload, at = decode_varints(self._flat, cell)
        if len(payload) and (payload.max() > usable - 35 or payload.min() < 0):
            raise UnsupportedError  # continues on overflow pages
        self.rowid, self._header = decode_varints(self._flat, at)
        if (self.rowid[1:] <= self.rowid[:-1]).any() or (count > 1 and not rows.all()):
            raise UnsupportedError  # damaged: a page of another place
        length, self._types = decode_varints(self._flat, self._header)
        self._data = self._header + length
        self._end = self._header + payload
        if (self._end > base + size).any():
            raise UnsupportedError
        if _are_more_than_fit(self._end - cell, rows, 8, usable):
            raise UnsupportedError  # damaged: they overlap

    def __len__(self) -> int:
        return len(self._header)

    def fields(self, wanted: set[int]) -> Fields:
        """Return (serial type, position) of the ``wanted`` columns of every row."""
        fields = {}
        at, data = self._types, self._data
        for column in range(max(wanted, default=-1) + 1):
            if (at >= self._data).any():
                raise UnsupportedError  # written before the column was added
            serial, at = decode_varints(self._flat, at)
            if column in wanted:
                fields[column] = (serial, data)
            data = data + _sizes(serial)
            if (serial < 0).any() or (at > self._data).any() or (data > self._end).any():
                raise UnsupportedError  # damaged
        return fields

    def integers(self, serial: I8, at: I8) -> I8:
        """Return the values of an integer column."""
        if len(serial) and (serial.max() >= _RESERVED or (serial == _REAL).any()):
            raise UnsupportedError
        value = decode_big_endian(self._flat, at, _WIDTH[serial])
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
        raw = self._flat.data
        end = at + _sizes(serial)
        parts = zip((serial > 0).tolist(), at.tolist(), end.tolist(), strict=True)
        return [bytes(raw[low:high]) if there else None for there, low, high in parts]

    def filled(self, fields: list[tuple[I8, I8]]) -> Bool:
        """Return for every row whether any of these ``fields`` has a value."""
        some = np.zeros(len(self), bool)
        for serial, _ in fields:
            if ((serial >= _RESERVED) & (serial < _BLOB)).any():
                raise UnsupportedError
            some |= serial != 0
        return some


def _sizes(serial: I8) -> I8:
    """Return how many bytes values of these serial types take."""
    if len(serial) and serial.min() >= 0 and serial.max() < len(_SIZES):
        return _SIZES[serial]
    return np.where(serial < _BLOB, _WIDTH[np.minimum(serial, 11)], (serial - _BLOB) >> 1)
