"""Intervals of lanes cut others as they would be cut nanosecond by nanosecond."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flame.core.columns import I8
from flame.core.timeline.lane_intervals import LaneIntervals

Interval = tuple[int, int, int]
"""(lane, start, length)."""

intervals = st.lists(
    st.tuples(st.integers(0, 2), st.integers(-5, 20), st.integers(0, 6)), max_size=8
)
wanted = st.lists(
    st.tuples(st.integers(-1, 3), st.integers(-9, 24), st.integers(0, 12)), max_size=6
)


def columns(found: list[Interval]) -> tuple[I8, I8, I8]:
    lane, start, length = np.array(found, np.int64).reshape(-1, 3).T
    return lane, start, start + length


def moments(found: list[Interval]) -> set[tuple[int, int]]:
    return {(lane, at) for lane, start, length in found for at in range(start, start + length)}


@given(intervals)
def test_a_union_is_open_when_any_is(found: list[Interval]) -> None:
    union = LaneIntervals.union(*columns(found))
    rows = list(zip(union.lane.tolist(), union.begin.tolist(), union.end.tolist(), strict=True))
    assert moments([(lane, low, high - low) for lane, low, high in rows]) == moments(found)
    assert rows == sorted(rows) and all(low < high for _, low, high in rows)
    for (lane, _, end), (other, begin, _) in pairwise(rows):
        assert lane < other or end < begin, "they touch"


@given(intervals, wanted)
def test_pieces_are_what_is_covered_and_what_is_not(
    found: list[Interval], cut: list[Interval]
) -> None:
    union = LaneIntervals.union(*columns(found))
    pieces = union.cut(*columns(cut))
    open_at = moments(found)
    assert (pieces.lengths > 0).all()
    seen: dict[int, list[int]] = {at: [] for at in range(len(cut))}
    for source, by, begin, end in zip(*(column.tolist() for column in pieces), strict=True):
        lane = cut[source][0]
        seen[source] += range(begin, end)
        assert all(((lane, at) in open_at) == (by >= 0) for at in range(begin, end))
        if by >= 0:
            assert union.lane[by] == lane
            assert union.begin[by] <= begin < end <= union.end[by]
    for source, (_, start, length) in enumerate(cut):
        assert seen[source] == list(range(start, start + length)), "nothing is lost, all in order"
    assert (np.diff(pieces.source) >= 0).all()


@given(intervals, wanted)
def test_intervals_cover_what_lies_wholly_in_one(
    found: list[Interval], others: list[Interval]
) -> None:
    open_at = moments(found)
    covered = LaneIntervals.union(*columns(found)).cover(*columns(others))
    for (lane, start, length), is_covered in zip(others, covered.tolist(), strict=True):
        if length:
            inside = ((lane, at) in open_at for at in range(start, start + length))
            assert is_covered == all(inside)
