"""Find the calls of operators with a formula, and which of them each activity is of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from flame.core.attribution.nesting import lane_clock, outer_first
from flame.core.columns import I4, I8, Column, places_on_lanes, unique_rows
from flame.core.model.activities import NONE
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.operators.cost import Cost
from flame.core.operators.frame_cost import frame_cost


class OperatorCalls(NamedTuple):
    """Hold calls of operators by thread and start, none of which is within another.

    ``thread`` and ``frame`` are i4[n], ``start`` and ``end`` i8[n] in ns.
    """

    thread: I4
    frame: I4
    start: I8
    end: I8

    def open_at(self, thread: Column, time: Column) -> I8:
        """Find the call that is open on ``thread`` (-1: unknown) at ``time``, or -1."""
        if not len(self.thread):
            return np.full(len(thread), NONE, np.int64)
        place = places_on_lanes(self.thread, self.start, thread, time, "right") - 1
        is_open = (self.thread[place] == thread) & (self.end[place] >= time) & (thread >= 0)
        return np.where(is_open & (place >= 0), place, NONE)


def operator_costs(profile: Profile) -> dict[int, Cost]:
    """Count the work of a call of each operator of ``profile``, by frame, where that is known."""
    frames, dtype = profile.frames, profile.work_options.dtype
    costs = ((at, frame_cost(frames[at], dtype)) for at in profile.sized_operators)
    return {at: cost for at, cost in costs if cost is not None}


def find_calls(profile: Profile, costs: Mapping[int, Cost]) -> OperatorCalls:
    """Find the calls of operators with ``costs``: one within another is a part of that."""
    assert profile.spans_finder is not None
    spans = profile.spans_finder(list(costs))
    clock = lane_clock(spans.thread, spans.start, spans.end)
    begin, stop = (clock.shift(spans.thread, time) for time in (spans.start, spans.end))
    order = outer_first(begin, stop)
    reach = np.maximum.accumulate(stop[order])
    outer = order[np.append(np.ones(min(len(order), 1), bool), begin[order[1:]] >= reach[:-1])]
    return OperatorCalls(
        spans.thread[outer], spans.frame[outer], spans.start[outer], spans.end[outer]
    )


class CalledWork(NamedTuple):
    """Hold which call the activities ``rows`` (i8[k]) are of: ``call`` i8[k].

    ``instance`` i8[k] numbers the calls, and each replay of one that was captured in a CUDA graph.
    """

    rows: I8
    call: I8
    instance: I8


def find_called(profile: Profile, calls: OperatorCalls) -> CalledWork:
    """Find the kernels that ``calls`` launched, or that were captured in them and replayed."""
    table = profile.activities
    rows = np.flatnonzero((table.kind == Kind.KERNEL) & table.launched)
    thread, start = table.thread[rows], table.launch_start[rows]
    captured = _captured(profile, calls, rows)
    replayed = captured >= 0
    call = np.where(replayed, captured, calls.open_at(thread, start))
    instance = call.copy()
    if replayed.any():
        keys = [column[replayed] for column in (call, thread, start)]
        instance[replayed] = len(calls.thread) + unique_rows(keys)[1]
    inside = call >= 0
    return CalledWork(rows[inside], call[inside], instance[inside])


def _captured(profile: Profile, calls: OperatorCalls, rows: I8) -> I8:
    """The call in which the graph node of each of ``rows`` was captured, or -1."""
    if profile.captures_builder is None:
        return np.full(len(rows), NONE, np.int64)
    captures = profile.captures_builder()
    return calls.open_at(captures.thread[rows], captures.time[rows])
