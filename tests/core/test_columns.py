"""Exact operations on columns, against plain Python on whole numbers without bounds."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flame.core.columns import (
    distinct,
    is_any,
    order_by,
    pack,
    rows_by_value,
    run_starts,
    sum_by,
    unique,
    unique_rows,
)
from tests.support.profiles.recorded import i8

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
FEW = st.integers(-2, 2)
EXTREMES = st.sampled_from([-(1 << 63), -(1 << 62), -1, 0, 1, 1 << 62, (1 << 63) - 1])
CELLS = st.one_of(FEW, EXTREMES, INT64)


@given(st.lists(st.tuples(st.integers(0, 3), st.one_of(FEW, INT64))))
@example([(0, (1 << 53) + 1)])
@example([(0, -(1 << 63)), (1, (1 << 62) + 1)])
@example([(0, 1 << 53), (0, 1), (1, -1)])
def test_sums_are_exact_beyond_what_floats_hold(rows: list[tuple[int, int]]) -> None:
    expected = [0] * 4
    for group, value in rows:
        expected[group] += value
    if all(-(1 << 63) <= total < 1 << 63 for total in expected):
        groups, values = (i8(*(row[column] for row in rows)) for column in (0, 1))
        assert sum_by(groups, values, 4).tolist() == expected


def test_many_large_values_add_up_exactly() -> None:
    size, value = 5_000_000, (1 << 32) - 1
    sums = sum_by(np.zeros(size, np.int64), np.full(size, value), 1)
    assert sums.tolist() == [size * value]


def test_groups_without_rows_sum_to_zero() -> None:
    assert sum_by(i8(), i8(), 2).tolist() == [0, 0]
    assert sum_by(i8(1), i8(5), 3).tolist() == [0, 5, 0]


@given(st.lists(INT64))
def test_distinct_keys_are_sorted_and_found_again(keys: list[int]) -> None:
    values, place = distinct(i8(*keys))
    assert values.tolist() == sorted(set(keys))
    assert values[place].tolist() == keys


@given(st.lists(st.integers(-40, 40) | st.integers(-(1 << 20), 1 << 20)))
def test_distinct_keys_that_lie_close_are_found_again(keys: list[int]) -> None:
    values, place = distinct(i8(*keys))
    assert values.tolist() == sorted(set(keys))
    assert values[place].tolist() == keys


@given(st.lists(st.tuples(CELLS, st.integers(-70_000, 70_000), FEW)))
def test_rows_are_ordered_by_the_last_key_and_equal_ones_stay(
    rows: list[tuple[int, int, int]],
) -> None:
    keys = [i8(*(row[column] for row in rows)) for column in range(3)]
    expected = sorted(range(len(rows)), key=lambda at: rows[at][::-1])
    assert order_by(keys).tolist() == expected
    assert order_by([keys[2].astype(np.int32)]).tolist() == sorted(
        range(len(rows)), key=lambda at: rows[at][2]
    )


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64])
@given(st.lists(CELLS))
@example([])
@example([5])
@example([-(1 << 63), (1 << 63) - 1])
@example([0, 1 << 16])
@example([*range(70_000), 70_001])
def test_unique_values_are_those_of_numpy(dtype: type[np.integer[Any]], values: list[int]) -> None:
    column = i8(*values).astype(dtype)
    found, expected = unique(column), np.unique(column)
    assert found.tolist() == expected.tolist()
    assert found.dtype == expected.dtype


@given(st.lists(st.integers(-2, 5), max_size=9), st.lists(st.integers(-2, 5), max_size=3))
def test_rows_are_found_that_have_any_of_few_values(values: list[int], wanted: list[int]) -> None:
    column = np.array(values, np.int64)
    assert is_any(column, wanted).tolist() == [value in wanted for value in values]


@given(st.integers(1, 4).flatmap(lambda width: st.lists(st.tuples(*[CELLS] * width), min_size=1)))
@example([*((0, number) for number in range(8)), (1 << 61, 0)])  # 61 bits times 8 values
@example([(-(1 << 63), -(1 << 63), 0), ((1 << 63) - 1, (1 << 63) - 1, 0), (0, 1, 0), (1, 0, 0)])
def test_packed_keys_are_equal_exactly_where_rows_are(rows: list[tuple[int, ...]]) -> None:
    keys = pack([i8(*column) for column in zip(*rows, strict=True)]).tolist()
    rows_of, keys_of = defaultdict(set), defaultdict(set)
    for row, key in zip(rows, keys, strict=True):
        rows_of[key].add(row)
        keys_of[row].add(key)
    assert all(len(same) == 1 for same in (*rows_of.values(), *keys_of.values()))


def test_columns_of_any_integer_type_pack() -> None:
    kind, process = np.array([3, 3, 250], np.uint8), np.array([-1, 5, -1], np.int32)
    assert len(set(pack([kind, process, np.array([True, True, False])]).tolist())) == 3


def test_no_rows_pack_to_no_keys() -> None:
    assert pack([i8(), i8()]).tolist() == []


@given(st.lists(st.tuples(FEW, FEW)))
def test_unique_rows_name_the_first_row_of_each_kind(rows: list[tuple[int, int]]) -> None:
    first, kind = unique_rows([i8(*(row[0] for row in rows)), i8(*(row[1] for row in rows))])
    assert [rows[first[one]] for one in kind] == rows
    assert sorted(first.tolist()) == [at for at, row in enumerate(rows) if row not in rows[:at]]


@pytest.mark.parametrize(
    ("ordered", "starts"), [([], []), ([4], [0]), ([4, 4, 1, 1, 1, 4], [0, 2, 5])]
)
def test_runs_start_where_the_value_changes(ordered: list[int], starts: list[int]) -> None:
    assert run_starts(i8(*ordered)).tolist() == starts


@given(st.lists(CELLS))
def test_rows_of_each_value_are_those_that_have_it(values: list[int]) -> None:
    rows = defaultdict[int, list[int]](list)
    for row, value in enumerate(values):
        rows[value].append(row)
    found = [(value, at.tolist()) for value, at in rows_by_value(i8(*values))]
    assert found == sorted(rows.items())
