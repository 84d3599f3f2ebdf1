"""Hold one attributed trace: its activities, what they refer to, and sums worked out once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from flame.core.columns import I4, I8, Bool, Column, sum_by
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import Activities, GroupTotals, TableCut
from flame.core.model.frames import ACTIVITY_KINDS, FrameTable, Kind
from flame.core.model.meta import (
    Device,
    GraphNodes,
    Meta,
    NamedPhases,
    Overheads,
    Process,
    ProfilerSteps,
    Share,
    Source,
    Thread,
)
from flame.core.model.side_tables.tables import SideTables
from flame.core.operators.work import WORK_KEYS, WorkOptions

if TYPE_CHECKING:
    from flame.core.model.activities import RankSums, ThreadPieces, ThreadSpans
    from flame.core.model.allocator.recorded import RecordedMemory
    from flame.core.model.grouping import Grouping
    from flame.core.model.iterations import Iterations
    from flame.core.model.launches import CaptureTimes, Collectives, LaunchDetails
    from flame.core.model.lazy_rows import KnownSums
    from flame.core.model.meta import AllocatorMemory
    from flame.core.model.metrics import Metric
    from flame.core.model.nested import NestedStacks
    from flame.core.model.pc_samples import Sampling
    from flame.core.model.side_tables.device_memory import DeviceMemory
    from flame.core.model.side_tables.gpu_metrics import GpuMetrics
    from flame.core.model.side_tables.os_calls import OsCalls
    from flame.core.model.threads.call_rows import CallRows, FailedCalls
    from flame.core.model.threads.events import ThreadEvents
    from flame.core.operators.peaks import DevicePeak
    from flame.core.operators.work import OperatorWork

_BUILT = (
    *("host", "launches", "ranges", "functions", "calls", "callrows", "failures", "events"),
    *("overheads", "collectives", "allocator", "iterations", "os_calls", "gpu_metrics"),
    *("device_memory", "memory", "exposed_times", "waiting", "_cut", "work", "peaks"),
)
"""What is worked out once, and the same whatever the stacks of the activities are."""


@dataclass(frozen=True, eq=False)
class Profile:
    """Hold a decoded and attributed trace: activities, frames, grouping, and what is missing.

    ``host_builder`` makes the host table when a host metric is first asked for,
    ``launches_builder`` reads the launch geometry when that is; ``ranges_builder``,
    ``functions_builder`` and ``calls_builder`` cut NVTX ranges, Python functions and API calls into
    pieces when those are. ``callrows_builder`` finds all API calls, ``failures_builder`` reads
    which of them failed, ``events_builder`` what threads recorded besides ranges that nest.
    ``overheads_builder`` tells when the profiler held the program up, ``collectives_builder`` which
    collectives activities are of, ``allocator_builder`` how much memory was given out, where the
    format does. ``side_tables`` read what else the file has when that is asked for.
    ``spans_finder`` finds the NVTX ranges of given frames, whole. ``nested_finder`` finds how
    Python frames and ranges were nested at launches. ``own_metrics`` are the metrics that the file
    brings, None for the built-in ones. ``timed`` is false where rows have no times.
    ``exposed_builder`` measures how long each activity alone kept its GPU busy, ``waiting_builder``
    makes the table of idle time within what filters by time and step choose; None where not all
    rows are there. ``memory_builder`` tells who allocated memory, ``captures_builder`` where nodes
    of CUDA graphs were captured. ``work_builder`` measures the work of operators, as
    ``work_options`` say; None where not all rows are there. ``totals`` are of a recording that goes
    on, whose older rows are not kept, or of a summary of ranks; else None.
    ``sampling`` has the PC samples, ``phases`` are those that the user has named or names of ranges
    tell, ``known`` is what has been worked out of all rows before; each None where there is none.
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
    launches_builder: Callable[[], LaunchDetails] | None = None
    ranges_builder: Callable[[], ThreadPieces] | None = None
    functions_builder: Callable[[], ThreadPieces] | None = None
    calls_builder: Callable[[], ThreadPieces] | None = None
    callrows_builder: Callable[[], CallRows] | None = None
    failures_builder: Callable[[], FailedCalls] | None = None
    events_builder: Callable[[], ThreadEvents] | None = None
    overheads_builder: Callable[[], Overheads] | None = None
    side_tables: SideTables = field(default_factory=SideTables)
    collectives_builder: Callable[[], Collectives] | None = None
    allocator_builder: Callable[[], AllocatorMemory] | None = None
    spans_finder: Callable[[Sequence[int]], ThreadSpans] | None = None
    sources: tuple[Source, ...] = ()
    steps: ProfilerSteps | None = None
    own_metrics: tuple[Metric, ...] | None = None
    timed: bool = True
    totals: GroupTotals | None = None
    sampling: Sampling | None = None
    nested_finder: Callable[[I4, I8], NestedStacks] | None = None
    known: KnownSums | None = None
    phases: NamedPhases | None = None
    exposed_builder: Callable[[Profile], I8] | None = None
    waiting_builder: Callable[[Profile, Sequence[Any]], Activities] | None = None
    memory_builder: Callable[[], RecordedMemory] | None = None
    captures_builder: Callable[[], CaptureTimes] | None = None
    work_builder: Callable[[Profile], OperatorWork] | None = None
    work_options: WorkOptions = field(default_factory=WorkOptions)

    @cached_property
    def with_nested(self) -> Profile:
        """The same with columns of nested stacks, if known: groups are finer, in the same order."""
        if self.nested_finder is None:
            return self
        from flame.core.model.nested import find_and_add_nested

        table, sampling = find_and_add_nested(self.activities, self.sampling, self.nested_finder)
        known = self.known and replace(self.known, values={})  # of other groups
        return self.with_table(table, sampling=sampling, nested_finder=None, known=known)

    @cached_property
    def unlinked(self) -> Profile:
        """The same without forward operators above backward passes; groups are the same."""
        table = self.activities.unlinked
        return self if table is self.activities else self.with_table(table)

    def with_table(self, table: Activities, **changes: Any) -> Profile:
        """The same with another ``table`` of the same activities, and what is built when needed."""
        profile = replace(self, activities=table, **changes)
        for name in _BUILT:
            if name in self.__dict__:
                profile.__dict__[name] = self.__dict__[name]
        return profile

    @cached_property
    def host(self) -> Activities:
        """Wall self time of Python functions, ranges and API calls per thread."""
        return self.host_builder()

    @cached_property
    def exposed_times(self) -> I8:
        """How long each of ``activities`` alone kept its GPU busy, i8[n] in ns."""
        assert self.exposed_builder is not None
        return self.exposed_builder(self)

    @cached_property
    def work(self) -> OperatorWork | None:
        """Work of operators, by activity; None where no operator has shapes that tell it."""
        return self.work_builder(self) if self.work_builder and self.sized_operators else None

    @cached_property
    def sized_operators(self) -> tuple[int, ...]:
        """Frames of operators, and of layers, with shapes that may tell their work."""
        from flame.core.operators.frame_cost import sized_frames

        return sized_frames(self.frames.frames, np.flatnonzero(self.frames.kind == Kind.NVTX))

    @cached_property
    def peaks(self) -> tuple[DevicePeak | None, ...]:
        """What each of ``devices`` can do at most; None where that is not known."""
        from flame.core.operators.peaks import find_peaks

        return find_peaks(self.devices, self.work_options)

    @cached_property
    def waiting(self) -> Activities:
        """Idle time of GPUs, by what the thread did that launched what came next."""
        assert self.waiting_builder is not None
        return self.waiting_builder(self, self._cut.where)

    def within(self, cut: TableCut) -> Profile:
        """Return the same, with ``waiting`` and the tables of memory cut as ``cut`` says."""
        known: list[Profile] = [self] if cut == self._cut else self._cut_elsewhere
        if not known or known[0]._cut != cut:
            profile = self.with_table(self.activities)
            profile.__dict__.pop("waiting", None)
            profile.__dict__["_cut"] = cut
            known[:] = [profile]
        return known[0]

    @cached_property
    def _cut(self) -> TableCut:
        return TableCut()

    @cached_property
    def _cut_elsewhere(self) -> list[Profile]:
        return []  # the profile that `within` returned last

    @cached_property
    def launches(self) -> LaunchDetails | None:
        """Launch details of each of ``activities``; None where the format has none.

        Reads the file: not for a thread that must not wait. Raises InputError when it has changed.
        """
        return self.launches_builder() if self.launches_builder else None

    @cached_property
    def ranges(self) -> ThreadPieces | None:
        """Pieces of the NVTX ranges by thread; None where the format has none."""
        return self.ranges_builder() if self.ranges_builder else None

    @cached_property
    def functions(self) -> ThreadPieces | None:
        """Pieces of the Python functions by thread; None where the format has none."""
        return self.functions_builder() if self.functions_builder else None

    @cached_property
    def calls(self) -> ThreadPieces | None:
        """The outermost API calls by thread, none within another; None where there are none."""
        return self.calls_builder() if self.calls_builder else None

    @cached_property
    def callrows(self) -> CallRows | None:
        """All API calls, those within others too; None where there are none."""
        return self.callrows_builder() if self.callrows_builder else None

    @cached_property
    def failures(self) -> FailedCalls | None:
        """The API calls that failed; None where the format does not tell. May read the file."""
        return self.failures_builder() if self.failures_builder else None

    @cached_property
    def events(self) -> ThreadEvents | None:
        """Marks, start/end ranges and what a profiler tells of threads, if any. Reads the file."""
        return self.events_builder() if self.events_builder else None

    @cached_property
    def overheads(self) -> Overheads | None:
        """When the profiler held the program up; None where the format does not tell."""
        return self.overheads_builder() if self.overheads_builder else None

    @cached_property
    def os_calls(self) -> OsCalls | None:
        """Calls of the operating system; None where none were recorded. Reads the file."""
        return self.side_tables.os_calls and self.side_tables.os_calls()

    @cached_property
    def gpu_metrics(self) -> GpuMetrics | None:
        """Samples of the GPUs' counters; None where none were recorded. Reads the file."""
        return self.side_tables.gpu_metrics and self.side_tables.gpu_metrics()

    @cached_property
    def device_memory(self) -> DeviceMemory | None:
        """Allocations of GPU memory; None where none were recorded. Reads the file."""
        return self.side_tables.device_memory and self.side_tables.device_memory()

    @cached_property
    def memory(self) -> RecordedMemory | None:
        """Who allocated memory, by stacks of ``activities``; None where nothing tells."""
        return self.memory_builder() if self.memory_builder else None

    @cached_property
    def collectives(self) -> Collectives | None:
        """Which collectives activities are of; None where the format does not tell."""
        return self.collectives_builder() if self.collectives_builder else None

    @cached_property
    def allocator(self) -> AllocatorMemory | None:
        """How much memory of the GPUs an allocator had given out; None where nothing tells."""
        return self.allocator_builder() if self.allocator_builder else None

    @cached_property
    def iterations(self) -> Iterations:
        """The iterations that `find_iterations` finds, if any."""
        from flame.core.model.iterations import find_iterations

        if self.known is not None:
            return self.known.iterations
        table = None if self.totals is not None or self.resolved else self.activities
        return find_iterations(self.steps, self.frames, self.threads, table, self.spans_finder)

    def with_iterations(self, iterations: Iterations) -> Profile:
        """Make the same profile with other ``iterations``, which filters and windows go by."""
        profile = self.with_table(self.activities)
        profile.__dict__["iterations"] = iterations
        return profile

    @cached_property
    def gpu_time(self) -> int:
        """Sum of all GPU activity durations, ns."""
        return int(self.gpu_by_group[0].sum())

    @property
    def size(self) -> int:
        """Number of activities, with those whose rows are not kept."""
        return len(self.activities) if self.totals is None else int(self.totals.counts["gpu"].sum())

    @cached_property
    def gpu_by_group(self) -> tuple[I8, I8]:
        """(GPU time, number) of the activities of each group."""
        from flame.core.model.metrics import metric_of

        return self.totals_by_group(metric_of("gpu"))

    @property
    def rows_begin(self) -> int:
        """Time from which on every activity has a row, ns."""
        return max(self.begin, self.totals.since) if self.totals else self.begin

    @property
    def duration(self) -> int:
        """Time from the first to the last recorded event, ns."""
        return self.end - self.begin

    @cached_property
    def coverage(self) -> dict[str, Share]:
        """Share of the GPU time that has each of what `Groups.covered` tells."""
        times, whole = self.gpu_by_group[0], self.gpu_time
        sums = {key: int(times[mask].sum()) for key, mask in self.covered_groups.items()}
        return {key: Share(ns, 100.0 * ns / whole if whole else 0.0) for key, ns in sums.items()}

    @property
    def covered_groups(self) -> dict[str, Bool]:
        """Mark the groups of activities that have each of what `coverage` is of, bool[groups]."""
        return self.activities.groups.covered(self.sampling)

    @cached_property
    def counts(self) -> dict[str, int]:
        """Number of activities per kind title."""
        counts = sum_by(self.activities.groups.kind, self.gpu_by_group[1], len(Kind))
        return {kind.title: int(counts[kind]) for kind in ACTIVITY_KINDS}

    @property
    def has_forward(self) -> bool:
        """Whether any work of a backward pass stands below its forward operator."""
        return self.activities.own_nvtx is not None

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Metrics that the activities can be weighed by."""
        from flame.core.model.metrics import trace_metrics

        if self.own_metrics is not None:
            return self.own_metrics
        whole, waits = self.totals is None, self.totals and self.totals.waits
        sampled, ended = self.sampling is not None, self.exposed_builder is not None
        worked = self.work_builder is not None and bool(self.sized_operators)
        return trace_metrics(
            *(sampled and whole, ended and whole, waits is not None),
            *(worked, worked and any(self.peaks), self.memory_builder is not None),
        )

    @property
    def ranks(self) -> RankSums[Profile] | None:
        """The sums of each rank, of a summary of ranks; None of other profiles."""
        return self.totals.ranks if self.totals is not None else None

    @property
    def resolved(self) -> bool:
        """Whether the file had ready-made stacks: the only level is ``stack``, there is no GPU."""
        return self.own_metrics is not None

    @property
    def default_metric(self) -> str:
        """Key of the file's first own metric, else ``gpu``, or ``host`` where no GPU ran."""
        if self.own_metrics is not None:
            return self.own_metrics[0].key
        return "gpu" if len(self.activities.groups) else "host"

    def table(self, metric: Metric) -> Activities:
        """Choose the table of activities that ``metric`` measures."""
        if metric.table == "host":
            return self.host
        if metric.table == "waiting":
            return self.waiting
        if metric.table == "memory":
            assert self.memory is not None
            return self.memory.table(metric.key, self._cut)
        if not metric.when_asked:
            return self.activities
        work = self.work if metric.key in WORK_KEYS else None
        values = work.column(metric.key) if work else self.exposed_times
        return self.activities.with_measures({metric.key: values})

    def totals_by_group(self, metric: Metric, rows: Column | None = None) -> tuple[I8, I8]:
        """Sum (value, number of activities) per group, over ``rows`` (indices) or all."""
        if rows is None and self.totals is not None:
            return self.totals.of(metric.key, metric.table)
        if rows is None and self.known is not None and metric.key in self.known.values:
            return self.known.values[metric.key], self.known.counts
        table = self.table(metric)
        group, values = table.groups.of_row, metric.values(table)
        if rows is not None:
            group, values = group[rows], values[rows]
        size = len(table.groups)
        return sum_by(group, values, size), np.bincount(group, minlength=size).astype(np.int64)
