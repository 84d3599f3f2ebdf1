"""Compute on numpy columns, exactly: sums by group, unique rows, keys of several columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

I4 = NDArray[np.int32]
I8 = NDArray[np.int64]
U1 = NDArray[np.uint8]
Bool = NDArray[np.bool_]
Column = NDArray[Any]

_EXACT_FLOAT = 1 << 53
_KEY_LIMIT = 1 << 62
_FEW = 1 << 16
"""Numbers that are counted in a table, however few of them there are."""


def sum_by(group: Column, values: I8, size: int) -> I8:
    """Sum ``values`` (int64) per ``group`` (0..size-1), exactly.

    ``bincount`` is fastest, but adds in float64, which is exact below 2**53 (104 days of
    nanoseconds).
    """
    if float(np.abs(values.astype(np.float64)).sum()) < _EXACT_FLOAT:
        return np.bincount(group, weights=values, minlength=size).astype(np.int64)
    sums = np.zeros(size, np.int64)
    np.add.at(sums, group, values)
    return sums


def distinct(keys: I8) -> tuple[I8, I8]:
    """Find the distinct ``keys``, sorted, and the place of every key among them.

    Sorting and searching is 2-3 times faster than ``np.unique(return_inverse=True)``.
    """
    if len(keys) == 0:
        return keys, np.zeros(0, np.int64)
    ordered = np.sort(keys)
    keep = np.empty(len(ordered), bool)
    keep[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=keep[1:])
    values = ordered[keep]
    return values, np.searchsorted(values, keys)


def unique(values: Column) -> Column:
    """Find the different ``values`` (integers), sorted.

    ``np.unique`` imports ``numpy.ma``, which takes as long as a tenth of all of numpy; and a
    million different keys take it 12 times as long, a million of few small numbers 7 times.
    """
    digits, base = _digits(values)
    if len(values) > 0 and base <= max(len(values), _FEW):
        found: Column = np.flatnonzero(np.bincount(digits)) + int(values.min())
        return found.astype(values.dtype)
    ordered = np.sort(values)
    return ordered[run_starts(ordered)]


def pack(columns: Sequence[Column]) -> I8:
    """Pack ``columns`` (integers) into an int64 key per row, equal exactly where all are equal.

    Columns are laid side by side in mixed radix; where 62 bits do not suffice, what is packed so
    far is first replaced by its rank.
    """
    key = np.zeros(len(columns[0]), np.int64)
    size = 1
    for column in columns:
        digits, base = _digits(column)
        if size * base >= _KEY_LIMIT:
            values, key = distinct(key)
            size = max(len(values), 1)
        if size * base >= _KEY_LIMIT:
            values, digits = distinct(digits)
            base = max(len(values), 1)
        key = key * base + digits
        size *= base
    return key


def _digits(column: Column) -> tuple[I8, int]:
    """``column`` shifted to start at 0, and the number of values it may take."""
    if len(column) == 0:
        return column.astype(np.int64), 1
    low, high = int(column.min()), int(column.max())
    # Where the difference does not fit 64 bits it wraps, and different values stay different.
    return column.astype(np.int64) - low, high - low + 1


def unique_rows(columns: Sequence[Column]) -> tuple[I8, I8]:
    """Find the distinct rows of ``columns``: first row of each kind, and the kind of each row."""
    values, kind = distinct(pack(columns))
    first = np.zeros(len(values), np.int64)
    first[kind[::-1]] = np.arange(len(kind) - 1, -1, -1)
    return first, kind


def run_starts(ordered: Column) -> I8:
    """Find the start indices of the runs of equal values in ``ordered``."""
    if len(ordered) == 0:
        return np.zeros(0, np.int64)
    return np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))


def expand_ranges(start: Column, length: Column) -> I8:
    """Expand each range to its numbers: from each of ``start`` on, as many as its ``length``."""
    shift = start - (np.cumsum(length) - length)
    numbers: I8 = np.arange(length.sum()) + np.repeat(shift, length)
    return numbers
