"""Define the lanes of a timeline: what each shows, of which thread or GPU."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, Column, pack, run_starts
from flame.core.model.calls import CallClass, StateKind
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.model.threads.events import EventThread
from flame.core.timeline.devices import source_label


class Track(IntEnum):
    """Name what a lane shows, in the order in which lanes stand.

    Of a thread: Python functions as they nest, the innermost of them at each time, ranges, the
    outermost API calls, and what held it up. ``WORK`` is what ran on a GPU, or samples; ``MEMORY``
    how much lived on a GPU, ``METRIC`` what was sampled of one.
    """

    FUNCTIONS = 0
    INNERMOST = 1
    RANGES = 2
    CALLS = 3
    COLLECTION = 4
    GIL = 5
    LOADING = 6
    PROFILER = 7
    WORK = 8
    MEMORY = 9
    METRIC = 10


OF_GPUS = (Track.WORK, Track.MEMORY, Track.METRIC)
"""The tracks whose lanes are no thread's."""

STATES: dict[Track, tuple[StateKind, ...]] = {
    Track.COLLECTION: (StateKind.COLLECTION,),
    Track.GIL: (StateKind.GIL_WAITING, StateKind.GIL_HELD),
    Track.LOADING: (StateKind.LOADING,),
    Track.PROFILER: (StateKind.PROFILER,),
}
"""The tracks of what held a thread up, and what is told apart on each."""

KINDS: dict[Track, tuple[int, ...]] = {
    Track.FUNCTIONS: (Kind.PYTHON,),
    Track.INNERMOST: (Kind.PYTHON,),
    Track.RANGES: (Kind.NVTX,),
    Track.CALLS: tuple(CallClass),
    **STATES,
    Track.WORK: (Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET, Kind.GRAPH),
    Track.MEMORY: (0,),
    Track.METRIC: (0,),
}
"""What is told apart on a track (`Kind`, `CallClass`, `StateKind`), the usual one first."""


class Lane(NamedTuple):
    """Bound a lane: intervals [first, last) of a timeline, drawn in a row.

    ``label`` names its thread or stream; it is the same in all lanes of that, of which ``level`` 0
    is the outermost of its ``track``. ``owner`` indexes the profile's devices where the track is
    of a GPU, else its threads; -1 is unknown, and less a thread, or several, that are not of it.
    Of a metric it is a place in those of the timeline, and there are no intervals.
    """

    label: str
    level: int
    first: int
    last: int
    track: Track
    owner: int


class LaneColumns(NamedTuple):
    """Hold columns of a timeline before they are put together, and their lanes."""

    source: Column
    frame: Column
    kind: Column
    low: I8
    high: I8
    lanes: list[Lane]


def bounds(columns: list[Column]) -> Iterator[tuple[int, int]]:
    """Find the stretches [first, last) of rows in which none of ``columns`` changes."""
    starts = run_starts(pack(columns)).tolist()
    yield from zip(starts, [*starts[1:], len(columns[0])], strict=False)


def thread_label(profile: Profile, thread: int) -> str:
    """Name a thread by its name, or else its process's, and its number."""
    if thread < 0:
        return "samples"
    thread_ = profile.threads[thread]
    process = profile.processes[thread_.process] if thread_.process >= 0 else None
    name = thread_.name or (process.name if process else "")
    source = process.source if process else 0
    return f"{source_label(profile, source)}{name or 'thread'} [{thread_.tid}]"


def event_thread_label(profile: Profile, thread: EventThread) -> str:
    """Name a thread as `thread_label` does, also one that has done nothing else."""
    if thread.thread >= 0:
        return thread_label(profile, thread.thread)
    known = thread.process >= 0
    file = source_label(profile, profile.processes[thread.process].source) if known else ""
    return f"{file}{thread.name or 'thread'} [{thread.tid}]"


def no_columns() -> LaneColumns:
    """Make columns without any interval."""
    empty = np.zeros(0, np.int64)
    return LaneColumns(empty, empty, empty, empty, empty, [])
