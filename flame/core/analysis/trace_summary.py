"""Summarize what a trace holds: where it is from, what ran, how much of it is known.

``flame info``, the printed view, the coverage page of the app and the end of ``flame record`` tell
of a `TraceSummary`, each in its own words.
"""

from __future__ import annotations

from dataclasses import field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from flame.core.analysis.utilization import (
    IdleGap,
    Utilization,
    idle_gaps,
    kernels_busy,
    utilizations,
)
from flame.core.analysis.words.formats import Terms, coverage_of, terms_of
from flame.core.columns import expand_ranges, sum_by, unique
from flame.core.lazy_dataclass import dataclass
from flame.core.memory import MemoryShortError
from flame.core.model.frames import Kind
from flame.core.model.grouping import device_name
from flame.core.model.meta import Device, GraphNodes, Meta, Process, Share, Source
from flame.core.model.metrics import Metric, metric_of
from flame.core.model.profile import Profile
from flame.core.projection.labels import Naming
from flame.core.projection.levels import LEVELS, MADE_LEVELS, recorded_levels
from flame.core.projection.weights import weigh_groups

if TYPE_CHECKING:
    from flame.core.analysis.heaviest import Heaviest
    from flame.core.analysis.iterations import IterationTable
    from flame.core.gpu_metrics.averages import MetricAverage

_MOST = 10
"""Heaviest frames of a kind, and gaps of a GPU, that are listed."""


class SourceTotal(NamedTuple):
    """Sum up what a file of several holds."""

    source: Source
    activities: int
    gpu_time: int


class MetricTotal(NamedTuple):
    """Hold the sum of a metric over the whole trace."""

    metric: Metric
    total: int


class SampleTotals(NamedTuple):
    """Count PC samples, their instructions and kernels, and say what they are attributed to.

    ``attribution`` is ``launch``; or ``kernel``, where all its launches have them in common; or
    ``mixed``.
    """

    samples: int
    instructions: int
    kernels: int
    attribution: Literal["launch", "kernel", "mixed"]


class Gap(NamedTuple):
    """Describe a stretch in which ``device`` (place in the devices, -1 unknown) ran nothing.

    ``begin`` is on the trace's clock, ns; ``before`` and ``after`` name what ran around it.
    """

    device: int
    begin: int
    length: int
    before: str
    after: str


@dataclass(frozen=True, eq=False)
class TraceSummary:
    """Hold what is told of a trace. Times are in ns; ``gpu_time`` is 0 for files of stacks.

    ``sources`` has at least one item, of an empty label where the trace is a single file. ``noun``
    is what the ``activities`` are called. ``coverage`` is by level, ``titled_coverage`` the same
    with short titles and without what the format never records; ``categories`` are the shares that
    categories have of the GPU time of kernels, the largest first; ``terms`` are the words for its
    ranges. ``measures`` are what a file of stacks measures, ``pc_samples`` is None where there are
    none. ``device_names`` tell GPUs of several files apart.

    How busy the GPUs were, and with what, and the iterations are worked out when they are first
    asked for.
    """

    meta: Meta
    sources: tuple[SourceTotal, ...]
    devices: tuple[Device, ...]
    device_names: tuple[str, ...]
    processes: tuple[Process, ...]
    resolved: bool
    timed: bool
    duration: int
    activities: int
    noun: str
    counts: dict[str, int]
    gpu_time: int
    coverage: dict[str, Share]
    titled_coverage: dict[str, tuple[str, Share]]
    categories: dict[str, Share]
    terms: Terms
    graph_nodes: GraphNodes
    measures: tuple[MetricTotal, ...]
    pc_samples: SampleTotals | None
    levels: tuple[str, ...]
    warnings: tuple[str, ...]
    profile: Profile = field(repr=False)

    @cached_property
    def utilizations(self) -> tuple[Utilization, ...]:
        """How busy each GPU was; empty where that is not known."""
        return utilizations(self.profile)

    @cached_property
    def kernels_busy(self) -> tuple[int, ...]:
        """How long kernels ran on each of `utilizations`, ns: their union."""
        return tuple(kernels_busy(self.profile, each) for each in self.utilizations)

    @cached_property
    def gaps(self) -> tuple[Gap, ...]:
        """The longest idle gaps of each GPU, longest first."""
        return tuple(_gap(self.profile, gap) for gap in idle_gaps(self.profile, _MOST))

    @cached_property
    def heaviest(self) -> Heaviest | None:
        """What the GPU time was spent in; None of a file of stacks."""
        if self.resolved:
            return None
        from flame.core.analysis.heaviest import find_heaviest

        weights = weigh_groups(self.profile, metric_of("gpu"), ())
        return find_heaviest(self.profile, weights, Naming(), _MOST)

    @cached_property
    def iterations(self) -> IterationTable:
        """The iterations; none of a recording that goes on."""
        from flame.core.analysis.iterations import measure_iterations

        return measure_iterations(self.profile)

    @cached_property
    def gpu_metrics(self) -> tuple[tuple[Utilization, tuple[MetricAverage, ...]], ...]:
        """What was sampled of each GPU of `utilizations`, over its window. May read the file."""
        if self.profile.side_tables.gpu_metrics is None:
            return ()
        from flame.core.gpu_metrics.averages import average_over

        known = (each for each in self.utilizations if each.device >= 0)
        windows = ((each, each.device, each.windows.low, each.windows.high) for each in known)
        try:
            return tuple(
                (each, tuple(average_over(self.profile, device, low, high)))
                for each, device, low, high in windows
            )
        except MemoryShortError:
            return ()  # the notes say so

    @property
    def gpu_metric_notes(self) -> tuple[str, ...]:
        """Which samples of GPUs are left out, and why. May read the file."""
        if self.profile.side_tables.gpu_metrics is None:
            return ()
        from flame.core.gpu_metrics.averages import left_out_note, metric_notes

        try:
            return tuple(metric_notes(self.profile, {each.device for each in self.utilizations}))
        except MemoryShortError as error:
            return (left_out_note(error),)

    @property
    def is_merged(self) -> bool:
        """Whether the trace was read from several files."""
        return len(self.sources) > 1


