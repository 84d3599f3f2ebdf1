"""What is compiled says what numpy says, or leaves it to numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from flame.core.attribution import nvtx_ranges
from flame.core.attribution.joins.launches import join_launches
from flame.core.attribution.nvtx_ranges import NestedRanges, RangeIndex
from flame.core.columns import I4, I8, Column, distinct, order_by, unique_rows
from flame.core.compiled.intervals import find_open
from flame.core.compiled.library import compiled
from flame.core.compiled.order import order_rows
from flame.core.compiled.rows import RowTable, join_calls, number_rows
from flame.core.model.raw import OPEN, RawActivities, RawCalls, RawRanges, TableBuilder
from flame.core.model.stacks import StackBuilder
from flame.core.names.nvtx import KEPT_PREFIXES, clean_range, strip_running
from flame.core.readers.sqlite.numbering import Stripping, TextNumbers
from tests.support.compiled import only_numpy
from tests.support.tiers import examples

pytestmark = pytest.mark.skipif(compiled() is None, reason="the compiled library was not built")

SIZES = st.sampled_from([1024, 1025, 3000])
DTYPES = st.sampled_from([np.int64, np.int32, np.uint8, np.bool_, np.int16])


@st.composite
def tables(draw: st.DrawFn) -> list[np.ndarray[Any, Any]]:
    """Columns of one length in which rows repeat, some with the extremes of their type."""
    size, distinct_rows = draw(SIZES), draw(st.integers(1, 300))
    columns = []
    for dtype in draw(st.lists(DTYPES, min_size=1, max_size=5)):
        values = draw(arrays.arrays(dtype, distinct_rows))
        columns.append(values)
    seed = draw(st.integers(0, 1 << 32))
    chosen = np.random.default_rng(seed).integers(0, distinct_rows, size)
    return [column[chosen] for column in columns]


@examples(0.5)
@given(table=tables())
def test_distinct_rows_and_keys_are_those_of_numpy(table: list[np.ndarray[Any, Any]]) -> None:
    fast = unique_rows(table), distinct(table[0].astype(np.int64))
    with only_numpy():
        plain = unique_rows(table), distinct(table[0].astype(np.int64))
    for one, other in zip(fast, plain, strict=True):
        for left, right in zip(one, other, strict=True):
            assert left.tolist() == right.tolist()
            assert left.dtype == right.dtype


@examples(0.5)
@given(table=tables())
def test_rows_are_numbered_as_they_come(table: list[np.ndarray[Any, Any]]) -> None:
    numbered = number_rows(table)
    if numbered is None:
        assert (
            any(column.dtype == np.int16 for column in table)
            or len(set(zip(*(column.tolist() for column in table), strict=True)))
            > len(table[0]) // 4
        )
        return
    known: dict[tuple[Any, ...], int] = {}
    first, number = numbered
    rows = list(zip(*(column.tolist() for column in table), strict=True))
    assert number.tolist() == [known.setdefault(row, len(known)) for row in rows]
    assert [rows[row] for row in first.tolist()] == list(known)
    assert [rows.index(row) for row in known] == first.tolist()


@examples(0.5)
@given(table=tables())
def test_rows_are_ordered_as_by_numpy(table: list[np.ndarray[Any, Any]]) -> None:
    order = order_rows(table)
    assert order is not None
    assert order.dtype == np.int64
    assert order.tolist() == np.lexsort(table).tolist()
    with only_numpy():
        assert order_by(table).tolist() == order.tolist()


def test_rows_are_ordered_by_values_of_all_sizes() -> None:
    random = np.random.default_rng(7)
    words = random.integers(0, 1 << 63, 3000) >> random.integers(0, 63, 3000)
    limits = np.resize([np.iinfo(np.int64).min, np.iinfo(np.int64).max, 0, -1], 3000)
    tables = [words], [words, -words >> 20], [limits, words & 7], [words, limits]
    for table in *tables, [words, np.arange(3000) // 9], [np.arange(3000), words & 7]:
        order = order_rows(table)
        assert order is not None
        assert order.tolist() == np.lexsort(table).tolist()
    assert order_rows([words.astype(np.uint64)]) is None


@pytest.mark.parametrize("apart", [0, 3, 3000])
def test_rows_of_lanes_are_ordered_however_near_they_are_to_that(apart: int) -> None:
    random = np.random.default_rng(apart)
    table = [np.arange(3000) + random.integers(0, apart + 1, 3000), random.integers(0, 5, 3000)]
    order = order_rows(table)
    assert order is not None
    assert order.tolist() == np.lexsort(table).tolist()


def test_columns_that_are_views_are_numbered_by_their_values() -> None:
    table = np.arange(6000, dtype=np.int64).reshape(3000, 2) % 7
    numbered = number_rows([table[:, 0], table[::-1, 1]])
    assert numbered is not None
    assert len(numbered[0]) == 49 // 7
    assert number_rows([np.repeat(np.int64(3), 2000)]) is not None


def test_too_many_different_rows_are_left_to_numpy() -> None:
    assert number_rows([np.arange(4000)]) is None
    assert number_rows([np.arange(4000) // 5]) is not None
    assert number_rows([np.zeros(100, np.int64)]) is None


def calls_of(process: I4, correlation: I8) -> RawCalls:
    calls = TableBuilder(RawCalls)
    size = len(process)
    calls.add(
        start=np.arange(size),
        end=np.arange(size) + 1,
        thread=process,
        correlation=correlation,
        frame=np.zeros(size),
        python=np.zeros(size),
        native=np.zeros(size),
        chain_only=np.zeros(size),
    )
    return calls.build()


def work_of(process: I4, correlation: I8) -> RawActivities:
    work, size = TableBuilder(RawActivities), len(process)
    none = np.zeros(size)
    work.add(
        kind=none,
        start=none,
        end=none,
        process=process,
        device=none,
        stream=none,
        correlation=correlation,
        frame=none,
        graph_node=none,
    )
    return work.build()


IDS = st.one_of(st.integers(-2, 12), st.integers(-(1 << 62), 1 << 62))
LAUNCHES = st.lists(st.tuples(st.integers(-1, 2), IDS), max_size=30)


@examples(0.5)
@given(calls=LAUNCHES, work=LAUNCHES, unique=st.booleans())
def test_launches_are_joined_as_by_numpy(
    calls: list[tuple[int, int]], work: list[tuple[int, int]], unique: bool
) -> None:
    if unique:
        calls = list(dict.fromkeys(calls))
    (have, ids), (want, wanted) = (
        (np.array([p for p, _ in rows], np.int32), np.array([i for _, i in rows], np.int64))
        for rows in (calls, work)
    )
    given_ = work_of(want, wanted), calls_of(have, ids), np.arange(3, dtype=np.int32)
    fast = join_launches(*given_)
    with only_numpy():
        plain = join_launches(*given_)
    assert fast.call.tolist() == plain.call.tolist()
    assert fast.chain.tolist() == plain.chain.tolist()


def test_ids_that_collide_on_purpose_are_left_to_numpy() -> None:
    size = 1 << 14
    process, ids = np.zeros(size, np.int32), np.arange(1, size + 1, dtype=np.int64) << 20
    assert join_calls(process, ids, process, ids) is None
    assert join_calls(process, ids >> 20, process, ids >> 20) is not None


def test_two_calls_of_one_id_are_left_to_numpy() -> None:
    process, ids = np.zeros(3, np.int32), np.array([5, 6, 5])
    assert join_calls(process, ids, process, ids) is None


TIMES = st.integers(0, 12)
RANGES = st.lists(
    st.tuples(st.integers(-1, 2), TIMES, st.integers(-2, 12), st.integers(0, 4)), max_size=14
)
MOMENTS = st.lists(st.tuples(st.integers(-1, 2), st.integers(-1, 26)), max_size=14)


def ranges_of(rows: list[tuple[int, int, int, int]]) -> RawRanges:
    table = TableBuilder(RawRanges)
    lane, start, length, frame = (np.array([row[i] for row in rows], np.int64) for i in range(4))
    table.add(start=start, end=start + length, thread=lane, frame=frame)
    return table.build()


def paths(index: RangeIndex | NestedRanges, lane: I4, time: I8, stacks: StackBuilder) -> list[Any]:
    found = index.open_at(lane, time)
    table = stacks.build()
    return [table.path(stack) for stack in found.tolist()]


@examples(3)
@given(rows=RANGES, moments=MOMENTS, deepest=st.sampled_from([1, 2, 500]))
def test_what_is_open_is_what_numpy_finds(
    rows: list[tuple[int, int, int, int]], moments: list[tuple[int, int]], deepest: int
) -> None:
    ranges = ranges_of(rows)
    lane = np.array([lane for lane, _ in moments], np.int32)
    time = np.array([time for _, time in moments], np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nvtx_ranges, "MAX_DEPTH", deepest)
        patch.setattr("flame.core.attribution.open_at.nest.__defaults__", (deepest,))
        fast, plain = StackBuilder(), StackBuilder()
        index, reference = RangeIndex(ranges, 99, fast), NestedRanges(ranges, plain)
        assert paths(index, lane, time, fast) == paths(reference, lane, time, plain)
        assert index.too_deep == reference.nesting.too_deep


def test_ranges_that_nest_are_swept_and_crossing_threads_alone_are_not() -> None:
    spans = [(0, 0, 10, 1), (0, 2, 4, 2), (0, 6, 4, 3), (1, 0, 5, 1), (1, 3, 5, 2), (2, 0, 3, 1)]
    lane, start, length, frame = (np.array([row[i] for row in spans]) for i in range(4))
    moments = np.array([0, 0, 1, 2, -1]), np.array([3, 10, 4, 2, 1])
    found = find_open((lane, start, start + length, frame), moments, 500)
    assert found is not None
    assert found.refused.tolist() == [False, True, False]
    deep = StackBuilder()
    assert found.path[2] == found.path[4] == 0
    assert len(found.parent) == len(found.frame) == 4  # none; 1; 1, 2; 1, 3
    index = RangeIndex(ranges_of(spans), 99, deep)
    assert paths(index, *moments, deep) == [[1, 2], [1, 3], [1, 2], [1], []]


def test_a_range_that_never_ended_is_open_until_the_capture_stopped() -> None:
    stacks = StackBuilder()
    table = TableBuilder(RawRanges)
    table.add(start=np.array([5]), end=np.array([OPEN]), thread=np.zeros(1), frame=np.array([7]))
    index = RangeIndex(table.build(), 20, stacks)
    assert paths(index, np.zeros(3, np.int32), np.array([4, 20, 21]), stacks) == [[], [7], []]


def test_an_unsorted_lane_of_many_is_sorted() -> None:
    random = np.random.default_rng(5)
    start = random.permutation(20_000) * 10
    lane = np.zeros(len(start), np.int32)
    spans = lane, start, start + 8, (start // 10 % 1000).astype(np.int32)
    time = random.permutation(20_000) * 10 + 5
    found = find_open(spans, (lane, time), 500)
    assert found is not None
    assert found.frame[found.path].tolist() == (time // 10 % 1000).tolist()


OPERATOR_TEXTS = st.lists(
    st.sampled_from(
        [
            *("mul", "{'Module'", "execute_", ", ", ",", " ", "é", "-", "7", "871", "[", "]", "("),
            *(", seq = ", ", op_id = ", ", stashed seq = ", ", sizes = ", ", input_op_ids = "),
            *(", seq = 5", ", op_id = 871", ", sizes = [[4], []]", ", input_op_ids = [(867,0)]"),
            *("[(1,0), (-2, 1)]", "[[4, 5]", ", [", "= ", " = "),
        ]
    ),
    max_size=9,
).map("".join)


@examples(3)
@given(texts=st.lists(OPERATOR_TEXTS, min_size=1, max_size=12))
@example(texts=["mul, input_op_ids = [(867,0)], ", "mul, input_op_ids = [(867,0)],"])
def test_running_numbers_are_left_out_as_by_python(texts: list[str]) -> None:
    given_ = [text.encode() for text in texts]
    numbers = TextNumbers(Stripping(strip_running, KEPT_PREFIXES))
    found = numbers.number(given_)
    assert list(numbers) == list(dict.fromkeys(map(strip_running, given_)))
    assert [list(numbers)[number] for number in found.tolist()] == list(map(strip_running, given_))


@examples(3)
@given(text=OPERATOR_TEXTS)
@example(text="mul, sizes = [[4], []], seq = 5, 871-[")
@example(text="mul, sizes = [[4], []], seq = 5, ")
@example(text="mul, sizes = [[4], []], input_op_ids = [(867,0)], [[4, 5]")
def test_what_is_left_out_of_a_text_changes_no_name(text: str) -> None:
    assert clean_range(strip_running(text.encode()).decode()) == clean_range(text)


def test_many_texts_of_all_lengths_keep_their_numbers() -> None:
    texts = [(b"%d-" % number) * (number % 40) + b"x" * (number % 23) for number in range(9000)]
    numbers = TextNumbers()
    found = numbers.number([*texts, None, *texts])
    expected = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    assert found.tolist() == [*map(expected.get, texts), -1, *map(expected.get, texts)]
    assert list(numbers) == list(expected)


def test_a_table_of_rows_forgets_from_where_it_is_told() -> None:
    table = RowTable(2)
    columns: list[Column] = [np.arange(5000), np.arange(5000, dtype=np.int32) % 3]
    assert table.number(columns) is not None
    table.truncate(1000)
    assert len(table) == 1000
    numbered = table.number([column[500:2000] for column in columns])
    assert numbered is not None
    assert numbered[1].tolist() == list(range(500, 2000))
    assert table.rows(1998).tolist() == [[1998, 0], [1999, 1]]


def test_columns_that_lie_at_odd_places_are_read() -> None:
    raw = np.arange(3000, dtype=np.int64) % 7
    odd = np.frombuffer(b"x" + raw.tobytes(), np.int64, offset=1)
    assert not odd.flags.aligned
    numbered = number_rows([odd])
    assert numbered is not None
    assert numbered[1].tolist() == raw.tolist()
    process = np.zeros(6, np.int32)
    joined = join_calls(process, odd[1:7], process, odd[1:7])
    assert joined is not None
    assert joined.tolist() == list(range(6))


def test_columns_of_several_lengths_are_an_error() -> None:
    short, long = np.zeros(2, np.int32), np.zeros(3, np.int64)
    with pytest.raises(ValueError, match="one length"):
        join_calls(short, long, short, long[:2])
    with pytest.raises(ValueError, match="one length"):
        find_open((short, long, long, short), (short, long[:2]), 500)
    with pytest.raises(ValueError, match="one length"):
        RowTable(2).number([short, long])


LIMITS = [value + more for value in (0, 1 << 31, 1 << 32, 1 << 63) for more in (-1, 0, 1)]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64])
def test_rows_at_the_limits_of_their_types_are_those_of_numpy(dtype: type[np.generic]) -> None:
    limits = np.array([sign * value % (1 << 64) for value in LIMITS for sign in (-1, 1)], np.uint64)
    column = limits.astype(dtype)[np.arange(4800) % len(limits)]
    table = [column, column[::-1], column]
    assert number_rows(table) is not None
    fast = unique_rows(table)
    with only_numpy():
        plain = unique_rows(table)
    assert [part.tolist() for part in fast] == [part.tolist() for part in plain]


def test_launches_at_the_limits_of_ids_are_joined_as_by_numpy() -> None:
    ids = np.array([value for value in LIMITS if 0 < value < 1 << 63] * 2, np.int64)
    process = np.repeat(np.array([0, (1 << 31) - 1], np.int32), len(ids) // 2)
    joined = join_calls(process, ids, process[::-1], ids[::-1])
    assert joined is not None
    assert joined.tolist() == list(range(len(ids)))[::-1]


def test_many_ranges_and_moments_at_one_time_are_swept_once() -> None:
    size = 1 << 15
    lane, start = np.zeros(size, np.int32), np.full(size, 9)
    end = np.full(size, 8)
    end[5] = 10
    found = find_open((lane, start, end, np.arange(size)), (lane, start), 500)
    assert found is not None
    assert found.frame[found.path].tolist() == [5] * size
