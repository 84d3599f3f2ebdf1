"""Ranges put together of pieces, compared with plain loops over what was recorded."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.attribution.thread_pieces import nested_pieces
from flame.core.columns import I8
from flame.core.compiled.library import compiled
from flame.core.compiled.pieces import (
    LaunchedRows,
    PiecesByDepth,
    launched_in,
    launched_spans,
    shown_times,
)
from flame.core.model.activities import NONE, Activities, ThreadPieces, off_gpu_columns
from flame.core.model.frames import Kind
from flame.core.model.stacks import StackBuilder
from flame.core.report.range_instances import RangeInstances
from tests.support.compiled import only_numpy
from tests.support.tiers import examples

Span = tuple[int, int, int]
"""Thread, start, end; a span is a frame of its own, and every other one is shown as the same."""

Launch = tuple[int, int, int, int]
"""Thread, when it was launched, when it ran, for how long."""

THREADS = st.integers(-1, 2)
SPANS = st.lists(st.tuples(THREADS, st.integers(0, 9), st.integers(0, 14)), max_size=9)
LAUNCHES = st.lists(
    st.tuples(THREADS, st.integers(-1, 15), st.integers(0, 99), st.integers(0, 9)), max_size=9
)
ALONE = 2


def instances(spans: list[Span]) -> RangeInstances:
    thread = np.array([one[0] for one in spans], np.int32)
    start, end = (np.array([one[at] for one in spans], np.int64) for at in (1, 2))
    return RangeInstances.of(
        nested_pieces(thread, start, end, np.arange(len(spans), dtype=np.int32))
    )


def table_of(launches: list[Launch]) -> Activities:
    size = len(launches)
    thread, launch, start, length = np.array(launches, np.int64).reshape(-1, 4).T
    columns = off_gpu_columns(size) | {
        "kind": np.full(size, Kind.KERNEL, np.uint8),
        "thread": thread.astype(np.int32),
        "start": start,
        "duration": length,
        "launch_start": launch,
        "launched": np.ones(size, bool),
    }
    return Activities(**columns, stacks=StackBuilder().build())


def open_at(spans: list[Span], thread: int, time: int) -> list[int]:
    """The spans of a thread that are open, from outer to inner."""
    found = [
        at for at, (own, low, high) in enumerate(spans) if own == thread and low <= time < high
    ]
    return sorted(found, key=lambda at: (spans[at][1], -spans[at][2], at))


@pytest.mark.parametrize("way", ["compiled", "numpy"])
@examples(1)
@given(spans=SPANS)
def test_times_are_those_of_each_moment(way: str, spans: list[Span]) -> None:
    own, outer = Counter[int](), Counter[int]()
    for thread in range(3):
        for time in range(15):
            if inside := open_at(spans, thread, time):
                own[inside[-1]] += 1
                outer.update({at % ALONE for at in inside})
    shown = np.arange(len(spans), dtype=np.int32) % ALONE
    with only_numpy() if way == "numpy" else nullcontext():
        found = instances(spans)
        lengths = found.length.tolist()
        each = found.times_by(np.arange(len(spans), dtype=np.int32))
        alike = found.times_by(shown)
    wanted = {at: high - low for at, (on, low, high) in enumerate(spans) if on >= 0 and low < high}
    assert dict(zip(found.frame.tolist(), lengths, strict=True)) == wanted
    assert each.own.tolist() == [own[at] for at in range(len(spans))]
    assert alike.own.tolist() == [
        sum(own[at] for at in range(len(spans)) if at % ALONE == one) for one in range(len(spans))
    ]
    assert alike.outer.tolist() == [outer[at] for at in range(len(spans))]


def in_order(launches: list[Launch]) -> I8:
    """The rows of launches by thread and time, as what is compiled wants them."""
    return np.array(sorted(range(len(launches)), key=lambda at: launches[at][:2]), np.int64)


@pytest.mark.parametrize("way", ["compiled", "unordered", "numpy"])
@examples(1)
@given(spans=SPANS, launches=LAUNCHES)
def test_launches_are_those_in_each_range(
    way: str, spans: list[Span], launches: list[Launch]
) -> None:
    with only_numpy() if way == "numpy" else nullcontext():
        found = instances(spans)
        rows_of = in_order(launches) if way != "unordered" else np.arange(len(launches))
        made = found.launched(table_of(launches), rows_of)
        spans_of = found.launched_spans(table_of(launches), rows_of).tolist()
    rows = zip(*(column.tolist() for column in made), strict=True)
    for at, (count, first, last), span in zip(found.frame.tolist(), rows, spans_of, strict=True):
        thread, low, high = spans[at]
        within = [
            (start, start + length)
            for own, launch, start, length in launches
            if own == thread and low <= launch <= high
        ]
        assert count == len(within)
        assert span == (last - first if within else -1)
        if within:
            assert first == min(start for start, _ in within)
            assert last == max(end for _, end in within)


def test_a_launch_at_an_edge_is_of_both_ranges() -> None:
    spans = [(0, 0, 8), (0, 0, 4), (0, 4, 8), (1, 8, 9)]
    launches = [(0, time, 10 * time, 1) for time in (-1, 0, 4, 4, 8, 9)]
    found = instances(spans)
    made = found.launched(table_of(launches), in_order(launches))
    assert dict(zip(found.frame.tolist(), made.activities.tolist(), strict=True)) == {
        0: 4,
        1: 3,
        2: 3,
        3: 0,
    }
    assert made.first[:3].tolist() == [0, 0, 40]
    assert made.last[:3].tolist() == [81, 41, 81]


def some_of(pieces: ThreadPieces, passing: list[bool]) -> ThreadPieces:
    """As `Scope.on_host` chooses them: those in one that does not pass are in none."""
    kept = np.array(passing[: len(pieces)], bool)
    place = np.append(np.where(kept, np.cumsum(kept) - 1, NONE), NONE)
    return ThreadPieces(
        thread=pieces.thread[kept],
        depth=pieces.depth[kept],
        frame=pieces.frame[kept],
        start=pieces.start[kept],
        end=pieces.end[kept],
        parent=place[pieces.parent[kept]].astype(np.int32),
    )


@pytest.mark.deep
@examples(1)
@given(spans=SPANS, launches=LAUNCHES, passing=st.lists(st.booleans(), min_size=40, max_size=40))
def test_of_some_pieces_the_compiled_part_says_what_numpy_says(
    spans: list[Span], launches: list[Launch], passing: list[bool]
) -> None:
    table, shown = table_of(launches), np.arange(len(spans), dtype=np.int32) % ALONE
    said = []
    for way in (nullcontext(), only_numpy()):
        with way:
            found = RangeInstances.of(some_of(instances(spans).pieces, passing))
            work = found.launched(table, in_order(launches))
            some = work.activities > 0
            columns = (work.activities, work.first[some], work.last[some])
            said.append([column.tolist() for column in (*found.times_by(shown), *columns)])
    assert said[0] == said[1]


SMALL = st.integers(-2, 6)


@pytest.mark.skipif(compiled() is None, reason="the compiled library was not built")
@examples(1)
@given(
    rows=st.lists(st.tuples(SMALL, SMALL, SMALL, SMALL, SMALL, SMALL), max_size=6),
    launches=st.lists(st.tuples(SMALL, SMALL), max_size=4),
    shown=st.lists(SMALL, max_size=4),
)
def test_what_is_no_order_of_pieces_is_refused_or_harmless(
    rows: list[tuple[int, ...]], launches: list[tuple[int, int]], shown: list[int]
) -> None:
    columns = [np.array([row[at] for row in rows], np.int64) for at in range(6)]
    pieces = PiecesByDepth(*columns)  # type: ignore[arg-type]
    shown_times(pieces, np.array(shown, np.int32))
    lane, time = np.array(launches, np.int64).reshape(-1, 2).T
    launched = LaunchedRows(np.arange(len(time)), lane, time, time, time)
    launched_spans(pieces, launched)
    found = launched_in(pieces, launched)
    if found is not None:
        assert (found.low <= found.high).all()


@pytest.mark.skipif(compiled() is None, reason="the compiled library was not built")
@examples(1)
@given(spans=SPANS, launches=LAUNCHES)
def test_pieces_that_nest_are_not_refused(spans: list[Span], launches: list[Launch]) -> None:
    found, table = instances(spans).pieces, table_of(launches)
    pieces = PiecesByDepth(
        found.thread, found.depth, found.frame, found.start, found.end, found.parent
    )
    assert shown_times(pieces, np.arange(len(spans), dtype=np.int32)) is not None
    order = np.lexsort((table.launch_start, table.thread))
    columns = (table.thread, table.launch_start, table.start, table.duration)
    assert launched_in(pieces, LaunchedRows(order, *columns)) is not None
