"""Number rows of integers, and join activities to calls, by hashing."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flame.core.compiled.library import address, checked, compiled, random_key

_FEWEST = 1024
"""Rows below which calling costs as much as it saves."""
_MOST_DISTINCT = 4
"""Where more than one in so many rows differs, sorting is as quick."""
_WIDTHS = (1, 4, 8)
_MOST_COLUMNS = 32


def number_rows(
    columns: Sequence[NDArray[Any]],
) -> tuple[NDArray[np.int64], NDArray[np.int32]] | None:
    """Number the rows of ``columns`` in the order in which different ones first come.

    Return the first row of each number and the number of each row; None where this is refused.
    """
    library, size = compiled(), len(columns[0])
    if library is None or size < _FEWEST or len(columns) > _MOST_COLUMNS:
        return None
    if any(column.dtype.kind not in "iub" or column.itemsize not in _WIDTHS for column in columns):
        return None
    columns = [np.ascontiguousarray(column) for column in columns]
    limit = size // _MOST_DISTINCT
    first, number = np.empty(limit, np.int64), np.empty(size, np.int32)
    places = (ctypes.c_void_p * len(columns))(*map(address, columns))
    widths = (ctypes.c_int32 * len(columns))(*(column.itemsize for column in columns))
    found = checked(
        library.flamecore_number_rows(
            places,
            widths,
            len(columns),
            size,
            limit,
            random_key(),
            address(number),
            address(first),
        )
    )
    return None if found is None else (first[:found].copy(), number)


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
    calls = (_whole(process, np.int32), _whole(correlation, np.int64))
    wanted = (_whole(wanted_process, np.int32), _whole(wanted_correlation, np.int64))
    call = np.empty(len(wanted[0]), np.int64)
    done = library.flamecore_join(
        *map(address, calls), len(calls[0]), *map(address, wanted), len(call), address(call)
    )
    return None if checked(done) is None else call


def _whole(column: NDArray[Any], dtype: type[np.generic]) -> NDArray[Any]:
    return np.ascontiguousarray(column, dtype)
