"""Decode leaf pages of SQLite tables, and number the texts in them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import c_int32, c_void_p
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from flame.core.compiled.library import address, checked, compiled, random_key

INTEGER, TEXT, FILLED, ROWID = range(4)
PADDING = 8
"""Bytes behind the pages that may be read."""


class Wanted(NamedTuple):
    """Hold what is wanted of a table: the name of a result, and the place of its column in a row.

    ``kind`` is INTEGER (i8), TEXT (i4, codes of ``intern``), FILLED (bool: whether any of the
    columns with this name has a value) or ROWID (i8).
    """

    name: str
    place: int
    kind: int
    intern: Callable[[bytes | None], int] | None = None
    running: bytes | None = None


class _Column(ctypes.Structure):
    _fields_ = (("place", c_int32), ("kind", c_int32), ("out", c_void_p), ("texts", c_void_p))


_DTYPES = {INTEGER: np.int64, TEXT: np.int32, FILLED: np.bool_, ROWID: np.int64}


class PageDecoder:
    """Decode batches of pages of one table. There must be a compiled library."""

    def __init__(self, wanted: list[Wanted], page: int, usable: int, null: int) -> None:
        self._wanted = sorted(wanted, key=lambda column: column.place)
        self._page, self._usable, self._null = page, usable, null
        self._texts = {
            column.name: _TextNumbers(column) for column in self._wanted if column.kind == TEXT
        }

    def decode(
        self, pages: NDArray[np.uint8], count: int, rows: int
    ) -> dict[str, NDArray[Any]] | None:
        """Decode the rows of ``count`` pages at the beginning of ``pages``, at most ``rows``.

        ``pages`` goes on for `PADDING` bytes behind them. None where something is unusual.
        """
        found: dict[str, NDArray[Any]] = {
            column.name: np.zeros(rows, _DTYPES[column.kind])
            if column.kind == FILLED
            else np.empty(rows, _DTYPES[column.kind])
            for column in self._wanted
        }
        given = (_Column * len(self._wanted))(*(self._given(one, found) for one in self._wanted))
        done = checked(
            _library().flamecore_decode(
                address(pages),
                count,
                self._page,
                self._usable,
                given,
                len(given),
                self._null,
                rows,
            )
        )
        if done != rows:
            return None
        for name, texts in self._texts.items():
            found[name] = texts.codes(found[name])
        return found

    def _given(self, column: Wanted, found: dict[str, NDArray[Any]]) -> _Column:
        texts = self._texts[column.name].table if column.kind == TEXT else None
        return _Column(column.place, column.kind, address(found[column.name]), texts)


class _TextNumbers:
    """Number texts as they come, and know the codes that a column's ``intern`` gave them."""

    def __init__(self, column: Wanted) -> None:
        assert column.intern is not None
        self._intern = column.intern
        self.table = _library().flamecore_texts_new(random_key(), column.running)
        if not self.table:
            raise MemoryError
        self._codes = np.empty(0, np.int32)
        self._known = 0
        self._absent: int | None = None

    def codes(self, numbers: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the codes of texts by ``numbers``, -1: none; new ones are asked for in order."""
        if self._absent is None and len(numbers) and numbers.min() < 0:
            first = int(np.argmax(numbers < 0))
            self._learn(int(numbers[:first].max(initial=self._known - 1)) + 1)
            self._absent = self._intern(None)
        self._learn(_library().flamecore_texts_count(self.table))
        self._codes[self._known] = self._absent or 0
        return self._codes[numbers]  # -1 is the last of all

    def _learn(self, count: int) -> None:
        """Ask for the codes of the texts up to ``count``; one more place is for none."""
        if count == self._known and len(self._codes):
            return
        new = [self._intern(self._text(number)) for number in range(self._known, count)]
        self._codes = np.concatenate([self._codes[: self._known], np.array([*new, 0], np.int32)])
        self._known = count

    def _text(self, number: int) -> bytes:
        place = c_void_p()
        size = _library().flamecore_texts_get(self.table, number, ctypes.byref(place))
        return ctypes.string_at(place, size) if size else b""

    def __del__(self) -> None:
        if table := getattr(self, "table", None):
            _library().flamecore_texts_free(table)


def _library() -> Any:
    return compiled()
