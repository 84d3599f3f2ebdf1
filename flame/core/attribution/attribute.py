"""Attribute a recorded trace: make a `Profile` with a stack for every activity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from flame.core.attribution.graph_capture import capture_times, find_captures
from flame.core.attribution.host import host_table
from flame.core.attribution.joins.launches import LaunchJoin, join_launches, taken, taken_stacks
from flame.core.attribution.origins import Origins
from flame.core.attribution.python_calls import FunctionIndex
from flame.core.attribution.thread_pieces import (
    RecordedCalls,
    RecordedRanges,
    function_pieces,
)
from flame.core.attribution.time_warnings import lacks_times, time_warnings
from flame.core.columns import I4, I8, SUM_LIMIT, Bool, Column, run_starts, unique
from flame.core.errors import InputError
from flame.core.model.activities import NONE, Activities, repeat
from flame.core.model.calls import IdleCause
from flame.core.model.frames import NO_LAUNCH, Frame, FrameTable, Kind
from flame.core.model.grouping import add_grouping
from flame.core.model.launches import Collectives
from flame.core.model.meta import GraphNodes, Source
from flame.core.model.metrics import METRICS
from flame.core.model.profile import Profile
from flame.core.model.raw import RawTrace, close_open_ends
from flame.core.model.stacks import EMPTY, StackTable
from flame.core.options import Progress, silent
from flame.core.units import format_counted

if TYPE_CHECKING:
    from flame.core.attribution.nested import NestedSource
    from flame.core.model.allocator.memory_events import MemoryStacks
    from flame.core.model.allocator.recorded import RecordedMemory

_Table = TypeVar("_Table")

_NESTING, _ATTRIBUTING = 15, 45
"""Percent of the time at which these stages begin, measured by `benchmarks/load_stages.py`."""


def attribute(raw: RawTrace, progress: Progress = silent) -> Profile:
    """Attribute ``raw``: join launches, nest ranges, follow graph captures; count what is left.

    Raises InputError for times so large that their sums would not fit 64 bits.
    """
    begin, end = _extent(raw)
    # Threads' time lines are laid end to end to nest their ranges.
    _check_total((end - begin + 1) * max(len(raw.threads), 1))
    thread_process = np.array([thread.process for thread in raw.threads], np.int32)
    progress("joining launches", 0, 100)
    launches = join_launches(raw.activities, raw.calls, thread_process)
    progress("nesting ranges", _NESTING, 100)
    functions = FunctionIndex(raw.functions, thread_process, raw.last_time)
    origins = Origins(raw, functions)
    allocated = _memory_stacks(raw, thread_process, origins)
    warnings = list(raw.warnings)
    table, graph_nodes = _activities(raw, launches, origins, progress)
    _check_sums(table, end - begin)
    warnings += time_warnings(raw, origins.ranges.too_deep, functions)
    memory, losses = _memory(raw, allocated, table.stacks)
    warnings += losses
    sources = (Source("", raw.meta),)
    for cause in IdleCause:
        raw.frames.add(Frame(Kind.CAUSE, cause.title))
    grouping = add_grouping(
        raw.frames, raw.processes, raw.threads, raw.devices, table.stream, sources
    )
    frames = raw.frames.build()
    ranges, calls = RecordedRanges(raw.ranges, raw.last_time), RecordedCalls(raw.calls)
    return Profile(
        frames=frames,
        activities=table,
        processes=raw.processes,
        threads=raw.threads,
        devices=raw.devices,
        grouping=grouping,
        meta=raw.meta,
        begin=begin,
        end=end,
        graph_nodes=graph_nodes,
        warnings=tuple(warnings),
        host_builder=partial(
            host_table, ranges, calls, raw.functions, thread_process, raw.last_time
        ),
        ranges_builder=ranges.pieces,
        functions_builder=partial(function_pieces, raw.functions, raw.last_time),
        calls_builder=calls.pieces,
        callrows_builder=calls.rows,
        failures_builder=raw.failures_builder,
        events_builder=raw.events_builder,
        side_tables=raw.side_tables,
        overheads_builder=_at_hand(raw.overheads),
        collectives_builder=_collectives_builder(raw, table, frames),
        allocator_builder=_at_hand(raw.allocator),
        memory_builder=memory,
        spans_finder=ranges.spans,
        launches_builder=raw.launches_builder,
        sources=sources,
        steps=raw.steps,
        nested_finder=_nested_finder(raw, table.stacks),
        captures_builder=partial(capture_times, raw.activities, raw.nodes)
        if graph_nodes.activities
        else None,
    )


def _memory_stacks(raw: RawTrace, thread_process: I4, origins: Origins) -> MemoryStacks | None:
    """The stacks of what was allocated; adds a warning for what has no known API call."""
    if raw.memory is None or not len(raw.memory):
        return None
    from flame.core.allocator.trace_memory import fits
    from flame.core.attribution.memory_stacks import find_memory_stacks

    if not fits(raw.memory):
        raw.warnings.append("memory: sizes add up to more than 64 bits hold, and are left out")
        return None
    stacks, lost = find_memory_stacks(raw, raw.memory, thread_process, origins)
    if lost:
        have = format_counted(lost, "allocation has", "allocations have")
        raw.warnings.append(f"memory: {have} no API call that is known to have made them")
    return stacks


def _memory(
    raw: RawTrace, allocated: MemoryStacks | None, stacks: StackTable
) -> tuple[Callable[[], RecordedMemory] | None, list[str]]:
    """What tells who ``allocated`` memory, and what does not fit together in it."""
    if raw.memory is None or allocated is None:
        return None, []
    from flame.core.allocator.trace_memory import pair_memory

    return pair_memory(raw.memory, allocated, stacks, raw.steps)


def _at_hand(table: _Table | None) -> Callable[[], _Table] | None:
    return None if table is None else partial(_same, table)


def _same(table: _Table) -> _Table:
    return table


def _collectives_builder(
    raw: RawTrace, table: Activities, frames: FrameTable
) -> Callable[[], Collectives] | None:
    """What finds the collectives that activities are of; None where the trace tells of none."""
    if raw.collectives:
        from flame.core.attribution.joins.collectives import find_collectives

        return partial(find_collectives, raw.collectives, table)
    if raw.nccl_builder is None:
        return None
    from flame.core.attribution.joins.nccl import find_nccl_collectives

    return partial(find_nccl_collectives, raw.nccl_builder, table, frames)


def _nested_finder(raw: RawTrace, stacks: StackTable) -> NestedSource | None:
    """What finds nested stacks, None where no times tell how Python frames and ranges were nested.

    Stacks that the program recorded itself, and those of graph captures, have no times.
    """
    recorded = raw.operators is not None and raw.operators.python.any()
    if not (len(raw.functions.start) or recorded) or raw.paths or len(raw.nodes.node):
        return None
    from flame.core.attribution.nested import NestedSource

    return NestedSource(raw.ranges, raw.functions, raw.operators, stacks, raw.last_time)


def _extent(raw: RawTrace) -> tuple[int, int]:
    """First and last recorded time, ns; (0, 0) of an empty trace."""
    work = raw.activities
    timed = ~lacks_times(work)
    recorded = (work.start, work.end) if timed.all() else (work.start[timed], work.end[timed])
    times = [*recorded, raw.calls.start, raw.calls.end]
    for table in (raw.ranges, raw.functions, raw.gpu_ranges):
        times += [table.start, close_open_ends(table.end, raw.last_time)]
    filled = [column for column in times if len(column)]
    if not filled:
        return 0, 0
    return min(int(column.min()) for column in filled), max(int(column.max()) for column in filled)


def _check_sums(table: Activities, extent: int) -> None:
    if extent * len(table) >= SUM_LIMIT:
        for metric in METRICS:
            if metric.table == "gpu":
                _check_total(float(metric.values(table).sum(dtype=np.float64)))


def _check_total(total: float) -> None:
    if total >= SUM_LIMIT:
        raise InputError("damaged: the times in it add up to more than a century")


def _activities(
    raw: RawTrace, launches: LaunchJoin, origins: Origins, progress: Progress
) -> tuple[Activities, GraphNodes]:
    """The activities with their stacks, and how many graph kernels found their captured ranges."""
    work, calls = raw.activities, raw.calls
    call = launches.call
    duration = np.maximum(work.end - work.start, 0)
    launch_start, launch_end = taken(calls.start, call, -1), taken(calls.end, call, -1)
    thread, *own = _launch_stacks(raw, launches, launch_start, origins)
    progress("attributing", _ATTRIBUTING, 100)
    linked = origins.add_forward(thread, launch_start, *own)
    stacks, graph_nodes = _add_captured(raw, [*own, *(linked or ())], origins)
    python, nvtx = stacks[-2:]
    no_launch = raw.frames.add(Frame(Kind.LAUNCH, NO_LAUNCH))
    table = Activities(
        kind=work.kind,
        start=work.start,
        duration=duration,
        process=_processes(raw, thread),
        thread=thread,
        device=work.device,
        stream=work.stream,
        launch_start=launch_start,
        launch_end=launch_end,
        launch_share=_launch_shares(raw, call, np.maximum(launch_end - launch_start, 0)),
        idle=idle_before(work.device, work.start, duration, ~lacks_times(work)),
        python=python,
        own_python=stacks[0] if linked else None,
        own_nvtx=stacks[1] if linked else None,
        native=taken_stacks(calls.native, launches.chain),
        launch=taken(calls.frame, call, no_launch),
        nvtx=nvtx,
        frame=work.frame,
        stack=repeat(np.int32(EMPTY), len(call)),
        launched=call >= 0,
        stacks=raw.stacks.build(),
    )
    return table, graph_nodes


def _launch_stacks(
    raw: RawTrace, launches: LaunchJoin, launch_start: I8, origins: Origins
) -> tuple[I4, I4, I4]:
    """(thread, Python stack, range stack) of each activity's launch, or as recorded without one."""
    call, launched = launches.call, launches.call >= 0
    thread = taken(raw.calls.thread, call, NONE)
    recorded = taken_stacks(raw.calls.python, launches.chain)
    python, nvtx = origins.launch_stacks(thread, launch_start, recorded, _recorded_paths(raw, call))
    nvtx = _add_gpu_ranges(raw, nvtx, np.flatnonzero(~launched), origins)
    if raw.paths is not None:
        alone = raw.paths.activities
        thread = np.where(launched, thread, alone.thread)
        python = np.where(launched, python, alone.python)
        nvtx = np.where(launched, nvtx, alone.nvtx)
    return thread, python, nvtx


