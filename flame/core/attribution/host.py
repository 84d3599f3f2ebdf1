"""Make the host table: where CPU threads spent their time, by function, range and API call."""

from __future__ import annotations

import numpy as np

from flame.core.attribution.nesting import Nesting, nest
from flame.core.attribution.python_calls import FunctionIndex
from flame.core.attribution.thread_pieces import RecordedCalls, RecordedRanges
from flame.core.columns import I4, I8, U1, Column
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import NONE, Activities, off_gpu_columns
from flame.core.model.frames import Kind
from flame.core.model.raw import RawPythonCalls, RawRanges, close_open_ends
from flame.core.model.stacks import EMPTY, StackBuilder
from flame.core.model.threads.call_rows import CallRows


def host_table(
    ranges: RecordedRanges,
    calls: RecordedCalls,
    functions: RawPythonCalls,
    thread_process: I4,
    end: int,
) -> Activities:
    """Make the table of wall self time of Python functions, ranges and API calls, a row per piece.

    On each thread every instant is charged to the innermost of them that is open, so that the sum
    is the time in which anything is open.
    """
    stacks = StackBuilder()
    index = FunctionIndex(functions, thread_process, end)
    intervals = _intervals(ranges.ranges, calls.rows(), index, end, stacks)
    # Those of unknown threads are made empty, and left out.
    ends = np.where(intervals.thread >= 0, intervals.end, intervals.start)
    pieces = nest(np.maximum(intervals.thread, 0), intervals.start, ends)
    return _table(pieces, intervals, thread_process, stacks)


@dataclass(frozen=True, eq=False)
class _HostIntervals:
    """Functions, ranges and calls in one table; ``python`` is the stack of a function."""

    kind: U1
    start: I8
    end: I8
    thread: Column
    frame: I4
    python: I4


def _intervals(
    ranges: RawRanges, calls: CallRows, functions: FunctionIndex, end: int, stacks: StackBuilder
) -> _HostIntervals:
    """All in one table; at equal times functions are outside ranges, and ranges outside calls."""
    sizes = (len(functions), len(ranges.start), len(calls))
    kinds = np.array([Kind.PYTHON, Kind.NVTX, Kind.LAUNCH], np.uint8)
    none = np.full(sizes[1] + sizes[2], EMPTY, np.int32)
    return _HostIntervals(
        np.repeat(kinds, sizes),
        np.concatenate([functions.start, ranges.start, calls.start]),
        np.concatenate([functions.end, close_open_ends(ranges.end, end), calls.end]),
        np.concatenate([functions.thread, ranges.thread, calls.thread]),
        np.concatenate([functions.frame, ranges.frame, calls.frame]),
        np.concatenate([functions.paths(stacks)[:-1], none]),
    )


def _table(
    pieces: Nesting, intervals: _HostIntervals, process: I4, stacks: StackBuilder
) -> Activities:
    size = len(pieces)
    # An extra entry at the end: what the pieces at the top are in.
    python, nvtx = np.full(size + 1, EMPTY, np.int32), np.full(size + 1, EMPTY, np.int32)
    launch = np.full(size + 1, NONE, np.int32)
    kinds, frames = intervals.kind[pieces.source], intervals.frame[pieces.source]
    for rows in pieces.by_depth():
        above, kind, inner = pieces.parent[rows], kinds[rows], frames[rows]
        own = intervals.python[pieces.source[rows]]
        python[rows] = np.where(kind == Kind.PYTHON, own, python[above])
        launch[rows] = np.where(kind == Kind.LAUNCH, inner, launch[above])
        nvtx[rows] = nvtx[above]
        ranges = rows[kind == Kind.NVTX]
        nvtx[ranges] = stacks.extend(nvtx[ranges], frames[ranges])
    thread = intervals.thread[pieces.source]
    columns = {
        "kind": kinds,
        "start": pieces.start,
        "duration": pieces.own_time(),
        "process": process[thread].astype(np.int32),
        "thread": thread.astype(np.int32),
        "python": python[:-1],
        "launch": launch[:-1],
        "nvtx": nvtx[:-1],
        "nested": _nested(pieces, kinds, frames, stacks) if intervals.python.any() else None,
    }
    return Activities(**off_gpu_columns(size) | columns, stacks=stacks.build())


def _nested(pieces: Nesting, kinds: U1, frames: I4, stacks: StackBuilder) -> I4:
    """The stack of functions and ranges of every piece as they are nested."""
    nested = np.full(len(pieces) + 1, EMPTY, np.int32)
    for rows in pieces.by_depth():
        nested[rows] = nested[pieces.parent[rows]]
        inside = rows[kinds[rows] != Kind.LAUNCH]
        nested[inside] = stacks.extend(nested[inside], frames[inside])
    return nested[:-1]