@lru_cache(1)
def summarize(profile: Profile) -> TraceSummary:
    """Summarize ``profile``; the latest summary is kept."""
    resolved = profile.resolved
    return TraceSummary(
        meta=profile.meta,
        sources=tuple(_source_totals(profile)),
        devices=profile.devices,
        device_names=tuple(_device_names(profile)),
        processes=profile.processes,
        resolved=resolved,
        timed=profile.timed,
        duration=profile.duration,
        activities=profile.size,
        noun=profile.metrics[0].noun,
        counts=profile.counts,
        gpu_time=_gpu_time(profile),
        coverage={} if resolved else profile.coverage,
        titled_coverage={} if resolved else coverage_of(profile),
        categories={} if resolved else category_shares(profile),
        terms=terms_of(profile),
        graph_nodes=profile.graph_nodes,
        measures=tuple(MetricTotal(metric, _total(profile, metric)) for metric in _own(profile)),
        pc_samples=sample_totals(profile),
        levels=_levels(profile),
        warnings=profile.warnings,
        profile=profile,
    )


def _gap(profile: Profile, gap: IdleGap) -> Gap:
    table = profile.activities
    before, after = (
        profile.frames[int(table.frame[row])].name if row >= 0 else "" for row in gap[3:]
    )
    return Gap(gap.device, gap.begin, gap.length, before, after)


def category_shares(profile: Profile) -> dict[str, Share]:
    """Sum up the GPU time of kernels, and of nothing else, by category; the largest first."""
    groups, time = profile.activities.groups, profile.gpu_by_group[0]
    kernels = groups.kind == Kind.KERNEL
    category = profile.grouping.category[groups.frame[kernels]]
    sums = sum_by(category, time[kernels], len(profile.frames))
    whole = int(sums.sum())
    shown = [frame for frame in np.argsort(-sums, kind="stable").tolist() if sums[frame]]
    return {
        profile.frames[frame].name: Share(int(sums[frame]), 100.0 * int(sums[frame]) / whole)
        for frame in shown
    }


def _gpu_time(profile: Profile) -> int:
    return 0 if profile.resolved else profile.gpu_time


def _source_totals(profile: Profile) -> list[SourceTotal]:
    """What each file has of the whole."""
    if len(profile.sources) < 2:
        return [SourceTotal(Source("", profile.meta), profile.size, _gpu_time(profile))]
    process, size = profile.activities.groups.process, len(profile.sources)
    has_process = process >= 0
    of_process = np.array([owner.source for owner in profile.processes], np.int64)
    source = of_process[process[has_process]]
    times, counts = (sum_by(source, sums[has_process], size) for sums in profile.gpu_by_group)
    if profile.resolved:
        times = np.zeros_like(times)
    return list(map(SourceTotal, profile.sources, counts.tolist(), times.tolist()))


def _device_names(profile: Profile) -> list[str]:
    """The names of GPUs by number and model, and by file where several have the same.

    Of a summary of ranks how many there are of each model.
    """
    if (ranks := profile.ranks) is not None:
        return [f"{count:,} × {name or 'GPU'}" for name, count in ranks.gpus.items()]
    if len(profile.sources) > 1:
        return [profile.frames[frame].name for frame in profile.grouping.device.tolist()]
    return list(map(device_name, profile.devices))


def _own(profile: Profile) -> tuple[Metric, ...]:
    """The metrics that a file of stacks brings; none for traces."""
    return profile.own_metrics or ()


def _total(profile: Profile, metric: Metric) -> int:
    return int(profile.totals_by_group(metric)[0].sum())


def sample_totals(profile: Profile) -> SampleTotals | None:
    """Count the PC samples of ``profile``; None where it has none."""
    sampling = profile.sampling
    if sampling is None:
        return None
    used, of_group = unique(sampling.of_group[sampling.of_group >= 0]), sampling.of_group
    entries = expand_ranges(sampling.bounds[used], np.diff(sampling.bounds)[used])
    exact = sampling.exact[used]
    return SampleTotals(
        int(sampling.samples[entries].sum()),
        len(unique(sampling.sass[entries])),
        len(unique(profile.activities.groups.frame[of_group >= 0])),
        "launch" if exact.all() else "mixed" if exact.any() else "kernel",
    )


def _levels(profile: Profile) -> tuple[str, ...]:
    """The levels that hold any frame of their own, in natural order."""
    recorded = recorded_levels(profile, metric_of(profile.default_metric, profile.metrics))
    return tuple(level for level in LEVELS if level in recorded.difference((*MADE_LEVELS, "phase")))
