"""Which ranges are open on a thread at a moment: rule by rule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.attribution.nesting import MAX_DEPTH
from flame.core.attribution.nvtx_ranges import RangeIndex
from flame.core.model.raw import OPEN, RawRanges, TableBuilder
from flame.core.model.stacks import StackBuilder
from tests.support.profiles.recorded import i8

Range = tuple[int, int, int]
"""(thread, start, end); its frame is its place in the list."""

CAPTURE_END = 20


def open_frames(rows: list[Range], thread: int, *times: int) -> list[list[int]]:
    """Frames of the ranges open on ``thread`` at each time, outermost first."""
    batches, stacks = TableBuilder(RawRanges), StackBuilder()
    thread_of, start, end = (i8(*(row[column] for row in rows)) for column in range(3))
    batches.add(thread=thread_of, start=start, end=end, frame=i8(*range(len(rows))))
    index = RangeIndex(batches.build(), CAPTURE_END, stacks)
    found = index.open_at(i8(*[thread] * len(times)), i8(*times))
    return [stacks.build().path(stack) for stack in found.tolist()]


def test_a_range_is_open_from_its_start_to_its_end_both_included() -> None:
    assert open_frames([(0, 5, 9)], 0, 4, 5, 9, 10) == [[], [0], [0], []]


def test_earlier_is_outer_and_the_longer_of_equally_early_ones() -> None:
    assert open_frames([(0, 5, 7), (0, 5, 9), (0, 3, 8)], 0, 6) == [[2, 1, 0]]


def test_equal_ranges_nest_in_table_order() -> None:
    assert open_frames([(0, 5, 9), (0, 5, 9)], 0, 6) == [[0, 1]]


def test_ranges_that_touch_are_both_open_where_they_do() -> None:
    assert open_frames([(0, 1, 5), (0, 5, 9)], 0, 4, 5, 6) == [[0], [0, 1], [1]]


def test_a_range_without_length_is_open_at_its_moment() -> None:
    assert open_frames([(0, 1, 9), (0, 5, 5)], 0, 4, 5, 6) == [[0], [0, 1], [0]]


def test_crossing_ranges_are_both_open_while_both_are() -> None:
    assert open_frames([(0, 1, 6), (0, 4, 9)], 0, 5, 6, 7) == [[0, 1], [0, 1], [1]]


def test_threads_see_only_their_own_ranges() -> None:
    assert open_frames([(0, 1, 9), (1, 2, 9)], 1, 5) == [[1]]


def test_a_range_still_open_at_the_end_lasts_to_the_end_of_the_capture() -> None:
    assert open_frames([(0, 5, int(OPEN))], 0, 4, CAPTURE_END) == [[], [0]]


def test_a_range_that_ends_before_it_starts_is_never_open() -> None:
    assert open_frames([(0, 9, 5)], 0, 5, 7, 9) == [[], [], []]


@pytest.mark.parametrize("thread", [-1, 0])
def test_nobody_knows_the_ranges_of_an_unknown_thread(thread: int) -> None:
    assert open_frames([(-1, 0, 9)], thread, 0, 5, 9) == [[], [], []]


def test_of_ranges_that_start_at_one_moment_no_more_than_the_limit_are_open_then() -> None:
    rows = [(0, 1, 9)] + [(0, 5, 5)] * (MAX_DEPTH + 3)
    (found,) = open_frames(rows, 0, 5)
    assert found == list(range(MAX_DEPTH))


@given(
    st.lists(st.tuples(st.integers(-1, 1), st.integers(0, 9), st.integers(0, 9)), max_size=10),
    st.integers(0, 1),
)
def test_open_ranges_are_those_a_look_at_each_finds(rows: list[Range], thread: int) -> None:
    def at(time: int) -> list[int]:
        found = [
            (start, -end, row)
            for row, (on, start, end) in enumerate(rows)
            if on == thread and start <= time <= end
        ]
        return [row for _, _, row in sorted(found)]

    times = range(-1, 11)
    assert open_frames(rows, thread, *times) == [at(time) for time in times]
