"""Nesting of intervals by time, against checking every interval at every moment."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flame.core.attribution.nesting import MAX_DEPTH, Nesting, nest
from flame.core.errors import InputError
from tests.support.compiled import only_numpy
from tests.support.profiles.recorded import i8

LANES = 2
LAST = 14
Interval = tuple[int, int, int]
"""(lane, start, end)."""

intervals = st.tuples(st.integers(0, LANES - 1), st.integers(-2, LAST), st.integers(-2, LAST))
some_intervals = st.lists(intervals, max_size=12)
MOMENTS = [(lane, time) for lane in range(LANES) for time in range(-3, LAST + 2)]


def nested(rows: list[Interval]) -> Nesting:
    """Nest them: compiled where that is built, and equal to what numpy makes of them."""
    lane, start, end = (i8(*(row[column] for row in rows)) for column in range(3))
    found = nest(lane, start, end)
    with only_numpy():
        plain = nest(lane, start, end)
    for name in ("source", "start", "end", "parent", "depth"):
        assert getattr(found, name).tolist() == getattr(plain, name).tolist()
    assert found.too_deep == plain.too_deep
    return found


def open_at(rows: list[Interval], lane: int, time: int) -> list[int]:
    """Intervals open on ``lane`` at ``time``, outermost first: earlier, longer, as given."""
    found = [
        (start, -end, row)
        for row, (on, start, end) in enumerate(rows)
        if on == lane and start <= time < end
    ]
    return [row for _, _, row in sorted(found)]


def path(pieces: Nesting, piece: int) -> list[int]:
    """Intervals of ``piece`` and all around it, outermost first."""
    found = []
    while piece >= 0:
        found.append(int(pieces.source[piece]))
        piece = int(pieces.parent[piece])
    return found[::-1]


@given(some_intervals)
@example([(0, 0, 10), (0, 5, 14), (0, 7, 9)])  # crossing, with one inside the crossing
@example([(0, 0, 4), (0, 2, 6), (0, 5, 9), (0, 8, 12)])  # a chain of crossings
@example([(0, 0, 5), (0, 5, 9)])  # touching
@example([(0, 0, 5), (0, 0, 5), (0, 0, 9)])  # equal starts
def test_what_is_open_at_a_moment_nests_outermost_first(rows: list[Interval]) -> None:
    pieces = nested(rows)
    lanes, times = (i8(*(moment[column] for moment in MOMENTS)) for column in (0, 1))
    innermost = pieces.innermost(lanes, times).tolist()
    expected = [open_at(rows, lane, time) for lane, time in MOMENTS]
    assert [path(pieces, piece) for piece in innermost] == expected


@given(some_intervals)
def test_the_pieces_of_an_interval_cover_it_without_gap(rows: list[Interval]) -> None:
    pieces = nested(rows)
    parts: dict[int, list[tuple[int, int]]] = {
        row: [] for row, (_, start, end) in enumerate(rows) if start < end
    }
    for source, *part in zip(pieces.source, pieces.start, pieces.end, strict=True):
        parts[int(source)].append((int(part[0]), int(part[1])))
    for row, found in parts.items():
        found.sort()
        assert found[0][0] == rows[row][1]
        assert found[-1][1] == rows[row][2]
        assert [end for _, end in found[:-1]] == [start for start, _ in found[1:]]


@given(some_intervals)
def test_pieces_never_cross_their_parent(rows: list[Interval]) -> None:
    pieces = nested(rows)
    for piece, parent in enumerate(pieces.parent.tolist()):
        if parent >= 0:
            assert pieces.start[parent] <= pieces.start[piece]
            assert pieces.end[piece] <= pieces.end[parent]
            assert pieces.depth[piece] == pieces.depth[parent] + 1
        else:
            assert pieces.depth[piece] == 0


@given(some_intervals)
def test_own_time_adds_up_to_the_time_in_which_anything_is_open(rows: list[Interval]) -> None:
    own = nested(rows).own_time()
    assert (own >= 0).all()
    assert own.sum() == sum(bool(open_at(rows, lane, time)) for lane, time in MOMENTS)


@given(some_intervals)
def test_going_by_depth_visits_parents_first(rows: list[Interval]) -> None:
    pieces = nested(rows)
    depths = [pieces.depth[at].tolist() for at in pieces.by_depth()]
    assert depths == [[level] * len(found) for level, found in enumerate(depths)]
    assert sum(map(len, depths)) == len(pieces)


def swept(rows: list[Interval], lane: int) -> Iterator[tuple[int, int, int, int]]:
    """Pieces (interval, start, end, depth) of one lane, by going through its times in order."""
    upcoming = sorted(
        (
            (start, -end, row)
            for row, (on, start, end) in enumerate(rows)
            if on == lane and start < end
        ),
        reverse=True,
    )
    opened: list[tuple[int, int]] = []  # (interval, start of its current piece), outermost first
    for stop in sorted({-end for _, end, _ in upcoming}):
        while upcoming and upcoming[-1][0] < stop:
            start, _, row = upcoming.pop()
            opened.append((row, start))
        first = next(place for place, (row, _) in enumerate(opened) if rows[row][2] == stop)
        for place in range(first, len(opened)):
            row, begin = opened[place]
            yield row, begin, stop, place
        opened[first:] = [(row, stop) for row, _ in opened[first:] if rows[row][2] > stop]


@given(st.lists(st.tuples(st.integers(0, LANES - 1), st.integers(0, 60), st.integers(0, 60))))
@example([(0, start, start + 25) for start in range(30)])  # all cross their neighbours
@example([(0, 0, 5), (0, 1, 10), (0, 2, 12), (0, 6, 7)])  # as many open at the end as at the start
def test_the_pieces_are_those_of_a_sweep_through_time(rows: list[Interval]) -> None:
    pieces = nested(rows)
    columns = (pieces.source, pieces.start, pieces.end, pieces.depth)
    found = list(zip(*(column.tolist() for column in columns), strict=True))
    expected = [
        piece
        for lane in range(LANES)
        for piece in sorted(swept(rows, lane), key=lambda piece: (piece[1], piece[3]))
    ]
    assert found == expected


def test_a_long_chain_of_crossings_takes_no_time() -> None:
    start = np.arange(0, 400_000, 2)
    pieces = nest(np.zeros_like(start), start, start + 3)
    assert len(pieces) == 2 * len(start) - 1
    assert pieces.own_time().sum() == 400_001


def test_an_interval_that_outlives_its_outer_one_is_cut_there() -> None:
    pieces = nested([(0, 0, 10), (0, 5, 14)])
    cut = zip(pieces.source, pieces.start, pieces.end, pieces.depth, strict=True)
    assert [tuple(map(int, piece)) for piece in cut] == [
        (0, 0, 10, 0),
        (1, 5, 10, 1),
        (1, 10, 14, 0),
    ]


def test_what_lies_around_a_crossing_stays_whole() -> None:
    pieces = nested([(0, 0, 100), (0, 10, 30), (0, 20, 40)])
    assert pieces.source.tolist() == [0, 1, 2, 2]


def test_empty_and_backward_intervals_are_left_out() -> None:
    assert len(nested([(0, 5, 5), (0, 9, 2)])) == 0


def test_lanes_do_not_touch_each_other() -> None:
    pieces = nested([(0, 0, 10), (1, 2, 4)])
    assert pieces.parent.tolist() == [-1, -1]
    assert pieces.innermost(i8(1, 0), i8(5, 5)).tolist() == [-1, 0]


def test_nothing_is_open_without_intervals_or_outside_their_times() -> None:
    assert nested([]).innermost(i8(0), i8(3)).tolist() == [-1]
    assert nested([(0, 0, 9), (1, 0, 9)]).innermost(i8(0, 0, 1), i8(-1, 9, 9)).tolist() == [-1] * 3


def test_times_of_day_in_nanoseconds_do_not_overflow() -> None:
    day = 1_700_000_000_000_000_000
    pieces = nested([(lane, day, day + 3_600_000_000_000) for lane in range(1_000)])
    assert pieces.innermost(i8(999), i8(day + 5)).tolist() == [999]


def test_depth_beyond_the_limit_is_left_out_and_counted() -> None:
    deep = MAX_DEPTH + 3
    pieces = nested([(0, level, 2 * deep - level) for level in range(deep)])
    assert pieces.too_deep == 3
    assert int(pieces.depth.max()) == MAX_DEPTH - 1
    assert pieces.own_time().sum() == 2 * deep


def test_a_million_levels_take_no_time() -> None:
    level = np.arange(1_000_000)
    pieces = nest(np.zeros_like(level), level, 2_000_001 - level)
    assert pieces.too_deep == len(level) - MAX_DEPTH


def test_times_further_apart_than_64_bits_allow_are_damage() -> None:
    with pytest.raises(InputError, match="damaged"):
        nested([(0, 0, 1 << 61), (3, 0, 5)])
