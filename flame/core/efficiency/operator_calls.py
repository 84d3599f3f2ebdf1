"""Find the calls of operators with a formula, and which of them each activity is of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from flame.core.attribution.nesting import lane_clock, outer_first
from flame.core.columns import I4, I8, Bool, Column, places_on_lanes, taken, unique_rows
from flame.core.compiled.nesting import outermost_spans
from flame.core.compiled.search import last_open
from flame.core.model.activities import NONE, Activities, ThreadSpans, repeat
from flame.core.model.frames import Kind
from flame.core.model.launches import CaptureTimes
from flame.core.model.profile import Profile
from flame.core.operators.cost import Cost
from flame.core.operators.frame_cost import frame_cost


class OperatorSource(NamedTuple):
    """Hold what of a `Profile` tells which activities its operators caused.

    ``computing`` bool[groups] are the groups of kernels that may do their work: those that move
    data between GPUs, as the all-reduce in a parallel layer does, calculate nothing of it.
    """

    activities: Activities
    computing: Bool
    spans_finder: Callable[[Sequence[int]], ThreadSpans] | None
    captures_builder: Callable[[], CaptureTimes] | None

    @classmethod
    def of(cls, profile: Profile) -> OperatorSource:
        """Take it of ``profile``, which may go on to be freed."""
        groups = profile.activities.groups
        talks = profile.grouping.communicates(profile.frames)[groups.frame]
        computing = (groups.kind == Kind.KERNEL) & ~talks
        return cls(profile.activities, computing, profile.spans_finder, profile.captures_builder)


class OperatorCalls(NamedTuple):
    """Hold calls of operators by thread and start, none of which is within another.

    ``thread`` and ``frame`` are i4[n], ``start`` and ``end`` i8[n] in ns.
    """

    thread: I4
    frame: I4
    start: I8
    end: I8

    def open_at(self, thread: Column, time: Column) -> I4:
        """Find the call that is open on ``thread`` (-1: unknown) at ``time``, or -1; i4[n]."""
        spans = self.thread, self.start, self.end
        if (found := last_open(spans, (thread, time))) is not None:
            return found
        if not len(self.thread):
            return np.full(len(thread), NONE, np.int32)
        place = places_on_lanes(self.thread, self.start, thread, time, "right") - 1
        is_open = (self.thread[place] == thread) & (self.end[place] >= time) & (thread >= 0)
        return np.where(is_open & (place >= 0), place, NONE).astype(np.int32)


def operator_costs(profile: Profile) -> dict[int, Cost]:
    """Count the work of a call of each operator of ``profile``, by frame, where that is known."""
    frames, dtype = profile.frames, profile.work_options.dtype
    costs = ((at, frame_cost(frames[at], dtype)) for at in profile.sized_operators)
    return {at: cost for at, cost in costs if cost is not None}


def find_calls(source: OperatorSource, costs: Mapping[int, Cost]) -> OperatorCalls:
    """Find the calls of operators with ``costs``: one within another is a part of that."""
    assert source.spans_finder is not None
    spans = source.spans_finder(list(costs))
    outer = _outermost(spans.thread, spans.start, spans.end)
    return OperatorCalls(
        spans.thread[outer], spans.frame[outer], spans.start[outer], spans.end[outer]
    )


def _outermost(thread: I4, start: I8, end: I8) -> Column:
    """The intervals that begin in no other one, by thread and start."""
    clock = lane_clock(thread, start, end)
    if found := outermost_spans(thread, start, end):
        return np.asarray(found.piece[found.start == start[found.piece]])
    begin, stop = (clock.shift(thread, time) for time in (start, end))
    order = outer_first(begin, stop)
    reach = np.maximum.accumulate(stop[order])
    is_outer = np.append(np.ones(min(len(order), 1), bool), begin[order[1:]] >= reach[:-1])
    return np.asarray(order[is_outer])


class CalledWork(NamedTuple):
    """Hold which call the activities ``rows`` (i8[k]) are of: ``call`` i4[k].

    ``instance`` i4[k] numbers the calls, and behind them each replay of one that was captured in a
    CUDA graph; ``call_of`` i8[instances] are the calls that these are of.
    """

    rows: I8
    call: I4
    instance: I4
    call_of: I8


def find_called(source: OperatorSource, calls: OperatorCalls) -> CalledWork:
    """Find the kernels that ``calls`` launched, or that were captured in them and replayed."""
    table = source.activities
    rows = np.flatnonzero(source.computing[table.groups.of_row] & table.launched)
    thread, start = taken(table.thread, rows), taken(table.launch_start, rows)
    captured, call = _captured(source, calls, rows), calls.open_at(thread, start)
    replayed = captured >= 0
    call[replayed] = captured[replayed]
    instance, call_of = call, np.arange(len(calls.thread))
    if replayed.any():
        first, number = unique_rows([column[replayed] for column in (call, thread, start)])
        instance = call.copy()
        instance[replayed] = len(call_of) + number
        call_of = np.append(call_of, call[replayed][first])
    inside = np.flatnonzero(call >= 0)
    rows, call, instance = (taken(column, inside) for column in (rows, call, instance))
    return CalledWork(rows, call, instance, call_of)


def _captured(source: OperatorSource, calls: OperatorCalls, rows: I8) -> I4:
    """The call in which the graph node of each of ``rows`` was captured, or -1."""
    captures = source.captures_builder() if source.captures_builder is not None else None
    if captures is None or captures.thread.max(initial=NONE) < 0:
        return repeat(np.int32(NONE), len(rows))
    return calls.open_at(taken(captures.thread, rows), taken(captures.time, rows))
