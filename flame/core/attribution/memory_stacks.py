"""Find what was open when memory was allocated: the API call, ranges, Python and native frames."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.attribution.joins.launches import join_launches, taken
from flame.core.attribution.origins import Origins
from flame.core.columns import I4, I8, Bool, Column, order_by, places_on_lanes, unique
from flame.core.model.activities import NONE
from flame.core.model.allocator.memory_events import (
    BEFORE_FRAME,
    UNKNOWN_FRAME,
    MemoryEvents,
    MemoryStacks,
)
from flame.core.model.calls import CallClass, call_class
from flame.core.model.frames import NO_LAUNCH, Frame, Kind
from flame.core.model.raw import RawTrace, RecordedOrigins
from flame.core.model.stack_joins import join_stacks
from flame.core.model.stacks import EMPTY


class _Wanted(NamedTuple):
    """Say of which process and correlation id calls are looked for."""

    process: I4
    correlation: I8


def find_memory_stacks(
    raw: RawTrace, events: MemoryEvents, thread_process: I4, origins: Origins
) -> tuple[MemoryStacks, int]:
    """Find the stacks of what ``events`` give out, and how many of these have no known API call.

    Stacks that were recorded with the events are kept, and the call is that of their thread which
    was open. Other events with a thread are looked up on it at their time, others at their call as
    launches are: that with their correlation id, else the only one of its process that gives memory
    out or back and was open then. Other events have no stack.
    """
    rows = np.flatnonzero(events.allocates)
    told = events.thread[rows] >= 0
    if raw.paths is not None and raw.paths.memory is not None:
        call = chain = _own_calls(raw, events.thread[rows], events.time[rows])
        thread, python, nvtx = _recorded(raw, raw.paths.memory, events, rows, origins)
    else:
        call, chain = _calls(raw, events, rows, thread_process)
        thread = np.where(call >= 0, taken(raw.calls.thread, call, NONE), events.thread[rows])
        time = np.where(call >= 0, taken(raw.calls.start, call, 0), events.time[rows])
        python, nvtx = origins.launch_stacks(thread, time, taken(raw.calls.python, chain, EMPTY))
    native = taken(raw.calls.native, chain, EMPTY)
    launch = taken(raw.calls.frame, call, NONE)
    lost = (call < 0) & ~told
    if lost.any():
        launch[lost] = raw.frames.add(Frame(Kind.LAUNCH, NO_LAUNCH))
    python = _with_unknown(raw, python, (nvtx == EMPTY) & (native == EMPTY) & (launch == NONE))
    whole = join_stacks(raw.stacks, python, nvtx)

    def spread(column: Column, absent: int) -> I4:
        found = np.full(len(events), absent, np.int32)
        found[rows] = column
        return found

    return MemoryStacks(
        python=spread(python, EMPTY),
        native=spread(native, EMPTY),
        nvtx=spread(nvtx, EMPTY),
        whole=spread(whole, EMPTY),
        launch=spread(launch, NONE),
        thread=spread(thread, NONE),
        before=_stack_of(raw, BEFORE_FRAME),
    ), int(lost.sum())


def _recorded(
    raw: RawTrace, memory: RecordedOrigins, events: MemoryEvents, rows: I8, origins: Origins
) -> tuple[I4, I4, I4]:
    """The threads of the events ``rows``, and their Python and range stacks, as recorded."""
    assert raw.paths is not None
    thread = memory.thread[rows]
    ranges = None if raw.paths.calls is None else memory.nvtx[rows]
    return thread, *origins.launch_stacks(thread, events.time[rows], memory.python[rows], ranges)


def _own_calls(raw: RawTrace, thread: I4, time: I8) -> I8:
    """The call for memory of each ``thread`` (-1: none) that is open at ``time``, else -1."""
    calls, found = raw.calls, np.full(len(time), NONE, np.int64)
    chosen = _calls_for_memory(raw)
    wanted = np.flatnonzero(thread >= 0)
    if len(chosen) and len(wanted):
        spans = calls.thread[chosen], calls.start[chosen], calls.end[chosen]
        found[wanted] = _only_open(*spans, chosen, thread[wanted], time[wanted])
    return found


def _stack_of(raw: RawTrace, frame: Frame) -> int:
    return raw.stacks.add_path([raw.frames.add(frame)])


def _with_unknown(raw: RawTrace, python: I4, bare: Bool) -> I4:
    """Give those without any frame one that says so."""
    bare &= python == EMPTY
    if not bare.any():
        return python
    return np.where(bare, np.int32(_stack_of(raw, UNKNOWN_FRAME)), python)


def _calls(raw: RawTrace, events: MemoryEvents, rows: I8, thread_process: I4) -> tuple[I8, I8]:
    """The calls that the events ``rows`` are of, and those with their stacks, -1 without one."""
    process, correlation = events.process[rows], events.correlation[rows]
    wanting = np.flatnonzero((correlation <= 0) & (events.thread[rows] < 0))
    open_then = _open_calls(raw, process[wanting], events.time[rows][wanting], thread_process)
    correlation = np.maximum(correlation, 0)
    correlation[wanting] = taken(raw.calls.correlation, open_then, 0)
    found = join_launches(_Wanted(process, correlation), raw.calls, thread_process)
    return found.call, found.chain


def _open_calls(raw: RawTrace, process: I4, time: I8, thread_process: I4) -> I8:
    """The only call for memory of each ``process`` that is open at ``time``; -1 if not only one."""
    calls, found = raw.calls, np.full(len(time), NONE, np.int64)
    if not len(time) or not len(calls.start):
        return found
    chosen = _calls_for_memory(raw)
    of_call = np.append(thread_process, np.int32(NONE))[calls.thread[chosen]]
    wanted = np.flatnonzero(process >= 0)
    found[wanted] = _only_open(
        of_call, calls.start[chosen], calls.end[chosen], chosen, process[wanted], time[wanted]
    )
    return found


def _calls_for_memory(raw: RawTrace) -> I8:
    """The calls that give memory out or back."""
    frames = unique(raw.calls.frame)
    named = [call_class(raw.frames[at].name) == CallClass.ALLOC for at in frames.tolist()]
    return np.flatnonzero(np.isin(raw.calls.frame, frames[named]) & ~raw.calls.chain_only)


def _only_open(lane: I4, start: I8, end: I8, row: I8, on: I4, time: I8) -> I8:
    """The one ``row`` on its lane of which ``time`` is from ``start`` to ``end``, else -1.

    The sum of all that have begun without those that have ended is that of the rows that are open.
    """
    begun, ended = order_by([start, lane]), order_by([end, lane])
    before = places_on_lanes(lane[begun], start[begun], on, time, "right")
    over = places_on_lanes(lane[ended], end[ended], on, time)
    sums = (np.append(0, np.cumsum(row[order])) for order in (begun, ended))
    of_begun, of_ended = sums
    return np.where(before - over == 1, of_begun[before] - of_ended[over], NONE)
