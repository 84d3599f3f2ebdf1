"""Small profiles for exporters: built through the core's own builders from plain rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flame.core.frames import NO_LAUNCH, Frame, FrameBuilder, Kind
from flame.core.grouping import add_grouping
from flame.core.profile import Activities, Device, GraphNodes, Meta, Process, Profile, Thread
from flame.core.stacks import StackBuilder

PROCESSES = (Process(100, "app"),)
THREADS = (Thread(0, 101, "main"),)
DEVICES = (Device(0, "GPU"),)

Place = tuple[str, str, int]
"""A Python frame: name, file, line."""


@dataclass(frozen=True)
class Row:
    """One activity: a kernel that runs ``duration`` ns, or (kernel empty) own time on the host."""

    kernel: str
    duration: int
    nvtx: tuple[str, ...] = ()
    python: tuple[Place, ...] = ()
    launch: str = NO_LAUNCH
    launch_ns: int = 0
    idle: int = 0

    def names(self) -> tuple[str, ...]:
        """Names on the default levels, outermost first."""
        python = tuple(name for name, _, _ in self.python)
        return (*python, self.launch, *self.nvtx, self.kernel)


def profile_of(rows: Sequence[Row], host: Sequence[Row] = ()) -> Profile:
    """The profile with GPU activities ``rows``, and ``host`` for the host metric."""
    frames, stacks = FrameBuilder(), StackBuilder()
    activities = _activities(rows, frames, stacks)
    host_activities = _activities(host, frames, stacks)
    grouping = add_grouping(frames, PROCESSES, THREADS, DEVICES, activities.stream)
    return Profile(
        frames=frames.build(),
        stacks=stacks.build(),
        activities=activities,
        processes=PROCESSES,
        threads=THREADS,
        devices=DEVICES,
        grouping=grouping,
        meta=Meta(),
        begin=0,
        end=max(sum(row.duration for row in rows), 1),
        graph_nodes=GraphNodes(),
        warnings=(),
        host_builder=lambda: host_activities,
    )


def _activities(rows: Sequence[Row], frames: FrameBuilder, stacks: StackBuilder) -> Activities:
    def ids(kind: Kind, names: Sequence[str]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
        return np.array([frames.add(Frame(kind, name)) if name else -1 for name in names], np.int32)

    def nvtx(row: Row) -> int:
        return stacks.path(frames.add(Frame(Kind.NVTX, name)) for name in row.nvtx)

    def python(row: Row) -> int:
        return stacks.path(frames.add(Frame(Kind.PYTHON, *place)) for place in row.python)

    size = len(rows)
    duration = np.array([row.duration for row in rows], np.int64)
    launched = np.array([row.launch != NO_LAUNCH for row in rows], bool)
    start = np.cumsum(duration) - duration
    zeros = np.zeros(size, np.int32)
    return Activities(
        kind=np.array([Kind.KERNEL if row.kernel else Kind.NVTX for row in rows], np.uint8),
        start=start,
        duration=duration,
        process=zeros,
        thread=zeros,
        device=zeros,
        stream=zeros,
        launch_start=np.where(launched, start, -1),
        launch_end=np.where(launched, start, -1),
        launch_share=np.array([row.launch_ns for row in rows], np.int64),
        idle=np.array([row.idle for row in rows], np.int64),
        python=np.array([python(row) for row in rows], np.int32),
        native=zeros,
        launch=ids(Kind.LAUNCH, [row.launch for row in rows]),
        nvtx=np.array([nvtx(row) for row in rows], np.int32),
        frame=ids(Kind.KERNEL, [row.kernel for row in rows]),
        launched=launched,
    )
