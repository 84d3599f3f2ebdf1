"""Cut ranges, Python functions and API calls into pieces by thread, as a timeline draws them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from flame.core.attribution.nesting import (
    MAX_DEPTH,
    lane_clock,
    nest,
    outer_first_on_lanes,
    refuse_centuries,
)
from flame.core.columns import I4, I8, Bool, Column, order_by, run_starts
from flame.core.compiled.nesting import innermost_spans, outermost_spans
from flame.core.compiled.pieces import pieces_by_depth
from flame.core.model.activities import NONE, ThreadPieces, ThreadSpans, repeat
from flame.core.model.raw import RawCalls, RawPythonCalls, RawRanges, close_open_ends
from flame.core.model.threads.call_rows import CallRows


class RecordedRanges:
    """Holds ranges as recorded; once they are cut into pieces, these alone where they tell all."""

    def __init__(self, ranges: RawRanges, capture_end: int) -> None:
        self.ranges = ranges
        self._capture_end = capture_end

    def pieces(self) -> ThreadPieces:
        """Cut them as `range_pieces` does."""
        made = range_pieces(self.ranges, self._capture_end)
        if made.uncut:
            self.ranges = RawRanges(made.start, made.end, made.thread, made.frame)
        return made

    def spans(self, frames: Sequence[int]) -> ThreadSpans:
        """Find those of ``frames``, as `range_spans` does."""
        return range_spans(self.ranges, self._capture_end, frames)


def range_pieces(ranges: RawRanges, capture_end: int) -> ThreadPieces:
    """Cut ``ranges`` into pieces that nest; those still open last until ``capture_end``."""
    end = close_open_ends(ranges.end, capture_end)
    made = nested_pieces(ranges.thread, ranges.start, end, ranges.frame)
    return replace(made, uncut=_are_uncut(made, ranges.thread, ranges.start, end))


def _are_uncut(made: ThreadPieces, thread: Column, start: I8, end: I8) -> bool:
    """Tell whether the pieces ``made`` of some intervals are these: as many, and as long in all.

    Where one is left out, as it lies too deep, they are shorter.
    """
    real = (end > start) & (thread >= 0)
    if int(np.count_nonzero(real)) != len(made):
        return False
    length = end.sum(where=real) - start.sum(where=real)
    return bool(length == made.end.sum() - made.start.sum())


def range_spans(ranges: RawRanges, capture_end: int, frames: Sequence[int]) -> ThreadSpans:
    """Find those of ``ranges`` that are one of ``frames``: nothing is nested, nor cut."""
    wanted = np.zeros(int(ranges.frame.max(initial=-1)) + 1, bool)
    wanted[[frame for frame in frames if frame < len(wanted)]] = True
    rows = np.flatnonzero(wanted[ranges.frame] & (ranges.thread >= 0))
    ranges = ranges if len(rows) == len(ranges.frame) else ranges.take(rows)
    thread, frame, start = ranges.thread, ranges.frame, ranges.start
    end = close_open_ends(ranges.end, capture_end)
    if (end <= start).any():
        some = np.flatnonzero(end > start)
        return ThreadSpans(thread[some], frame[some], start[some], end[some])
    return ThreadSpans(thread, frame, start, end)


def function_pieces(functions: RawPythonCalls, capture_end: int) -> ThreadPieces:
    """Cut ``functions`` into pieces that nest; those still open last until ``capture_end``.

    Of functions with equal times the one called first is the outer.
    """
    order = order_by([functions.call])
    end = close_open_ends(functions.end, capture_end)
    thread, frame = functions.thread[order], functions.frame[order]
    return nested_pieces(thread, functions.start[order], end[order], frame)


def nested_pieces(
    thread: Column, start: I8, end: I8, frame: I4, deepest: int = MAX_DEPTH
) -> ThreadPieces:
    """Cut intervals into pieces that nest; of equal times the first is the outer.

    Those in ``deepest`` others or more are left out.
    """
    refuse_centuries(thread, start, end)
    if (made := pieces_by_depth(thread, start, end, frame, deepest)) is not None:
        return ThreadPieces(*made)
    on = np.maximum(thread, 0)
    nesting = nest(on, start, np.where(thread >= 0, end, start), deepest)
    on = on[nesting.source]
    order = order_by([nesting.depth, on])
    place = np.empty(len(order) + 1, np.int32)
    place[order], place[-1] = np.arange(len(order)), NONE
    return ThreadPieces(
        thread=on[order].astype(np.int32, copy=False),
        depth=nesting.depth[order].astype(np.int32, copy=False),
        frame=frame[nesting.source[order]],
        start=nesting.start[order],
        end=nesting.end[order],
        parent=place[nesting.parent[order]],
    )


class RecordedCalls:
    """Holds API calls as recorded; once they are cut into pieces, these and what these lack."""

    def __init__(self, calls: RawCalls) -> None:
        self._held: RawCalls | _PartedCalls = calls

    def pieces(self) -> ThreadPieces:
        """Find the outermost, as `call_pieces` does."""
        return self._parted().pieces

    def rows(self) -> CallRows:
        """Find all of them, but those that only repeat others."""
        return self._parted().rows()

    def _parted(self) -> _PartedCalls:
        held = self._held
        if isinstance(held, RawCalls):
            held = self._held = _PartedCalls.of(held)
        return held


class _PartedCalls(NamedTuple):
    """The outermost calls, which of them are ``whole`` (None: all are), and the ``rest``."""

    pieces: ThreadPieces
    whole: Bool | None
    rest: CallRows

    @classmethod
    def of(cls, calls: RawCalls) -> _PartedCalls:
        outer, pieces = _call_pieces(calls)
        whole = pieces.start == calls.start[outer]
        if whole.all() and len(outer) == len(calls.start):
            rest = np.zeros(0, np.int64)
        else:
            others = ~calls.chain_only
            others[outer[whole]] = False
            rest = np.flatnonzero(others)
        start, end = calls.start[rest], calls.end[rest]
        rows = CallRows(calls.thread[rest], calls.frame[rest], start, np.maximum(start, end))
        return cls(pieces, None if whole.all() else whole, rows)

    def rows(self) -> CallRows:
        made, rest = self.pieces, self.rest
        columns: list[Column] = [made.thread, made.frame, made.start, made.end]
        if self.whole is not None:
            columns = [column[self.whole] for column in columns]
        if len(rest):
            more: list[Column] = [rest.thread, rest.frame, rest.start, rest.end]
            columns = [np.concatenate(pair) for pair in zip(columns, more, strict=True)]
        return CallRows(*columns)


def call_pieces(calls: RawCalls) -> ThreadPieces:
    """Find the outermost API calls; where one outlives the call before it, the rest counts.

    Equal starts: the longer one is the outer, then the first as recorded.
    """
    return _call_pieces(calls)[1]


def _call_pieces(calls: RawCalls) -> tuple[Column, ThreadPieces]:
    """The rows of the outermost calls, and what of each counts."""
    thread = calls.thread
    if calls.chain_only.any():
        thread = np.where(calls.chain_only, np.int32(NONE), thread)
    outer, start, end = _outermost(thread, calls.start, calls.end)
    outer = outer.astype(np.intp)  # once: numpy would do so for each column
    return outer, _flat(thread[outer], calls.frame[outer], start, end)


def calls_within(rows: CallRows) -> I8:
    """Find which of ``rows`` lie wholly within others of their thread."""
    some = np.flatnonzero(rows.in_threads)
    outer, *_ = _outermost(rows.thread[some], rows.start[some], rows.end[some])
    within = np.ones(len(some), bool)
    within[outer] = False
    return some[within]


def _outermost(thread: I4, start: I8, end: I8) -> tuple[Column, I8, I8]:
    """The calls of known threads that are in no other, by thread and time; what of each counts."""
    if found := outermost_spans(thread, start, end):
        lane_clock(thread, found.start, found.end)  # times are not centuries apart
        return found
    some = np.flatnonzero((thread >= 0) & (end > start))
    clock = lane_clock(thread[some], start[some], end[some])
    order = some[outer_first_on_lanes(thread[some], start[some], end[some])]
    begin, stop = start[order], end[order]
    # Threads lie end to end on this clock, so that none reaches into the next.
    since = thread[order].astype(np.int64) * clock.span
    reach = np.maximum.accumulate(stop + since)[:-1] - since[1:]
    np.maximum(begin[1:], reach, out=begin[1:])
    outer = np.flatnonzero(stop > begin)
    return order[outer], begin[outer], stop[outer]


def innermost_pieces(pieces: ThreadPieces) -> ThreadPieces:
    """Cut the time of ``pieces`` by which of them is the innermost; ``parent`` is that one."""
    found = innermost_spans(pieces.thread, pieces.start, pieces.end, MAX_DEPTH)
    if found is None:
        return _innermost_by_edges(pieces)
    piece, start, end = found
    none = np.zeros(len(piece), np.int32)
    return ThreadPieces(pieces.thread[piece], none, pieces.frame[piece], start, end, piece)


def _innermost_by_edges(pieces: ThreadPieces) -> ThreadPieces:
    clock = lane_clock(pieces.thread, pieces.start, pieces.end)
    begin, stop = (clock.shift(pieces.thread, time) for time in (pieces.start, pieces.end))
    edges = np.sort(np.concatenate([begin, stop]), kind="stable")  # sorted runs: merged
    edges = edges[run_starts(edges)]
    inner = np.full(len(edges), NONE, np.int32)
    # Of what is written to one edge the last stays: the outermost that ends, else the innermost
    # that begins there.
    ending = order_by([-pieces.depth])
    inner[np.searchsorted(edges, stop[ending])] = pieces.parent[ending]
    beginning = order_by([pieces.depth])
    inner[np.searchsorted(edges, begin[beginning])] = beginning
    some = np.flatnonzero(inner >= 0)
    piece = inner[some]
    thread = pieces.thread[piece]
    back = clock.base - thread.astype(np.int64) * clock.span
    own = _flat(thread, pieces.frame[piece], edges[some] + back, edges[some + 1] + back)
    return replace(own, parent=piece)


def _flat(thread: Column, frame: I4, start: I8, end: I8) -> ThreadPieces:
    """Pieces in no other one."""
    return ThreadPieces(
        thread=thread.astype(np.int32, copy=False),
        depth=repeat(np.int32(0), len(thread)),
        frame=frame,
        start=start,
        end=end,
        parent=repeat(np.int32(NONE), len(thread)),
    )
