"""What is compiled shares out and finds overlaps as plain loops do, or leaves it to numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.columns import first_by_group
from flame.core.compiled.library import compiled
from flame.core.compiled.nesting import times_beside
from flame.core.compiled.order import first_of_groups
from flame.core.compiled.search import last_open
from flame.core.compiled.shares import apportion_values
from flame.core.efficiency.operator_calls import OperatorCalls
from flame.core.efficiency.overlaps import beside_others
from flame.core.projection.splits.sample_split import apportion
from tests.support.compiled import only_numpy
from tests.support.oracles.naive_work import split
from tests.support.tiers import examples

pytestmark = pytest.mark.skipif(compiled() is None, reason="the compiled library was not built")

I8_MOST = np.iinfo(np.int64).max
SPANS = st.lists(st.tuples(st.integers(-1, 2), st.integers(0, 20), st.integers(0, 8)), max_size=40)
AMOUNTS = st.one_of(st.integers(0, 9), st.integers(0, 10**6), st.integers(0, 1 << 61))
UNITS = st.lists(st.tuples(AMOUNTS, st.lists(AMOUNTS, max_size=3)), min_size=1, max_size=9)


def columns(units: list[tuple[int, list[int]]]) -> list[Any]:
    """Values, the weights of all their parts, and which value each of these is of."""
    parts = [(weight, at) for at, (_, weights) in enumerate(units) for weight in weights]
    table = [value for value, _ in units], *zip(*parts, strict=True)
    return [np.array(column, np.int64) for column in (*table, (), ())[:3]]


@examples(0.5)
@given(units=UNITS, seed=st.integers(0, 99), dtype=st.sampled_from([np.int32, np.int64]))
def test_values_are_shared_out_as_by_a_plain_loop(
    units: list[tuple[int, list[int]]], seed: int, dtype: Any
) -> None:
    values, weights, unit = columns(units)
    parts = [part for value, weights in units if weights for part in split(value, weights)]
    expected = np.array(parts, np.int64)
    # Of equal remainders the first row has it: rows of a unit stay in their order.
    order = np.lexsort((np.arange(len(unit)), np.random.default_rng(seed).permutation(9)[unit]))
    unit, weights = unit[order].astype(dtype), weights[order]
    found = apportion_values(values, weights, unit)
    assert found is not None
    assert found.tolist() == expected[order].tolist()
    with only_numpy():
        assert apportion(values, weights, unit).tolist() == found.tolist()


@pytest.mark.parametrize("largest", [1, 3, 1 << 20, 1 << 50])
def test_many_parts_are_rounded_as_by_a_plain_loop(largest: int) -> None:
    random = np.random.default_rng(3)
    sizes = (1, 3, 40, 900, 4000)
    units = [(10**6 + 7, random.integers(1, largest + 1, size).tolist()) for size in sizes]
    values, weights, unit = columns(units)
    found = apportion_values(values, weights, unit)
    assert found is not None
    assert found.tolist() == [part for value, weights in units for part in split(value, weights)]
    with only_numpy():
        assert apportion(values, weights, unit).tolist() == found.tolist()


def test_what_cannot_be_shared_out_is_left_to_numpy() -> None:
    values, weights, unit = columns([(7, [1, 2]), (8, [3])])
    assert apportion_values(values, weights, unit) is not None
    assert apportion_values(values, weights, unit - 1) is None
    assert apportion_values(values, weights, unit + 1) is None
    assert apportion_values(values, weights, unit.astype(np.uint8)) is None
    assert apportion_values(-values, weights, unit) is None
    assert apportion_values(values, -weights, unit) is None
    assert apportion_values(values, np.full(3, I8_MOST), unit) is None


MOMENTS = st.lists(st.tuples(st.integers(-1, 3), st.integers(-2, 40)), max_size=40)


@examples(0.5)
@given(rows=SPANS, wanted=MOMENTS)
def test_the_last_that_began_is_open_or_none(
    rows: list[tuple[int, int, int]], wanted: list[tuple[int, int]]
) -> None:
    rows = sorted((lane, start, start + long) for lane, start, long in rows if lane >= 0)
    spans, moments = np.array([*rows, (3, 50, 60)]).T, np.array(wanted, np.int64).reshape(-1, 2).T
    found = last_open((spans[0], spans[1], spans[2]), (moments[0], moments[1]))
    assert found is not None
    expected = []
    for lane, time in wanted:
        begun = [at for at, row in enumerate(rows) if row[0] == lane and row[1] <= time]
        expected.append(begun[-1] if begun and rows[begun[-1]][2] >= time else -1)
    assert found.tolist() == expected
    calls = OperatorCalls(spans[0].astype(np.int32), spans[0].astype(np.int32), *spans[1:])
    with only_numpy():
        assert calls.open_at(*moments).tolist() == expected


def test_lanes_that_there_are_not_are_left_to_numpy() -> None:
    none, start = np.full(3, -1), np.arange(3)
    assert last_open((none, start, start), (none, start)) is None
    assert last_open((none[:0], start[:0], start[:0]), (none, start)) is None


KEYED = st.lists(st.tuples(st.integers(0, 4), st.integers(-2, 2), st.integers(-2, 2)), max_size=40)


@examples(0.5)
@given(rows=KEYED, last=st.booleans(), dtype=st.sampled_from([np.int64, np.int32, np.uint8]))
def test_the_first_of_each_group_is_that_of_a_plain_loop(
    rows: list[tuple[int, int, int]], last: bool, dtype: Any
) -> None:
    table = np.array(rows, np.int64).reshape(len(rows), 3).T.copy()
    group, keys, ties = table[0].astype(dtype), table[1], table[2]
    expected = []
    for one in range(6):
        mine = [
            (key, tie, -at if last else at) for at, (of, key, tie) in enumerate(rows) if of == one
        ]
        expected.append(abs(min(mine)[2]) if mine else -1)
    assert first_by_group(group, keys, ties, 6, last).tolist() == expected
    assert first_of_groups(group, keys, ties, 6, last) is not None
    with only_numpy():
        assert first_by_group(group, keys, ties, 6, last).tolist() == expected


def test_groups_that_there_are_not_have_no_first_row() -> None:
    values = np.arange(3)
    assert first_of_groups(values - 1, values, values, 3, False) is None
    assert first_of_groups(values, values, values, 2, False) is None
    assert first_of_groups(values, values.astype(np.int32), values, 3, False) is None


def beside(rows: list[tuple[int, int, int]]) -> list[int]:
    """How long each interval is open beside others of its lane, moment by moment."""
    moments = [
        {(lane, time) for time in range(low, low + long) if lane >= 0} for lane, low, long in rows
    ]
    return [
        sum(any(one in other for at, other in enumerate(moments) if at != row) for one in own)
        for row, own in enumerate(moments)
    ]


@examples(0.5)
@given(rows=SPANS, ordered=st.booleans())
def test_times_beside_others_are_those_of_a_plain_loop(
    rows: list[tuple[int, int, int]], ordered: bool
) -> None:
    rows = sorted(rows, key=lambda row: row[1]) if ordered else rows
    table = np.array(rows, np.int64).reshape(len(rows), 3)
    lane, start, end = table[:, 0].astype(np.int32), table[:, 1].copy(), table[:, 1] + table[:, 2]
    found = times_beside(lane, start, end)
    assert found is not None or not ordered
    assert beside_others(lane, start, end).tolist() == beside(rows)
    with only_numpy():
        assert beside_others(lane, start, end).tolist() == beside(rows)


def test_intervals_out_of_order_are_left_to_numpy() -> None:
    lane, start = np.zeros(2, np.int32), np.array([5, 3])
    assert times_beside(lane, start, start + 4) is None
    assert times_beside(lane, start[::-1], np.array([2, 9])) is None  # ends before it begins
