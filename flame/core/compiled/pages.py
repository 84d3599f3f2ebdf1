"""Decode leaf pages of SQLite tables."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import c_int32, c_int64, c_void_p
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from flame.core.compiled.library import address, checked, loaded
from flame.core.compiled.rows import RowTable
from flame.core.compiled.texts import TextTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

INTEGER, ROWID, KEY_INTEGER, KEY_TEXT, KEY_FILLED = range(5)


class Wanted(NamedTuple):
    """Hold what is wanted of a table: the ``place`` of a column in a row, and how it is given.

    As INTEGER or ROWID (whose place is -1) under a ``name`` of its own, i8[rows]; else in ``slot``
    of the row's key: the integer, the number of the text (-1: none), or 1 where there is a value.
    """

    place: int
    kind: int
    name: str = ""
    slot: int = 0


class Key(NamedTuple):
    """Hold the table that numbers the keys of rows, and the key of a row that has nothing."""

    rows: RowTable
    absent: Sequence[int]
    texts: TextTable | None = None


class _Column(ctypes.Structure):
    _fields_ = (
        ("place", c_int32),
        ("kind", c_int32),
        ("slot", c_int32),
        ("out", c_void_p),
        ("texts", c_void_p),
    )


class _Key(ctypes.Structure):
    _fields_ = (("rows", c_void_p), ("width", c_int32), ("absent", c_void_p), ("number", c_void_p))


class _Pages(ctypes.Structure):
    _fields_ = (
        ("bytes", c_void_p),
        ("count", c_int64),
        ("page_size", c_int64),
        ("usable", c_int64),
    )


class PageDecoder:
    """Decode batches of pages of one table. There must be a compiled library."""

    def __init__(self, wanted: Sequence[Wanted], key: Key | None, null: int) -> None:
        self._library = loaded()
        self._wanted = sorted(wanted, key=lambda column: column.place)
        self._key = key
        self._null = null
        self._absent = np.array(key.absent if key else (), np.int64)

    def decode(
        self, pages: NDArray[np.uint8], sizes: tuple[int, int, int], rows: int
    ) -> tuple[dict[str, NDArray[np.int64]], NDArray[np.int32]] | None:
        """Decode the ``rows`` on pages of these ``sizes``: how many, bytes of one, of them usable.

        ``pages`` goes on for 8 bytes behind them. Return columns by name and the numbers of the
        rows' keys; None where something is unusual.
        """
        columns = {one.name: np.empty(rows, np.int64) for one in self._wanted if one.name}
        number = np.empty(rows if self._key else 0, np.int32)
        given = (_Column * len(self._wanted))(*(self._given(one, columns) for one in self._wanted))
        batch = _Pages(address(pages), *sizes)
        key = self._given_key(number)
        known = len(self._key.rows) if self._key else 0
        done = checked(
            self._library.flamecore_decode(
                ctypes.byref(batch), given, len(given), ctypes.byref(key), self._null, rows
            )
        )
        if done == rows:
            return columns, number
        if self._key:
            self._key.rows.truncate(known)
        return None

    def _given(self, column: Wanted, columns: dict[str, NDArray[np.int64]]) -> _Column:
        out = address(columns[column.name]) if column.name else None
        texts = self._key.texts.table if self._key and self._key.texts is not None else None
        return _Column(column.place, column.kind, column.slot, out, texts)

    def _given_key(self, number: NDArray[np.int32]) -> _Key:
        table = self._key.rows.table if self._key else None
        return _Key(table, len(self._absent), address(self._absent), address(number))
