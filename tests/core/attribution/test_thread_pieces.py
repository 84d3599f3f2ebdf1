"""Pieces of threads, compared with what is open at each nanosecond."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flame.core.attribution import thread_pieces
from flame.core.attribution.nesting import MAX_DEPTH
from flame.core.attribution.thread_pieces import (
    RecordedCalls,
    RecordedRanges,
    call_pieces,
    function_pieces,
)
from flame.core.columns import Bool, Column
from flame.core.loading.many import load
from flame.core.model.activities import ThreadPieces, ThreadSpans
from flame.core.model.raw import OPEN, RawCalls, RawPythonCalls, RawRanges
from flame.core.model.threads.call_rows import CallRows
from flame.core.options import LoadOptions, silent
from flame.core.readers.nsys.export_file import read_export
from tests.support.compiled import only_numpy
from tests.support.tiers import examples

Span = tuple[int, int, int]
"""Thread, start, end."""

Row = tuple[int, ...]
"""Thread, frame, start, end."""

spans = st.lists(st.tuples(st.integers(-1, 2), st.integers(-4, 9), st.integers(-4, 14)), max_size=9)
random_spans = examples(0.5)


def column(values: list[int], dtype: type = np.int32) -> Column:
    return np.array(values, dtype)


def calls(given_: list[Span], chain_only: list[bool] | None = None) -> RawCalls:
    size = len(given_)
    none = column([0] * size)
    return RawCalls(
        column([start for _, start, _ in given_], np.int64),
        column([end for _, _, end in given_], np.int64),
        column([thread for thread, _, _ in given_]),
        column([0] * size, np.int64),
        column(list(range(size))),
        none,
        none,
        np.array(chain_only or [False] * size, bool),
    )


def functions(given_: list[Span]) -> RawPythonCalls:
    size = len(given_)
    return RawPythonCalls(
        column([start for _, start, _ in given_], np.int64),
        column([end for _, _, end in given_], np.int64),
        column([thread for thread, _, _ in given_]),
        column(list(range(size))),
        column(list(range(1, size + 1)), np.int64),
        column([0] * size, np.int64),
    )


def innermost_pieces(pieces: ThreadPieces) -> ThreadPieces:
    """Find them: compiled where that is built, and equal to what numpy finds."""
    return both_ways(lambda: thread_pieces.innermost_pieces(pieces))


def both_ways(find: Callable[[], ThreadPieces]) -> ThreadPieces:
    """What is compiled finds, which is what numpy finds."""
    found = find()
    with only_numpy():
        plain = find()
    for name in ("thread", "depth", "frame", "start", "end", "parent"):
        column, other = getattr(found, name), getattr(plain, name)
        assert column.tolist() == other.tolist() and column.dtype == other.dtype
    return found


def by_moment(pieces: ThreadPieces) -> dict[tuple[int, int], int]:
    """The frame on each thread at each nanosecond; no two pieces have the same."""
    seen: dict[tuple[int, int], int] = {}
    for row in range(len(pieces)):
        for moment in range(int(pieces.start[row]), int(pieces.end[row])):
            place = int(pieces.thread[row]), moment
            assert place not in seen
            seen[place] = int(pieces.frame[row])
    return seen


def outermost(given_: list[Span]) -> dict[tuple[int, int], int]:
    """Whoever is open since the earliest time; at equal starts the longest, then the first."""
    seen: dict[tuple[int, int], int] = {}
    order = sorted(range(len(given_)), key=lambda one: (given_[one][1], -given_[one][2], one))
    for one in order:
        thread, start, end = given_[one]
        for moment in range(start, end) if thread >= 0 else ():
            seen.setdefault((thread, moment), one)
    return seen


@random_spans
@given(spans)
def test_the_outermost_call_is_the_one_open_longest(given_: list[Span]) -> None:
    pieces = call_pieces(calls(given_))
    assert by_moment(pieces) == outermost(given_)
    order = list(zip(pieces.thread.tolist(), pieces.start.tolist(), strict=True))
    assert order == sorted(order) and not pieces.depth.any() and (pieces.end > pieces.start).all()


def test_backtraces_of_calls_are_no_calls_of_their_own() -> None:
    found = call_pieces(calls([(0, 5, 9), (0, 0, 20)], [False, True]))
    assert (found.start.tolist(), found.frame.tolist()) == ([5], [0])


@random_spans
@given(spans)
def test_the_innermost_function_is_the_deepest_piece(given_: list[Span]) -> None:
    pieces = both_ways(lambda: function_pieces(functions(given_), 14))
    expected: dict[tuple[int, int], tuple[int, int]] = {}
    for row in range(len(pieces)):
        for moment in range(int(pieces.start[row]), int(pieces.end[row])):
            place = int(pieces.thread[row]), moment
            deepest = expected.get(place, (-1, -1))
            expected[place] = max(deepest, (int(pieces.depth[row]), int(pieces.frame[row])))
    inner = innermost_pieces(pieces)
    assert by_moment(inner) == {place: frame for place, (_, frame) in expected.items()}
    assert inner.frame.tolist() == pieces.frame[inner.parent].tolist()


def test_functions_that_did_not_end_last_until_the_end() -> None:
    found = function_pieces(functions([(0, 5, int(OPEN)), (0, 6, 8)]), 20)
    assert found.end.tolist() == [20, 8] and found.parent.tolist() == [-1, 0]
    assert [(int(a), int(b)) for a, b in zip(*edges(innermost_pieces(found)), strict=True)] == [
        (5, 6),
        (6, 8),
        (8, 20),
    ]


def edges(pieces: ThreadPieces) -> tuple[list[int], list[int]]:
    return pieces.start.tolist(), pieces.end.tolist()


def test_of_functions_with_equal_times_the_first_called_is_outside() -> None:
    found = function_pieces(functions([(0, 5, 9), (0, 5, 9)]), 20)
    assert found.frame.tolist() == [0, 1] and found.depth.tolist() == [0, 1]
    assert innermost_pieces(found).frame.tolist() == [1]


def test_outermost_calls_of_real_traces(nsys_trace: Callable[[str], Path]) -> None:
    for name in ("rtx3060_23k", "h100_2gpu_window", "a100_llm_nvtx", "two_processes_colliding_ids"):
        path = nsys_trace(f"{name}.sqlite")
        profile, raw = load(path), read_export(path, LoadOptions(), silent).calls
        rows = np.flatnonzero(~raw.chain_only & (raw.thread >= 0))
        order = sorted(rows.tolist(), key=lambda row: (raw.thread[row], raw.start[row]))
        total, reach = 0, dict.fromkeys(raw.thread[rows].tolist(), -(1 << 62))
        for row in order:
            thread, end = int(raw.thread[row]), int(raw.end[row])
            total += max(end - max(int(raw.start[row]), reach[thread]), 0)
            reach[thread] = max(reach[thread], end)
        pieces = profile.calls
        assert pieces is not None
        assert int((pieces.end - pieces.start).sum()) == total > 0
        assert profile.callrows is not None
        assert listed(profile.callrows) == listed_rows(raw, ~raw.chain_only)


def listed_rows(raw: RawCalls, mask: Bool) -> list[Row]:
    """Thread, frame, start and end of some calls; none ends before it starts."""
    end = np.maximum(raw.start, raw.end)
    columns = (raw.thread, raw.frame, raw.start, end)
    return sorted(zip(*(column[mask].tolist() for column in columns), strict=True))


def listed(rows: CallRows | ThreadSpans) -> list[Row]:
    """The same of all ``rows``."""
    columns = (rows.thread, rows.frame, rows.start, rows.end)
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


@random_spans
@given(spans, st.lists(st.booleans(), min_size=9, max_size=9))
def test_calls_are_all_there_after_they_were_cut(
    given_: list[Span], chain_only: list[bool]
) -> None:
    raw = calls(given_, chain_only[: len(given_)])
    recorded = RecordedCalls(raw)
    assert listed(recorded.rows()) == listed_rows(raw, ~raw.chain_only)
    pieces, expected = recorded.pieces(), call_pieces(raw)
    assert pieces.start.tolist() == expected.start.tolist()
    assert pieces.frame.tolist() == expected.frame.tolist()


@random_spans
@given(spans)
def test_ranges_are_the_same_after_they_were_cut(given_: list[Span]) -> None:
    thread, start, end = (column([one[at] for one in given_], np.int64) for at in range(3))
    raw = RawRanges(start, end, thread.astype(np.int32), column(list(range(len(given_)))))
    recorded, frames = RecordedRanges(raw, 20), range(len(given_))
    before, pieces, after = recorded.spans(frames), recorded.pieces(), recorded.spans(frames)
    assert listed(before) == listed(after)
    real = sorted(one for one in given_ if one[0] >= 0 and one[2] > one[1])
    made = zip(pieces.thread.tolist(), pieces.start.tolist(), pieces.end.tolist(), strict=True)
    assert pieces.uncut == (sorted(made) == real)


def test_ranges_that_lie_too_deep_leave_pieces_that_are_not_known_to_be_uncut() -> None:
    size = MAX_DEPTH + 1
    start, end = np.arange(size), 2 * size - np.arange(size)
    raw = RawRanges(start, end, np.zeros(size, np.int32), np.arange(size, dtype=np.int32))
    recorded = RecordedRanges(raw, 0)
    assert len(recorded.pieces()) == MAX_DEPTH and not recorded.pieces().uncut
    assert len(recorded.spans(range(size)).start) == size
