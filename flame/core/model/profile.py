"""The frozen event table of one trace, and everything that is read off it once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from flame.core.columns import I4, I8, U1, Bool, Column, sum_by, unique_rows
from flame.core.model.frames import ACTIVITY_KINDS, FrameTable, Kind
from flame.core.model.stacks import StackTable

if TYPE_CHECKING:
    from flame.core.attribution.nvtx_ranges import RangePieces
    from flame.core.model.arrangement import Arrangement
    from flame.core.model.grouping import Grouping
    from flame.core.model.launches import Launches
    from flame.core.model.metrics import Metric
    from flame.core.model.pc_samples import Sampling
    from flame.core.model.tree import StackTree
    from flame.core.names.nvtx import Rename
    from flame.core.projection.filters import Filter
    from flame.core.projection.labels import Labels, Naming

NONE = -1
"""Absent: in index columns, and in ``launch_start``/``launch_end`` of rows without a launch."""

GROUP_COLUMNS = (
    "kind",
    "process",
    "thread",
    "device",
    "stream",
    "python",
    "native",
    "launch",
    "nvtx",
    "frame",
    "stack",
)


@dataclass(frozen=True)
class Process:
    """A traced process of ``Profile.sources[source]``; ``name`` is empty where nothing says it."""

    pid: int
    name: str = ""
    source: int = 0


@dataclass(frozen=True)
class Thread:
    """A traced thread; ``process`` indexes ``Profile.processes``."""

    process: int
    tid: int
    name: str = ""


@dataclass(frozen=True)
class Device:
    """A GPU. ``id`` is the machine's GPU number where known, else the process's CUDA ordinal.

    ``source`` indexes ``Profile.sources``: files may be of different machines.
    """

    id: int
    name: str = ""
    source: int = 0


@dataclass(frozen=True, eq=False)
class Activities:
    """One row per thing that took time: GPU activities, or host ranges and calls.

    | column | dtype | meaning |
    |---|---|---|
    | kind | u8 | `Kind` of the leaf; LAUNCH, NVTX or PYTHON in a host table |
    | start, duration | i8 | ns; duration is what the row is charged with, never negative |
    | process, thread, device | i4 | index into the profile's lists, -1 unknown |
    | stream | i4 | stream id, -1 unknown |
    | launch_start, launch_end | i8 | ns of the launching API call; -1 where ``launched`` is false |
    | launch_share | i8 | this row's part of the call's duration, ns |
    | idle | i8 | ns the device was empty just before ``start`` |
    | python, native, nvtx | i4 | stack ids |
    | launch | i4 | frame id of the API call, or of ``[no launch recorded]`` (-1: host range) |
    | frame | i4 | frame id of the leaf (-1 in a host table and in one of resolved stacks) |
    | stack | i4 | stack id of a resolved stack, which is all there is then |

    ``python``, ``native``, ``nvtx`` and ``stack`` are rows of ``stacks``; a host table has its own.
    ``measures`` (i8 each, by metric key) is what a file of resolved stacks has measured itself, and
    ``stalls``: PC samples.
    """

    kind: U1
    start: I8
    duration: I8
    process: I4
    thread: I4
    device: I4
    stream: I4
    launch_start: I8
    launch_end: I8
    launch_share: I8
    idle: I8
    python: I4
    native: I4
    launch: I4
    nvtx: I4
    frame: I4
    stack: I4
    launched: Bool
    stacks: StackTable
    measures: Mapping[str, I8] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.start)

    @cached_property
    def groups(self) -> Groups:
        """Rows that differ in nothing but time and duration, counted as one."""
        columns = [getattr(self, name) for name in GROUP_COLUMNS]
        first, group = unique_rows(columns)
        kept = {name: getattr(self, name)[first] for name in (*GROUP_COLUMNS, "launched")}
        return Groups(group.astype(np.int32), **kept)


def off_gpu(size: int) -> dict[str, Any]:
    """Columns of `Activities` for ``size`` rows that no GPU ran: no stack, all else unknown."""
    none, empty = np.full(size, NONE, np.int32), np.zeros(size, np.int32)
    no_time = np.zeros(size, np.int64)
    return {
        **dict.fromkeys(("process", "thread", "device", "stream", "launch", "frame"), none),
        **dict.fromkeys(("python", "native", "nvtx", "stack"), empty),
        **dict.fromkeys(("launch_share", "idle"), no_time),
        **dict.fromkeys(("launch_start", "launch_end"), no_time + NONE),
        "launched": np.zeros(size, bool),
    }


@dataclass(frozen=True, eq=False)
class Groups:
    """Distinct activities: columns as in `Activities`, and ``of`` (i4): every activity's group.

    Hundreds of times fewer than activities, so that pivots and filters run on these alone.
    """

    of: I4
    kind: U1
    process: I4
    thread: I4
    device: I4
    stream: I4
    python: I4
    native: I4
    launch: I4
    nvtx: I4
    frame: I4
    stack: I4
    launched: Bool

    def __len__(self) -> int:
        return len(self.kind)


@dataclass(frozen=True, eq=False)
class Totals:
    """Sums per group, of all that was recorded: more than the tables have rows for.

    ``values`` by metric and ``counts`` by table (``gpu``, ``host``) are i8[groups of the table].
    There are rows of all that started after ``since``, ns.
    """

    values: Mapping[str, I8]
    counts: Mapping[str, I8]
    since: int


@dataclass(frozen=True)
class Share:
    """A part of the GPU time."""

    ns: int
    percent: float


@dataclass(frozen=True, eq=False)
class ProfilerSteps:
    """Steps that the program told its profiler of (``ProfilerStep#12``): when, in which process."""

    number: I8
    process: I4
    start: I8
    end: I8

    def __len__(self) -> int:
        return len(self.number)


@dataclass(frozen=True)
class Source:
    """One of the files a profile was read from; ``label`` is the name of its group (``rank 3``)."""

    label: str
    meta: Meta


@dataclass(frozen=True)
class GraphNodes:
    """Work replayed node by node from CUDA graphs; ``captured`` shows the ranges of its capture."""

    activities: int = 0
    captured: int = 0


@dataclass(frozen=True)
class Meta:
    """What is known of the capture besides its events. Never holds environment variables.

    ``origin`` is the Unix time at which the trace's clock is 0, ns; None where that is not known.
    ``rank`` is the process's number in a distributed job. ``label`` is what the trace calls itself
    among others. Traces with equal ``clock`` are of one recording: their times compare, however far
    apart they are; empty where nothing says so.
    """

    path: str = ""
    format: str = ""
    origin: int | None = None
    rank: int | None = None
    label: str = ""
    clock: str = ""
    producer: str = ""
    schema_version: str = ""
    synthetic: bool = False
    options: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Profile:
    """A trace, decoded and attributed: the event table, its vocabulary, and what is missing.

    ``host_builder`` makes the host table (see `attribution.host`) when a host metric is first asked
    for, ``launches_builder`` reads the launch geometry from the file when that is,
    ``ranges_builder`` cuts the NVTX ranges into pieces when those are. ``own_metrics`` is what it
    can be weighed by, the built-in ones if None. ``timed`` is false where rows have no times.
    ``totals`` are of a recording that goes on, whose older rows are not kept, else None.
    ``sampling`` is what is known below its kernels, None where nothing is.
    """

    frames: FrameTable
    activities: Activities
    processes: tuple[Process, ...]
    threads: tuple[Thread, ...]
    devices: tuple[Device, ...]
    grouping: Grouping
    meta: Meta
    begin: int
    end: int
    graph_nodes: GraphNodes
    warnings: tuple[str, ...]
    host_builder: Callable[[], Activities]
    launches_builder: Callable[[], Launches] | None = None
    ranges_builder: Callable[[], RangePieces] | None = None
    sources: tuple[Source, ...] = ()
    steps: ProfilerSteps | None = None
    own_metrics: tuple[Metric, ...] | None = None
    timed: bool = True
    totals: Totals | None = None
    sampling: Sampling | None = None
    _labels: dict[Naming, Labels] = field(default_factory=dict, repr=False)

    @cached_property
    def host(self) -> Activities:
        """Wall self time of Python functions, ranges and API calls per thread."""
        return self.host_builder()

    @cached_property
    def launches(self) -> Launches | None:
        """How each of ``activities`` was launched; None where the format does not say.

        Reads the file: not for a thread that must not wait. Raises InputError when it has changed.
        """
        return self.launches_builder() if self.launches_builder else None

    @cached_property
    def ranges(self) -> RangePieces | None:
        """When which NVTX range was open on which thread; None where the format does not say."""
        return self.ranges_builder() if self.ranges_builder else None

    @cached_property
    def gpu_time(self) -> int:
        """Sum of all GPU activity durations, ns."""
        return int(self.gpu_by_group[0].sum())

    @property
    def size(self) -> int:
        """Number of activities, also of those whose rows are not kept."""
        return len(self.activities) if self.totals is None else int(self.totals.counts["gpu"].sum())

    @cached_property
    def gpu_by_group(self) -> tuple[I8, I8]:
        """(GPU time, number) of the activities of each group."""
        from flame.core.model.metrics import metric_of

        return self.totals_by_group(metric_of("gpu"))

    @property
    def rows_begin(self) -> int:
        """From when on there is a row of everything, ns."""
        return max(self.begin, self.totals.since) if self.totals else self.begin

    @property
    def duration(self) -> int:
        """From the first to the last recorded time, ns."""
        return self.end - self.begin

    @cached_property
    def coverage(self) -> dict[str, Share]:
        """How much GPU time has a launch, an NVTX path, Python frames, native frames.

        And PC samples (``sass``), where there are any.
        """
        groups = self.activities.groups
        known = {
            "launch": groups.launched,
            "nvtx": groups.nvtx > 0,
            "python": groups.python > 0,
            "native": groups.native > 0,
        }
        if self.sampling is not None:
            known["sass"] = self.sampling.of_group >= 0
        return {key: self._share(mask) for key, mask in known.items()}

    def _share(self, groups: Bool) -> Share:
        ns = int(self.gpu_by_group[0][groups].sum())
        return Share(ns, 100.0 * ns / self.gpu_time if self.gpu_time else 0.0)

    @cached_property
    def counts(self) -> dict[str, int]:
        """Number of activities per kind title."""
        found = sum_by(self.activities.groups.kind, self.gpu_by_group[1], len(Kind))
        return {kind.title: int(found[kind]) for kind in ACTIVITY_KINDS}

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """What the activities can be weighed by."""
        from flame.core.model.metrics import METRICS, STALLS

        if self.own_metrics is not None:
            return self.own_metrics
        counted = self.sampling is not None and self.totals is None
        return (*METRICS, STALLS) if counted else METRICS

    @property
    def resolved(self) -> bool:
        """Whether this is of stacks resolved by somebody else: the level ``stack``, no GPU."""
        return self.own_metrics is not None

    @property
    def default_metric(self) -> str:
        """``gpu``, or ``host`` where nothing ran on a GPU; the first of the file's own metrics."""
        if self.own_metrics is not None:
            return self.own_metrics[0].key
        return "gpu" if len(self.activities.groups) else "host"

    def table(self, metric: Metric) -> Activities:
        """The event table that ``metric`` measures."""
        return self.host if metric.table == "host" else self.activities

    def totals_by_group(self, metric: Metric, rows: Column | None = None) -> tuple[I8, I8]:
        """(value, number of activities) per group, over ``rows`` (indices) or all."""
        if rows is None and self.totals is not None:
            return self.totals.values[metric.key], self.totals.counts[metric.table]
        table = self.table(metric)
        group, values = table.groups.of, metric.values(table)
        if rows is not None:
            group, values = group[rows], values[rows]
        size = len(table.groups)
        return sum_by(group, values, size), np.bincount(group, minlength=size).astype(np.int64)

    def tree(
        self,
        levels: str | tuple[str, ...] | None = None,
        where: tuple[Filter, ...] = (),
        metric: str | None = None,
        *,
        kernel_names: str = "base",
        shapes: bool = False,
        rename: tuple[Rename, ...] = (),
        fold: bool = False,
        arrangement: Arrangement | None = None,
    ) -> StackTree:
        """Project to a stack tree; see `flame.core.projection.project.project`."""
        from flame.core.projection.labels import Naming
        from flame.core.projection.project import parse_levels, project, with_shapes

        if isinstance(levels, str):
            levels = parse_levels(levels)
        if levels and shapes:
            levels = with_shapes(levels)
        naming = Naming(kernel_names, shapes, rename, fold)
        return project(self, levels, where, metric, naming, arrangement)

    def labels(self, naming: Naming) -> Labels:
        """Display names under ``naming``, worked out once."""
        from flame.core.projection.labels import labels

        if naming not in self._labels:
            self._labels[naming] = labels(self.frames, naming)
        return self._labels[naming]
