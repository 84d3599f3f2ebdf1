"""Order rows by columns of integers, and values by their groups; add these up."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from flame.core.compiled.library import address, checked, compiled, whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BYTES, _WORDS = (np.dtype(np.uint8), np.dtype(np.bool_)), (np.dtype(np.int32), np.dtype(np.int64))
_MOST_COLUMNS = 32
_FEWEST = 256
"""Rows below which calling costs as much as it saves."""


class RowRuns(NamedTuple):
    """Hold the run of rows that each is in, i4[rows], -1: none; how many there are."""

    number: NDArray[np.int32]
    runs: int


def order_rows(keys: Sequence[NDArray[Any]]) -> NDArray[np.int64] | None:
    """Find the stable order of rows by ``keys``, the last of which counts most, i8[rows].

    None where numpy is to do it.
    """
    library = compiled()
    if library is None or not 0 < len(keys) <= _MOST_COLUMNS or len(keys[0]) < _FEWEST:
        return None
    if any(key.dtype == np.uint64 for key in keys):
        return None
    columns = whole([_readable(key) for key in keys])
    order = np.empty(len(columns[0]), np.int64)
    done = library.flamecore_order(*_given(columns), len(order), address(order))
    return None if checked(done) is None else order


def number_runs(keys: Sequence[NDArray[Any]], order: NDArray[np.int64]) -> RowRuns | None:
    """Number the runs of rows, taken in this ``order``, that are equal in all ``keys``.

    None where numpy is to do it.
    """
    library = compiled()
    if library is None or not 0 < len(keys) <= _MOST_COLUMNS or len(order) < _FEWEST:
        return None
    columns, (rows,) = whole([_readable(key) for key in keys]), whole([order], [np.int64])
    size, number = len(columns[0]), np.full(len(columns[0]), -1, np.int32)
    done = library.flamecore_number_runs(
        *_given(columns), address(rows), len(rows), size, address(number)
    )
    return None if (count := checked(done)) is None else RowRuns(number, count)


def order_groups(
    group: NDArray[Any], values: NDArray[np.int64], groups: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Order ``values`` by ``group`` (0 to ``groups`` - 1), and by themselves.

    Return them, i8[n], and how many each group has, i8[groups]; None where numpy is to do it.
    """
    library = compiled()
    if library is None or len(values) < _FEWEST or values.dtype != np.int64:
        return None
    keys, values = whole([_readable(group), values])
    ordered, counts = np.empty(len(values), np.int64), np.empty(groups, np.int64)
    done = library.flamecore_order_groups(
        *(address(keys), keys.itemsize, address(values), len(values)),
        *(groups, address(ordered), address(counts)),
    )
    return None if checked(done) is None else (ordered, counts)


def sum_groups(group: NDArray[Any], values: NDArray[Any], groups: int) -> NDArray[np.int64] | None:
    """Add up the ``values`` of each ``group`` (0 to ``groups`` - 1), i8[groups].

    None where numpy is to do it.
    """
    library = compiled()
    if library is None or len(values) < _FEWEST or values.dtype == np.uint64:
        return None
    keys, added = whole([_readable(group), values.astype(np.int64, copy=False)])
    sums = np.empty(groups, np.int64)
    done = library.flamecore_sum_groups(
        *(address(keys), keys.itemsize, address(added), len(added)), *(groups, address(sums))
    )
    return None if checked(done) is None else sums


def sum_above(
    group: NDArray[Any],
    values: NDArray[np.int64],
    groups: int,
    limits: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Count and add up the ``values`` of each ``group`` that are above its limit, i8[groups] each.

    None where numpy is to do it.
    """
    library = compiled()
    if library is None or len(values) < _FEWEST or values.dtype != np.int64:
        return None
    keys, values = whole([_readable(group), values])
    (limits,) = whole([limits], [np.int64])
    counts, sums = (np.empty(groups, np.int64) for _ in range(2))
    done = library.flamecore_sum_above(
        *(address(keys), keys.itemsize, address(values), len(values)),
        *(groups, address(limits), address(counts), address(sums)),
    )
    return None if checked(done) is None else (counts, sums)


def first_of_groups(
    group: NDArray[Any],
    keys: NDArray[np.int64],
    ties: NDArray[np.int64],
    groups: int,
    last: bool,
) -> NDArray[np.int64] | None:
    """Find the row of each ``group`` (0 to ``groups`` - 1) with the least of ``keys``, i8[groups].

    Of equal ones it is that with the least of ``ties``, of equal ones the first, or the ``last``;
    -1 of no rows. None where numpy is to do it.
    """
    library = compiled()
    if library is None or {keys.dtype, ties.dtype} != {np.dtype(np.int64)}:
        return None
    of, keys, ties = whole([_readable(group), keys, ties])
    row = np.empty(groups, np.int64)
    done = library.flamecore_first_of_groups(
        *(address(of), of.itemsize, address(keys), address(ties), len(keys)),
        *(groups, last, address(row)),
    )
    return None if checked(done) is None else row


def summarize_groups(
    group: NDArray[Any], values: NDArray[np.int64], groups: int, percents: Sequence[int]
) -> NDArray[np.int64] | None:
    """Summarize the ``values`` of each ``group`` (0 to ``groups`` - 1), i8[4 + percents, groups].

    Rows are how many there are, their sum, the least, the nearest-rank percentiles for
    ``percents``, which ascend, and the largest; 0 of no values. None where numpy is to do it.
    """
    library = compiled()
    if library is None or len(values) < _FEWEST or values.dtype != np.int64:
        return None
    keys, values = whole([_readable(group), values])
    asked = np.array(percents, np.int32)
    rows = np.empty((4 + len(asked), groups), np.int64)
    done = library.flamecore_summarize_groups(
        *(address(keys), keys.itemsize, address(values), len(values), groups),
        *(address(asked), len(asked), address(rows)),
    )
    return None if checked(done) is None else rows


def _given(columns: Sequence[NDArray[Any]]) -> tuple[Any, Any, int]:
    """Tell where C finds the values of ``columns``, how wide these are, and how many there are."""
    places = (ctypes.c_void_p * len(columns))(*map(address, columns))
    widths = (ctypes.c_int32 * len(columns))(*(column.itemsize for column in columns))
    return places, widths, len(columns)


def _readable(column: NDArray[Any]) -> NDArray[Any]:
    """A column of a type that C reads."""
    return column if column.dtype in (*_BYTES, *_WORDS) else column.astype(np.int64)
