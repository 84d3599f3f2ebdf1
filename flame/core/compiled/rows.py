"""Number rows of integers, and join activities to calls, by hashing."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from flame.core.compiled.library import (
    address,
    checked,
    compiled,
    copied,
    loaded,
    random_key,
    whole,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FEWEST = 1024
"""Rows below which calling costs as much as it saves."""
_MOST_DISTINCT = 4
"""Where more than one in so many rows differs, sorting is as quick."""
_WIDTHS = (1, 4, 8)
_MOST_COLUMNS = 32
_LAUNCH = (np.int32, np.int64)
_MOST_NUMBERS = (1 << 31) - 1


class RowTable:
    """Number rows of ``width`` integers in the order in which different ones first come.

    There must be a compiled library.
    """

    def __init__(self, width: int) -> None:
        self._library = loaded()
        self._width = width
        self.table: int | None = self._library.flamecore_rows_new(width, random_key())
        if not self.table:
            raise MemoryError

    def __len__(self) -> int:
        count: int = self._library.flamecore_rows_count(self.table)
        return count

    def number(
        self, columns: Sequence[NDArray[Any]], limit: int = _MOST_NUMBERS
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]] | None:
        """Number the rows of ``columns``, of integers of 1, 4 or 8 bytes.

        Return the row that was first numbered n for each new n, and the number of each row, i4[n];
        None where there are more than ``limit`` different ones.
        """
        columns = whole(columns)
        size, known = len(columns[0]), len(self)
        first, number = np.empty(min(known + size, limit), np.int64), np.empty(size, np.int32)
        places = (ctypes.c_void_p * self._width)(*map(address, columns))
        widths = (ctypes.c_int32 * self._width)(*(column.itemsize for column in columns))
        found = checked(
            self._library.flamecore_rows_number(
                self.table, places, widths, size, limit, address(number), address(first)
            )
        )
        return None if found is None else (first[known:found].copy(), number)

    def rows(self, begin: int = 0) -> NDArray[np.int64]:
        """Return the different rows from number ``begin`` on, i8[n, width]."""
        if begin >= len(self):
            return np.zeros((0, self._width), np.int64)
        place = self._library.flamecore_rows_values(self.table)
        skipped = begin * self._width * np.dtype(np.int64).itemsize
        return copied(place + skipped, np.int64, len(self) - begin, self._width)

    def truncate(self, count: int) -> None:
        """Forget all numbers from ``count`` on."""
        checked(self._library.flamecore_rows_truncate(self.table, count))

    def __del__(self) -> None:
        if table := getattr(self, "table", None):
            self._library.flamecore_rows_free(table)


def number_rows(
    columns: Sequence[NDArray[Any]],
) -> tuple[NDArray[np.int64], NDArray[np.int32]] | None:
    """Number the rows of ``columns`` in the order in which different ones first come.

    Return the first row of each number and the number of each row; None where this is refused.
    """
    size = len(columns[0])
    if compiled() is None or size < _FEWEST or len(columns) > _MOST_COLUMNS:
        return None
    if any(column.dtype.kind not in "iub" or column.itemsize not in _WIDTHS for column in columns):
        return None
    return RowTable(len(columns)).number(columns, size // _MOST_DISTINCT)


def join_calls(
    process: NDArray[np.int32],
    correlation: NDArray[np.int64],
    wanted_process: NDArray[np.int32],
    wanted_correlation: NDArray[np.int64],
) -> NDArray[np.int64] | None:
    """Find the row of the call with each wanted process and correlation id, -1 for none, i8[n].

    None where this is refused: two calls have the same ids, or it would take long.
    """
    library = compiled()
    if library is None:
        return None
    calls = whole((process, correlation), _LAUNCH)
    wanted = whole((wanted_process, wanted_correlation), _LAUNCH)
    call = np.empty(len(wanted[0]), np.int64)
    done = library.flamecore_join(
        *map(address, calls), len(calls[0]), *map(address, wanted), len(call), address(call)
    )
    return None if checked(done) is None else call
