"""The host table: where the CPU threads' time went, for traces with little or no GPU work."""

from __future__ import annotations

import numpy as np

from flame.core.columns import I8
from flame.core.frames import Kind
from flame.core.nesting import Nesting, nest
from flame.core.profile import NONE, Activities
from flame.core.raw import OPEN, Calls, Ranges
from flame.core.stacks import StackBuilder


def host_table(ranges: Ranges, calls: Calls, thread_process: np.ndarray, end: int) -> Activities:
    """Wall self time of NVTX ranges and API calls: one row per piece of a range or call.

    On each thread every instant is charged to the innermost range or call that is open, so that
    the sum is the time in which anything is open.
    """
    real = np.flatnonzero(~calls.chain_only)
    start = np.concatenate([ranges.start, calls.start[real]])
    stop = np.concatenate([np.where(ranges.end == OPEN, end, ranges.end), calls.end[real]])
    thread = np.concatenate([ranges.thread, calls.thread[real]])
    frame = np.concatenate([ranges.frame, calls.frame[real]])
    known = np.where(thread >= 0, stop, start)  # intervals of unknown threads are empty
    pieces = nest(np.maximum(thread, 0), start, known)
    return _table(pieces, pieces.source < len(ranges.start), frame, thread, thread_process)


def _table(
    pieces: Nesting,
    is_range: np.ndarray,
    frame: np.ndarray,
    thread: np.ndarray,
    process: np.ndarray,
) -> Activities:
    stacks = StackBuilder()
    size = len(pieces)
    nvtx, launch = np.zeros(size, np.int32), np.full(size, NONE, np.int32)
    for rows in pieces.by_depth():
        above = pieces.parent[rows]
        inner = frame[pieces.source[rows]]
        outer_nvtx = np.where(above >= 0, nvtx[above], 0)
        outer_launch = np.where(above >= 0, launch[above], NONE)
        nvtx[rows] = outer_nvtx
        ranges, calls = is_range[rows], ~is_range[rows]
        nvtx[rows[ranges]] = stacks.extend(outer_nvtx[ranges], inner[ranges])
        launch[rows] = np.where(calls, inner, outer_launch)
    on = thread[pieces.source]
    none, zeros = np.full(size, NONE, np.int32), np.zeros(size, np.int32)
    no_time: I8 = np.zeros(size, np.int64)
    return Activities(
        kind=np.where(is_range, Kind.NVTX, Kind.LAUNCH).astype(np.uint8),
        start=pieces.start,
        duration=pieces.own_time(),
        process=process[on].astype(np.int32),
        thread=on.astype(np.int32),
        device=none,
        stream=none,
        launch_start=no_time - 1,
        launch_end=no_time - 1,
        launch_share=no_time,
        idle=no_time,
        python=zeros,
        native=zeros,
        launch=launch,
        nvtx=nvtx,
        frame=none,
        stack=zeros,
        launched=np.zeros(size, bool),
        stacks=stacks.build(),
    )
