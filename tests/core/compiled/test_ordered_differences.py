"""What is compiled finds places, orders and adds up as plain loops do, or leaves it to numpy."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.analysis.distribution import distributions
from flame.core.attribution.thread_pieces import calls_within
from flame.core.columns import (
    SIDES,
    count_different,
    ordered_by_group,
    places_in,
    places_on_lanes,
    runs_in_order,
    sum_by,
)
from flame.core.compare.statistics import _places_of_medians
from flame.core.compiled.draws import drawn_places
from flame.core.compiled.library import compiled
from flame.core.compiled.nesting import lane_times, outermost_spans
from flame.core.compiled.order import number_runs, order_groups, sum_groups, summarize_groups
from flame.core.compiled.search import search_moments
from flame.core.model.threads.call_rows import CallRows
from flame.core.timeline.busy_time import BusyTime
from flame.core.timeline.lane_intervals import LaneIntervals, measure_lanes
from tests.support.compiled import only_numpy
from tests.support.tiers import examples

pytestmark = pytest.mark.skipif(compiled() is None, reason="the compiled library was not built")

I8_LIMITS = np.iinfo(np.int64)
TIMES = st.one_of(st.integers(-9, 9), st.integers(-(1 << 40), 1 << 40))
LANES = st.integers(0, 3)
MOMENTS = st.lists(st.tuples(LANES, TIMES), max_size=60)
WANTED = st.lists(st.tuples(st.integers(-1, 5), TIMES), min_size=64, max_size=90)


def columns(rows: Sequence[tuple[int, ...]], width: int = 2) -> list[Any]:
    table = np.array(rows, np.int64).reshape(len(rows), width)
    return [table[:, 0].astype(np.int32), *table.T[1:].copy()]


@examples(0.5)
@given(moments=MOMENTS, wanted=WANTED, ordered=st.booleans())
def test_moments_stand_where_bisecting_finds_them(
    moments: list[tuple[int, int]], wanted: list[tuple[int, int]], ordered: bool
) -> None:
    moments = sorted(moments)
    wanted = sorted(wanted) if ordered else wanted
    (lane, time), (on, values) = columns(moments), columns(wanted)
    for side, bisect in zip(SIDES, (bisect_left, bisect_right), strict=True):
        expected = [bisect(moments, one) for one in wanted]
        assert places_on_lanes(lane, time, on, values, side).tolist() == expected
        with only_numpy():
            assert places_on_lanes(lane, time, on, values, side).tolist() == expected


@examples(0.5)
@given(times=st.lists(TIMES, max_size=80), wanted=st.lists(TIMES, min_size=64, max_size=80))
def test_times_stand_where_numpy_finds_them(times: list[int], wanted: list[int]) -> None:
    ordered, values = np.array(sorted(times), np.int64), np.array(wanted, np.int64)
    for side, bisect in zip(SIDES, (bisect_left, bisect_right), strict=True):
        assert places_in(ordered, values, side).tolist() == [
            bisect(ordered.tolist(), one) for one in wanted
        ]


def test_times_far_from_each_other_are_found() -> None:
    random = np.random.default_rng(3)
    ordered = np.sort(random.integers(I8_LIMITS.min, I8_LIMITS.max, 5000))
    values = np.append(random.permutation(ordered), [I8_LIMITS.min, I8_LIMITS.max, 0])
    found = search_moments((None, ordered), (None, values), after=False)
    assert found is not None
    assert found.tolist() == np.searchsorted(ordered, values).tolist()


def test_lanes_that_are_not_known_are_left_to_numpy() -> None:
    lane, time = np.array([-1, 0]), np.array([3, 4])
    wanted = np.zeros(100, np.int64), np.full(100, 4)
    assert search_moments((lane, time), wanted, after=True) is None
    assert places_on_lanes(lane, time, *wanted, "right").tolist() == [2] * 100


GROUPED = st.lists(st.tuples(st.integers(0, 6), TIMES), min_size=256, max_size=300)


@examples(0.5)
@given(rows=GROUPED, dtype=st.sampled_from([np.int64, np.int32, np.uint8, np.int16]))
def test_values_are_ordered_and_added_up_by_group(rows: list[tuple[int, int]], dtype: Any) -> None:
    group, values = columns(rows)
    group = group.astype(dtype)
    found = order_groups(group, values, 7)
    assert found is not None
    assert found[0].tolist() == [value for _, value in sorted(rows)]
    assert found[1].tolist() == [sum(one == of for of, _ in rows) for one in range(7)]
    sums = [sum(value for of, value in rows if of == one) for one in range(7)]
    assert sum_by(group, values, 7).tolist() == sums
    assert sum_by(group, values > 0, 7).tolist() == [
        sum(value > 0 for of, value in rows if of == one) for one in range(7)
    ]
    with only_numpy():
        assert [one.tolist() for one in ordered_by_group(group, values, 7)] == [
            one.tolist() for one in found
        ]
        assert sum_by(group, values, 7).tolist() == sums


def test_groups_that_there_are_not_are_left_to_numpy() -> None:
    values = np.arange(300)
    for group in (values - 1, np.where(values == 299, 300, values)):
        assert order_groups(group, values, 300) is None
        assert sum_groups(group, values, 300) is None
    assert order_groups(values, values, 0) is None


def test_values_of_all_sizes_are_ordered() -> None:
    random = np.random.default_rng(5)
    limits = np.resize([I8_LIMITS.min, I8_LIMITS.max, 0, -1], 400)
    group = random.integers(0, 2, 400)
    found = order_groups(np.zeros(400, np.int64), limits, 1)
    assert found is not None
    assert found[0].tolist() == sorted(limits.tolist())
    assert order_groups(group, limits, 2) is None  # more than 64 bits together
    pairs = zip(group.tolist(), limits.tolist(), strict=True)
    assert ordered_by_group(group, limits, 2)[0].tolist() == [one for _, one in sorted(pairs)]


# So many percent, among them those of the first and the last value.
PERCENTS = (1, 50, 50, 90, 99, 100)
FAR = st.one_of(TIMES, st.integers(I8_LIMITS.min, I8_LIMITS.max), st.integers(1 << 20, 3 << 19))


def summaries(group: Any, values: Any, size: int) -> list[list[int]]:
    """What `summarize_groups` tells, by a plain loop over sorted values."""
    told: list[list[int]] = []
    for of in range(size):
        some = sorted(values[group == of].tolist())
        total = int(np.array(some, np.int64).sum())  # wraps
        ranks = [some[-(-len(some) * percent // 100) - 1] for percent in PERCENTS if some]
        told.append([len(some), total, some[0], *ranks, some[-1]] if some else [0] * 10)
    return [list(row) for row in zip(*told, strict=True)]


@examples(0.5)
@given(
    rows=st.lists(st.tuples(st.sampled_from([0, 0, 0, 0, 2, 5, 6]), FAR), max_size=300),
    dtype=st.sampled_from([np.int64, np.int32, np.uint8, np.int16]),
    times=st.integers(1, 4),
)
def test_values_are_summarized_by_group(
    rows: list[tuple[int, int]], dtype: Any, times: int
) -> None:
    rows = rows * times + [(3, 0)] * 256
    group, values = columns(rows)
    found = summarize_groups(group.astype(dtype), values, 7, PERCENTS)
    assert found is not None
    assert found.tolist() == summaries(group, values, 7)
    with only_numpy():
        expected = distributions(group, values, 7)
    found_by = distributions(group, values, 7)
    for name, column in vars(expected).items():
        assert getattr(found_by, name).tolist() == column.tolist()


def spread(kind: str, random: np.random.Generator, size: int) -> Any:
    """Values that lie close to each other, far apart, both, or each in a bin of the next."""
    if kind == "steps":
        return np.resize([*(1 << np.arange(63)), *(-1 << np.arange(63)), I8_LIMITS.max], size)
    low, high = {"close": (0, 500), "wide": (0, 1 << 40), "all": (I8_LIMITS.min, I8_LIMITS.max)}[
        kind
    ]
    values = random.integers(low, high, size)
    values[random.integers(0, size, 3)] = 1 << 50  # an outlier
    return values


@pytest.mark.parametrize("kind", ["close", "wide", "all", "steps"])
@pytest.mark.parametrize("groups", [1, 3, 65, 3000])
def test_many_values_are_summarized(kind: str, groups: int) -> None:
    random = np.random.default_rng(7)
    values = spread(kind, random, 9000)
    group = random.integers(0, groups, len(values)) ** 2 // groups  # few in some
    found = summarize_groups(group, values, groups, PERCENTS)
    assert found is not None
    assert found.tolist() == summaries(group, values, groups)


def test_groups_and_percents_that_there_are_not_are_not_summarized() -> None:
    values = np.arange(300)
    for group in (values - 1, np.where(values == 299, 300, values)):
        assert summarize_groups(group, values, 300, PERCENTS) is None
    for percents in ((0,), (101,), (50, 49), tuple(range(1, 10))):
        assert summarize_groups(values, values, 300, percents) is None
    assert summarize_groups(values, values, 0, PERCENTS) is None


@pytest.mark.parametrize("size", [1, 2, 7, 250, 255, 256, 700])
def test_drawn_medians_are_found_as_by_numpy(size: int) -> None:
    random = np.random.default_rng(size)
    dtype = np.uint8 if size < 256 else np.uint16
    times = random.multinomial(size, np.full(size, 1 / size), 100).T.astype(dtype)
    order = np.argsort(random.random((9, size)), axis=1)
    found = drawn_places(times, order)
    assert found is not None
    with only_numpy():
        assert _places_of_medians(times, order).tolist() == found.tolist()
    place_of = np.argsort(order[0]).tolist()
    drawn = sorted(place_of[at] for at in range(size) for _ in range(times[at, 0]))
    assert found[0, 0] == drawn[(size + 1) // 2 - 1]


def test_what_is_no_order_of_draws_is_left_to_numpy() -> None:
    times = np.ones((300, 4), np.uint16)
    assert drawn_places(times, np.arange(299)[None]) is None
    assert drawn_places(times, np.arange(300, 0, -1)[None]) is None
    assert drawn_places(times, np.arange(-1, 299)[None]) is None
    assert drawn_places(times.astype(np.uint8), np.arange(300)[None]) is None
    assert drawn_places(times.astype(np.int64), np.arange(300)[None]) is None


SPANS = st.lists(st.tuples(st.integers(-1, 2), st.integers(0, 20), st.integers(-1, 8)), max_size=40)


def outermost(rows: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """(row, begin, end) of what reaches beyond the intervals before it on its lane."""
    told: list[tuple[int, int, int]] = []
    reach: dict[int, int] = {}
    for lane, start, end, row in sorted(
        ((lane, start, -(start + length), row) for row, (lane, start, length) in enumerate(rows))
    ):
        begin = max(start, reach.get(lane, start))
        if lane >= 0 and -end > begin:
            told.append((row, begin, -end))
            reach[lane] = -end
    return told


@examples(0.5)
@given(rows=SPANS)
def test_what_is_outermost_is_that_of_a_plain_loop(rows: list[tuple[int, int, int]]) -> None:
    lane, start, length = columns(rows, 3)
    found = outermost_spans(lane, start, start + length)
    assert found is not None
    assert list(zip(*(column.tolist() for column in found), strict=True)) == outermost(rows)


@examples(0.3)
@given(rows=SPANS)
def test_calls_within_others_are_those_of_numpy(rows: list[tuple[int, int, int]]) -> None:
    lane, start, length = columns(rows, 3)
    calls = CallRows(lane, lane, start, start + np.maximum(length, 0))
    found = calls_within(calls).tolist()
    with only_numpy():
        assert calls_within(calls).tolist() == found


def united(rows: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """(lane, begin, end) of what is open on each lane, moment by moment; for short intervals."""
    open_at = sorted({(lane, time) for lane, low, long in rows for time in range(low, low + long)})
    told: list[tuple[int, int, int]] = []
    for lane, time in open_at:
        if told and told[-1][::2] == (lane, time):
            told[-1] = (lane, told[-1][1], time + 1)
        else:
            told.append((lane, time, time + 1))
    return told


@examples(0.5)
@given(rows=SPANS)
def test_what_is_open_on_lanes_is_that_of_a_plain_loop(rows: list[tuple[int, int, int]]) -> None:
    lane, start, length = columns(rows, 3)

    def found() -> list[tuple[int, ...]]:
        union = LaneIntervals.union(lane, start, start + length)
        stretches = (union.lane, union.begin, union.end)
        return list(zip(*(column.tolist() for column in stretches), strict=True))

    assert found() == united(rows)
    with only_numpy():
        assert found() == united(rows)


@examples(0.5)
@given(rows=SPANS)
def test_when_anything_is_open_is_that_of_a_plain_loop(rows: list[tuple[int, int, int]]) -> None:
    rows = [(0, start, length) for _, start, length in rows if length > 0]
    _, start, length = columns(rows, 3)

    def found() -> list[tuple[int, ...]]:
        busy = BusyTime.union(start, start + length)
        return list(zip(busy.low.tolist(), busy.high.tolist(), strict=True))

    expected = [stretch[1:] for stretch in united(rows)]
    assert found() == expected
    with only_numpy():
        assert found() == expected


@examples(0.5)
@given(rows=SPANS)
def test_lanes_are_measured_as_by_a_plain_loop(rows: list[tuple[int, int, int]]) -> None:
    rows = sorted(((lane, start, abs(length)) for lane, start, length in rows), key=lambda r: r[1])
    lane, start, length = columns(rows, 3)
    found = lane_times(lane, start, start + length, 4)
    assert found is not None
    for at, (first, last, busy) in enumerate(zip(*map(list, found), strict=True)):
        own = [(low, low + long) for of, low, long in rows if of == at]
        assert first == min((low for low, _ in own), default=I8_LIMITS.max)
        assert last == max((high for _, high in own), default=I8_LIMITS.min)
        assert busy == len({time for low, high in own for time in range(low, high)})
    with only_numpy():
        expected = measure_lanes(lane, start, start + length, 4)
    assert [one.tolist() for one in expected] == [one.tolist() for one in found]


def test_lanes_out_of_order_are_measured_by_numpy() -> None:
    lane, start = np.zeros(2, np.int32), np.array([5, 3])
    assert lane_times(lane, start, start + 4, 1) is None
    assert [one.tolist() for one in measure_lanes(lane, start, start + 4, 1)] == [[3], [9], [6]]
    assert lane_times(lane, start[::-1], np.array([2, 9]), 1) is None  # ends before it begins
    assert lane_times(lane + 1, start[::-1], start + 4, 1) is None  # there is no such lane


@examples(0.5)
@given(rows=GROUPED, some=st.booleans())
def test_runs_of_equal_rows_are_numbered(rows: list[tuple[int, int]], some: bool) -> None:
    rows = [(one, value % 3) for one, value in rows]
    keys = columns(rows)
    order = np.lexsort(keys)[len(rows) // 9 if some and len(rows) > 288 else 0 :]
    found = number_runs(keys, order)
    assert found is not None
    wanted = [rows[at][::-1] for at in order.tolist()]
    known = sorted(set(wanted))
    expected = [-1] * len(rows)
    for at, row in zip(order.tolist(), wanted, strict=True):
        expected[at] = known.index(row)
    assert (found.number.tolist(), found.runs) == (expected, len(known))
    with only_numpy():
        plain = runs_in_order(keys, order)
    assert (plain.number.tolist(), plain.runs) == (expected, len(known))


def test_runs_of_rows_that_there_are_not_are_not_numbered() -> None:
    order = np.arange(300)
    for wrong in (order - 1, order + 1):
        assert number_runs([order], wrong) is None


@examples(0.5)
@given(rows=GROUPED)
def test_different_values_are_counted_by_group(rows: list[tuple[int, int]]) -> None:
    group, values = columns(rows)
    expected = [len({value for of, value in rows if of == one}) for one in range(7)]
    assert count_different(group.astype(np.int64), values, 7).tolist() == expected
    near = (values % 5).astype(np.int32)
    expected = [len({value % 5 for of, value in rows if of == one}) for one in range(7)]
    assert count_different(group.astype(np.int64), near, 7).tolist() == expected


def test_stretches_without_length_stay_where_nothing_else_is_open() -> None:
    start = np.array([5, 2, 9, 3])
    with only_numpy():
        expected = BusyTime.union(start, start + np.array([0, 3, 0, 0]))
    found = BusyTime.union(start, start + np.array([0, 3, 0, 0]))
    assert found.low.tolist() == expected.low.tolist() == [2, 9]
    assert found.high.tolist() == expected.high.tolist() == [5, 9]
