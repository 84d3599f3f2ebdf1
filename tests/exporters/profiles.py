"""Small profiles for exporters: built through the core's own builders from plain rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from flame.core.columns import I4, I8
from flame.core.model.activities import Activities
from flame.core.model.frames import NO_LAUNCH, Frame, FrameBuilder, Kind
from flame.core.model.grouping import add_grouping
from flame.core.model.meta import Device, GraphNodes, Meta, Process, Thread
from flame.core.model.metrics import metric_of
from flame.core.model.profile import Profile
from flame.core.model.stacks import StackBuilder
from flame.core.model.tree import StackTree

# What some reader of text files takes for the end of a line, and what separates frames and values.
LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
HOSTILE = f"; 0123\t\0\ud800\udcff{LINE_ENDS}"

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
        kernel = (self.kernel,) if self.kernel else ()
        return (*python, self.launch, *self.nvtx, *kernel)


def profile_of(rows: Sequence[Row], host: Sequence[Row] = ()) -> Profile:
    """The profile with GPU activities ``rows``, and ``host`` for the host metric."""
    frames = FrameBuilder()
    activities = _activities(rows, frames)
    host_activities = _activities(host, frames)
    grouping = add_grouping(frames, PROCESSES, THREADS, DEVICES, activities.stream)
    return Profile(
        frames=frames.build(),
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


def _activities(rows: Sequence[Row], frames: FrameBuilder) -> Activities:
    stacks = StackBuilder()

    def ids(kind: Kind, names: Sequence[str]) -> I4:
        return np.array([frames.add(Frame(kind, name)) if name else -1 for name in names], np.int32)

    def nvtx(row: Row) -> int:
        return stacks.add_path(frames.add(Frame(Kind.NVTX, name)) for name in row.nvtx)

    def python(row: Row) -> int:
        return stacks.add_path(frames.add(Frame(Kind.PYTHON, *place)) for place in row.python)

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
        stack=zeros,
        launched=launched,
        stacks=stacks.build(),
    )


names = st.text(st.one_of(st.sampled_from("ab" + HOSTILE), st.characters()), max_size=4)
places = st.tuples(names, names, st.integers(0, 3))
rows = st.builds(
    Row,
    kernel=names,
    duration=st.integers(0, 1 << 40),
    nvtx=st.lists(names, max_size=3).map(tuple),
    python=st.lists(places, max_size=2).map(tuple),
    launch=st.sampled_from([NO_LAUNCH, "cudaLaunchKernel", "cudaGraphLaunch"]),
    launch_ns=st.integers(0, 100),
    idle=st.integers(0, 1),
)
some_rows = st.lists(rows, max_size=12)


def chain(depth: int) -> StackTree:
    """A tree of one stack, ``depth`` frames deep, of 1 ns."""
    node = np.arange(depth + 1, dtype=np.int32)
    own = (node == depth).astype(np.int64)
    return _tree(1 + node % 2, node, np.full_like(node, depth + 1), node - 1, own)


def fan(stacks: int) -> StackTree:
    """A tree of ``stacks`` different stacks of one frame and 1 ns each."""
    node = np.arange(stacks + 1, dtype=np.int32)
    below = np.minimum(node, 1)
    end = np.where(below, node + 1, stacks + 1).astype(np.int32)
    return _tree(node, below, end, below - 1, below.astype(np.int64))


def _tree(frame: I4, depth: I4, end: I4, parent: I4, own: I8) -> StackTree:
    frame[0] = 0
    frames = FrameBuilder()
    for number in range(1, int(frame.max()) + 1):
        frames.add(Frame(Kind.NVTX, f"range {number}"))
    table = frames.build()
    text = tuple(known.name for known in table.frames)
    metric = metric_of("gpu")
    return StackTree(table, text, metric, ("nvtx",), parent, frame, depth, end, own, own)