def _processes(raw: RawTrace, thread: I4) -> I4:
    """The process of each activity: as recorded, else that of its launch."""
    of_thread = np.array([thread.process for thread in raw.threads] + [NONE], np.int32)
    recorded = raw.activities.process
    return np.where(recorded >= 0, recorded, of_thread[thread]).astype(np.int32)


def _add_gpu_ranges(raw: RawTrace, nvtx: I4, rows: I8, origins: Origins) -> I4:
    """Give the activities ``rows`` the ranges that the GPU's own time line shows around them."""
    if len(rows) and len(raw.gpu_ranges.start):
        nvtx[rows] = origins.gpu_range_stacks(raw.activities, rows)
    return nvtx


def _recorded_paths(raw: RawTrace, call: I8) -> I4 | None:
    """The ranges recorded with the launches, None where nesting by time decides."""
    if raw.paths is None or raw.paths.calls is None:
        return None
    return taken(raw.paths.calls, call, EMPTY)


def _add_captured(
    raw: RawTrace, stacks: Sequence[I4], origins: Origins
) -> tuple[Sequence[I4], GraphNodes]:
    """Add what was open at capture below the replay's own ``stacks``, marked as captured.

    These are of Python frames and of ranges in turn.
    """
    replayed = int(np.count_nonzero(raw.activities.graph_node >= 0))
    if not replayed:
        return stacks, GraphNodes()
    captured = origins.capture_stacks(find_captures(raw.activities, raw.nodes))
    joined = [_join(outer, captured[at % 2], origins) for at, outer in enumerate(stacks)]
    return joined, GraphNodes(replayed, int((captured[1] != EMPTY).sum()))


