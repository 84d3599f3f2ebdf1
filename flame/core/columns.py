"""Compute on numpy columns, exactly: sums by group, unique rows, keys of several columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from flame.core.compiled.order import (
    RowRuns,
    number_runs,
    order_groups,
    order_rows,
    sum_groups,
)
from flame.core.compiled.order import first_of_groups as compiled_first
from flame.core.compiled.order import sum_above as compiled_sum_above
from flame.core.compiled.rows import number_rows
from flame.core.compiled.search import search_moments

if TYPE_CHECKING:  # The module takes a millisecond, and serves nobody who runs this.
    from numpy.typing import NDArray

    I4 = NDArray[np.int32]
    I8 = NDArray[np.int64]
    F8 = NDArray[np.float64]
    U1 = NDArray[np.uint8]
    Bool = NDArray[np.bool_]
    Column = NDArray[Any]
else:
    I4 = I8 = F8 = U1 = Bool = Column = np.ndarray

SUM_LIMIT = 1 << 62
"""Sums of columns of files are refused from here on: half of what 64 bits hold."""

LATEST = np.iinfo(np.int64).max
"""No time is later: what the earliest of some is looked for from."""

_EXACT_FLOAT = 1 << 53
_KEY_LIMIT = 1 << 62
_DENSE = 4
"""Keys are dense where a table of all numbers between them is so many times as long as they."""
_MOST_I4 = (1 << 31) - 1
_VERY_FEW = 16
_FEW = 1 << 16
"""Numbers that are counted in a table, however few of them there are."""


def sum_by(group: Column, values: I8, size: int) -> I8:
    """Sum ``values`` (int64) per ``group`` (0..size-1), exactly.

    Of numpy's ``bincount`` is fastest, but adds in float64, which is exact below 2**53 (104 days of
    nanoseconds). What is compiled takes a third of that.
    """
    if (found := sum_groups(group, values, size)) is not None:
        return found
    if _are_exact_floats(values):
        return np.bincount(group, weights=values, minlength=size).astype(np.int64)
    sums = np.zeros(size, np.int64)
    np.add.at(sums, group, values)
    return sums


def sum_above(group: Column, values: I8, limits: I8) -> tuple[I8, I8]:
    """Count and sum the ``values`` above the limit of their ``group``, exactly: i8[groups] each."""
    size = len(limits)
    if (found := compiled_sum_above(group, values, size, limits)) is not None:
        return found
    rows = np.flatnonzero(values > limits[group])
    some = group[rows]
    counts = np.bincount(some, minlength=size).astype(np.int64)
    return counts, sum_by(some, values[rows], size)


def first_by_group(group: Column, keys: I8, ties: I8, size: int, last: bool = False) -> I8:
    """Find the row of each ``group`` (0 to ``size`` - 1) with the least of ``keys``, i8[size].

    Of equal ones it is that with the least of ``ties``, of equal ones the first, or the ``last``;
    -1 of no rows.
    """
    if (found := compiled_first(group, keys, ties, size, last)) is not None:
        return found
    least = np.full(size, np.iinfo(np.int64).max)
    np.minimum.at(least, group, keys)
    some = np.flatnonzero(keys == least[group])
    some = some[::-1] if last else some
    order = some[order_by([ties[some], group[some]])]
    first = order[run_starts(group[order])]
    row = np.full(size, -1)
    row[group[first]] = first
    return row


def _are_exact_floats(values: I8) -> bool:
    """Return whether float64 holds all sums of ``values``; mostly the largest of them tells."""
    largest = max(float(values.max(initial=0)), -float(values.min(initial=0)))
    if largest * len(values) < _EXACT_FLOAT:
        return True
    return float(np.abs(values.astype(np.float64)).sum()) < _EXACT_FLOAT


def distinct(keys: I8, many: bool = False) -> tuple[I8, I8]:
    """Find the distinct ``keys``, sorted, and the place of every key among them.

    Each way is several times faster than ``np.unique(return_inverse=True)``: keys in order need no
    sorting, dense ones a table, and of those that repeat few are left by hashing, which is not
    tried where ``many`` are known to differ.
    """
    if len(keys) == 0:
        return keys, np.zeros(0, np.int64)
    if (keys[1:] >= keys[:-1]).all():
        return _distinct_of_ordered(keys)
    low, high = int(keys.min()), int(keys.max())
    if _is_table_small(high - low, len(keys)):
        return _distinct_of_dense(keys, low, high)
    if not many and (numbered := number_rows([keys])) is not None:
        first, number = numbered
        values, place = distinct(keys[first], many=True)
        return values, place[number]
    if high - low < _DENSE * len(keys):
        return _distinct_of_dense(keys, low, high)
    order = order_by([keys])
    values, place = _distinct_of_ordered(keys[order])
    back = np.empty(len(keys), np.int64)
    back[order] = place
    return values, back


def _is_table_small(size: int, keys: int) -> bool:
    """Whether a table of ``size`` stays in the cache while so many ``keys`` are looked up."""
    return size < min(_FEW, keys) or size < keys // _DENSE


def _distinct_of_dense(keys: I8, low: int, high: int) -> tuple[I8, I8]:
    digits = keys - low if low else keys
    present = np.zeros(high - low + 1, bool)
    present[digits] = True
    number = np.cumsum(present, dtype=np.int32 if len(present) <= _MOST_I4 else np.int64)
    return np.flatnonzero(present) + low, number[digits].astype(np.int64) - 1


def _distinct_of_ordered(keys: I8) -> tuple[I8, I8]:
    begins = np.concatenate([[True], keys[1:] != keys[:-1]])
    return keys[begins], np.cumsum(begins) - 1


def order_by(keys: Sequence[Column]) -> I8:
    """Find the stable order of rows by ``keys`` (integers), the last of which counts most.

    As ``np.lexsort``, but in a fourth of the time: numpy orders numbers of 16 bits in time linear
    in them, so it is given those. What is compiled takes half of that again.
    """
    if (order := order_rows(keys)) is not None:
        return order
    for key in keys:
        for digits in _digits_of_16_bits(key):
            if order is None:
                order = np.argsort(digits, kind="stable")
            else:
                order = order[np.argsort(digits[order], kind="stable")]
    return np.arange(len(keys[0])) if order is None else order


def _digits_of_16_bits(key: Column) -> Iterator[NDArray[np.uint16]]:
    """The digits of ``key``, from its least value on, to the base of 2**16, the last one first."""
    low, high = int(key.min(initial=0)), int(key.max(initial=0))
    if high - low < 1 << 16:
        yield key.astype(np.uint16) - np.uint16(low % (1 << 16))
        return
    # Where the difference does not fit 63 bits it wraps to what it is without a sign.
    above = (key.astype(np.int64) - low).view(np.uint64)
    for shift in range(0, (high - low).bit_length(), 16):
        yield (above >> np.uint64(shift)).astype(np.uint16)


def runs_in_order(keys: Sequence[Column], order: I8) -> RowRuns:
    """Number the runs of rows, taken in this ``order``, that are equal in all ``keys``."""
    if (found := number_runs(keys, order)) is not None:
        return found
    fresh = np.zeros(len(order), bool)
    fresh[:1] = True
    for key in keys:
        ordered = key[order]
        fresh[1:] |= ordered[1:] != ordered[:-1]
    number = np.full(len(keys[0]), -1, np.int32)
    number[order] = np.cumsum(fresh) - 1
    return RowRuns(number, int(np.count_nonzero(fresh)))


def taken(column: Column, rows: I8) -> Column:
    """Take ``rows``, which ascend, of ``column``: that itself, not to be written to, for all."""
    return column if len(rows) == len(column) else column[rows]


def count_different(group: I8, values: Column, size: int) -> I8:
    """Count the different ``values`` (integers) of each ``group`` (0 to ``size`` - 1), i8[size]."""
    low, high = _ends(values) if len(values) else (0, 0)
    base = high - low + 1
    if size * base > max(len(values), _FEW):
        first, _ = unique_rows([group, values])
        return np.bincount(group[first], minlength=size).astype(np.int64)
    present = np.zeros(size * base, bool)
    place = group * base
    place += values
    place -= low
    present[place] = True
    counts: I8 = np.count_nonzero(present.reshape(size, base), axis=1)
    return counts


def ordered_by_group(group: Column, values: I8, size: int) -> tuple[I8, I8]:
    """Order ``values`` by ``group`` (0 to ``size`` - 1), and by themselves.

    Return them, i8[n], and how many each group has, i8[size].
    """
    if (found := order_groups(group, values, size)) is not None:
        return found
    count = np.bincount(group, minlength=size).astype(np.int64)
    return values[order_by([values, group])], count


def unique(values: Column) -> Column:
    """Find the different ``values`` (integers), sorted.

    ``np.unique`` imports ``numpy.ma``, which takes as long as a tenth of all of numpy; and a
    million different keys take it 12 times as long, a million of few small numbers 30 times.
    """
    if len(values) > 0:
        low, high = _ends(values)
        if high - low < _VERY_FEW:  # numpy compares in a tenth of the time that a table takes
            few = [one for one in range(low, high + 1) if one == low or (values == one).any()]
            return np.array(few, values.dtype)
    digits, base = _digits(values)
    if len(values) > 0 and base <= max(len(values), _FEW):
        present = np.zeros(base, bool)
        present[digits] = True
        found: Column = np.flatnonzero(present) + int(values.min())
        return found.astype(values.dtype)
    ordered = np.sort(values)
    return ordered[run_starts(ordered)]


def is_any(column: Column, values: Iterable[int]) -> Bool:
    """Tell which of ``column`` are one of a few ``values``.

    For few rows ``np.isin`` sorts, and imports ``numpy.ma`` as ``np.unique`` does.
    """
    found: Bool = np.zeros(len(column), bool)
    for value in values:
        found |= column == value
    return found


def pack(columns: Sequence[Column]) -> I8:
    """Pack ``columns`` (integers) into an int64 key per row, equal exactly where all are equal.

    Columns are laid side by side in mixed radix; where 62 bits do not suffice, what is packed so
    far is first replaced by its rank.
    """
    key, size = _digits(columns[0])
    for column in columns[1:]:
        digits, base = _digits(column)
        if size * base >= _KEY_LIMIT:
            values, key = distinct(key)
            size = max(len(values), 1)
        if size * base >= _KEY_LIMIT:
            values, digits = distinct(digits)
            base = max(len(values), 1)
        key *= base
        key += digits
        size *= base
    return key


def _digits(column: Column) -> tuple[I8, int]:
    """``column`` shifted to start at 0, and the number of values it may take."""
    if len(column) == 0:
        return column.astype(np.int64), 1
    low, high = _ends(column)
    # Where the difference does not fit 64 bits it wraps, and different values stay different.
    digits = column.astype(np.int64)
    digits -= low
    return digits, high - low + 1


def _ends(column: Column) -> tuple[int, int]:
    return int(column.min()), int(column.max())


def unique_rows(columns: Sequence[Column]) -> tuple[I8, I8]:
    """Find the distinct rows of ``columns``: first row of each kind, and the kind of each row."""
    spans = [_span(column) for column in columns]
    varied = [place for place, span in enumerate(spans) if span] or [0]  # others tell none apart
    columns = [columns[place] for place in varied]
    if (
        _are_dense([spans[place] for place in varied], len(columns[0]))
        or (numbered := number_rows(columns)) is None
    ):
        return _unique_by_key(columns)
    first, number = numbered
    sorted_first, place = _unique_by_key([column[first] for column in columns])
    return first[sorted_first], place[number]


def _span(column: Column) -> int:
    """By how much the values of ``column`` differ; 0 where there is one, or none."""
    if not len(column) or column.strides == (0,):
        return 0
    low, high = _ends(column)
    return high - low


def _are_dense(spans: Sequence[int], rows: int) -> bool:
    """Whether rows of columns with ``spans`` are looked up in a table sooner than hashed."""
    size = 1
    for span in spans:
        size *= span + 1
        if not _is_table_small(size, rows):
            return False
    return rows > 0


def _unique_by_key(columns: Sequence[Column]) -> tuple[I8, I8]:
    """Do as `unique_rows` where most rows differ."""
    values, kind = distinct(pack(columns), many=True)
    first = np.zeros(len(values), np.int64)
    first[kind[::-1]] = np.arange(len(kind) - 1, -1, -1)
    return first, kind


Side = Literal["left", "right"]
SIDES: tuple[Side, Side] = ("left", "right")


def places_in(ordered: I8, values: I8, side: Side = "left") -> I8:
    """Find where ``values`` would stand in what is ``ordered``, as ``np.searchsorted``.

    What is compiled takes a tenth of the time where values lie near those before them.
    """
    found = search_moments((None, ordered), (None, values), side == "right")
    return np.searchsorted(ordered, values, side) if found is None else found


def places_on_lanes(lane: Column, time: I8, on: Column, values: I8, side: Side = "left") -> I8:
    """Find where moments ``on`` lanes would stand among those ordered by ``lane`` and ``time``.

    Lanes are small numbers, -1 where they are not known.
    """
    found = search_moments((lane, time), (on, values), side == "right")
    if found is not None:
        return found
    both = pack([np.concatenate([lane, on]), np.concatenate([time, values])])
    return np.searchsorted(both[: len(lane)], both[len(lane) :], side)


def run_starts(ordered: Column) -> I8:
    """Find the start indices of the runs of equal values in ``ordered``."""
    if len(ordered) == 0:
        return np.zeros(0, np.int64)
    return np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))


def rows_by_value(column: Column) -> Iterator[tuple[int, I8]]:
    """Yield each value of ``column`` (integers), in order, and the rows that have it, ascending."""
    if len(column) > 0 and column.min() == column.max():  # in a fourth of the time
        yield int(column[0]), np.arange(len(column))
        return
    order = order_by([column])
    bounds = [*run_starts(column[order]).tolist(), len(order)]
    for low, high in pairwise(bounds):
        yield int(column[order[low]]), order[low:high]


def expand_ranges(start: Column, length: Column) -> I8:
    """Expand each range to its numbers: from each of ``start`` on, as many as its ``length``."""
    shift = start - (np.cumsum(length) - length)
    numbers: I8 = np.arange(length.sum()) + np.repeat(shift, length)
    return numbers