def _join(outer: I4, inner: I4, origins: Origins) -> I4:
    rows = np.flatnonzero(inner != EMPTY)
    outer[rows] = origins.joiner.join(outer[rows], inner[rows])
    return outer


def _launch_shares(raw: RawTrace, call: I8, duration: I8) -> I8:
    """Each activity's part of its launching call's ``duration``; the remainder goes to the first.

    ``duration`` is that of the call of each activity, 0 without one.
    """
    known = call >= 0
    is_launching = np.zeros(len(raw.calls.start) + 1, bool)
    is_launching[call] = True  # the last one by those without a call
    if np.count_nonzero(is_launching[:-1]) == np.count_nonzero(known):  # each launched one
        return duration
    rows = np.flatnonzero(known)
    share = np.zeros(len(call), np.int64)
    order = rows[np.lexsort((raw.activities.start[rows], call[rows]))]
    first = run_starts(call[order])
    sizes = np.diff(np.append(first, len(order)))
    whole = duration[order[first]]
    share[order] = np.repeat(whole // np.maximum(sizes, 1), sizes)
    share[order[first]] += whole % np.maximum(sizes, 1)
    return share


def idle_before(device: Column, start: I8, duration: I8, timed: Bool) -> I8:
    """Measure how long each activity's device had been empty when it started, ns.

    0 for the first of a device and those that are not ``timed``.
    """
    devices = unique(device).tolist()
    if len(devices) == 1 and timed.all() and (start[1:] >= start[:-1]).all():  # as most
        return _gaps(start, duration)
    idle = np.zeros(len(start), np.int64)
    for one in devices:
        rows = np.flatnonzero((device == one) & timed)
        if (np.diff(start[rows]) < 0).any():
            rows = rows[np.argsort(start[rows], kind="stable")]
        idle[rows] = _gaps(start[rows], duration[rows])
    return idle


def _gaps(start: I8, duration: I8) -> I8:
    """The time before each ``start``, in order, in which nothing before it ran; 0 at first."""
    busy_until = start + duration
    np.maximum.accumulate(busy_until, out=busy_until)
    gaps = np.empty_like(busy_until)
    gaps[:1] = 0
    np.subtract(start[1:], busy_until[:-1], out=gaps[1:])
    return np.maximum(gaps, 0, out=gaps)
