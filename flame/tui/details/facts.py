"""Work out the facts of a frame: how its activities are distributed and launched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from flame.core.analysis.distribution import Distribution, Histogram, distribution, histogram
from flame.core.analysis.estimated_times import estimate_times
from flame.core.analysis.words.formats import OPERATORS, terms_of
from flame.core.analysis.words.memory import FRAME_MEANINGS
from flame.core.columns import I4, I8, Column, distinct, sum_by
from flame.core.efficiency.measured_frames import are_measured
from flame.core.efficiency.moved_bytes import MovedBytes, measure_moved
from flame.core.errors import InputError
from flame.core.gpu_metrics.kernels import KernelMetrics, LaneRows, kernel_times
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import Activities
from flame.core.model.frames import NO_LAUNCH, Kind
from flame.core.model.grouping import device_name, process_name, thread_name
from flame.core.model.launches import LaunchConfig, LaunchDetails
from flame.core.model.meta import Device, file_labels
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.projection.filters import passing_rows
from flame.core.units import format_percent, format_whole_percent
from flame.tui.details.labels import Label
from flame.tui.details.memory_facts import MemoryFacts, memory_facts
from flame.tui.details.parts import HeaviestParts, Part
from flame.tui.details.root_facts import RootFacts, has_root_facts, read_bytes, root_facts
from flame.tui.details.sample_facts import SampledFacts, sampled_of
from flame.tui.details.window_share import WindowShare, window_shares
from flame.tui.details.work_facts import WorkFacts, work_facts
from flame.tui.session.glossary import meaning_of
from flame.tui.session.session import Projection

BINS = 720
"""Bins of the histogram, of which equally many are drawn as one: it has divisors for any width."""

_MOST = 4
_PARENTS = 6
_COVERED = 80.0  # per cent
_COVERAGE = {
    Kind.NVTX: "{0} cover {1} of GPU time, the rest was launched outside any.",
    Kind.PYTHON: "Python frames are known for {1} of GPU time.",
    Kind.NATIVE: "Native frames are known for {1} of GPU time.",
}
LAUNCHED = (Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET)
"""Kinds of frames of which it is told how they were launched."""


class Used(NamedTuple):
    """A launch configuration, how often it was used and for how long, ns."""

    config: LaunchConfig
    times: int
    ns: int


class UsedConfigs(NamedTuple):
    """Configurations, longest used first, the number of them all, and the time of all, ns."""

    used: list[Used]
    number: int
    ns: int


class Moved(NamedTuple):
    """Bytes that copies or sets moved, in all and each, and the time that took, ns."""

    sizes: Distribution
    ns: int


@dataclass(frozen=True)
class Facts:
    """What is known of a frame's activities; ``everywhere``: at all places of its name.

    ``spread`` and ``histogram`` are of the metric per activity (of the time, where the metric only
    counts), of the ``latest`` so many where there are no rows of all (else 0), ``queue`` of the
    delay from launch to start, ns. ``parents`` are those of all places,
    ``on`` the GPUs, streams, … and ``shapes`` those of an operator, where there are several.
    ``names`` are those that the frame stands for, where it folds numbers. Until
    ``complete``, the file is still read for how it was launched; ``unread`` says why that failed.
    ``sampled`` is what PC samples say, ``root`` what is known of the root alone; ``windows`` are
    the shares of the GPUs' time in which it ran, not of the root; ``memory`` is of allocations,
    ``work`` how near its kernels were to the peak, ``measured`` what GPU metrics say meanwhile,
    ``traffic`` what memory moved beside what operators have to move.
    """

    everywhere: bool
    spread: Distribution | None
    histogram: Histogram | None
    queue: Distribution | None
    parents: HeaviestParts
    on: dict[Label, HeaviestParts]
    notes: tuple[str, ...]
    complete: bool = True
    launched: UsedConfigs | None = None
    moved: Moved | None = None
    unread: str = ""
    names: HeaviestParts | None = None
    shapes: HeaviestParts | None = None
    latest: int = 0
    sampled: SampledFacts | None = None
    root: RootFacts | None = None
    windows: tuple[WindowShare, ...] = ()
    memory: MemoryFacts | None = None
    work: WorkFacts | None = None
    measured: KernelMetrics | None = None
    traffic: MovedBytes | None = None


def collect(shown: Projection, tree: StackTree, node: int) -> Iterator[Facts]:
    """Collect the facts of ``node``, soon and then complete.

    ``tree`` is the projection's, or one made of it, such as a sandwich: of that one's frames the
    activities at all places count.
    """
    own, frame = tree is shown.view.tree, int(tree.frame[node])
    rows = shown.members().below(node) if own else shown.members().of_frame(frame)
    profile, table = shown.profile, shown.profile.table(shown.metric)
    values = shown.metric.values(table)[rows]
    each = values if shown.metric.unit == "ns" else table.duration[rows]
    each = each if shown.metric.noun == "activities" else each[:0]
    groups, number = _by_group(shown, own, node, frame, rows)
    facts = Facts(
        not own,
        *_spread(shown, own, node, frame, each),
        None if shown.metric.key == "queue" else _queue(table, rows),
        _parents(shown, frame),
        _on(profile, table, groups),
        tuple(_notes(shown, frame, groups)),
        names=_names(shown, frame, groups),
        shapes=_shapes(shown, frame, groups),
        latest=len(rows) if len(rows) < number else 0,
        sampled=sampled_of(shown, tree, node),
        root=root_facts(shown) if own and not node and has_root_facts(tree) else None,
        windows=window_shares(shown, rows) if node or not own else (),
        memory=memory_facts(shown, rows, own and not node),
    )
    known = facts
    if shown.metric.table == "gpu" and profile.sized_operators:
        yield replace(known, complete=False)
        known = _with_work(known, profile, rows)
    if are_measured(shown.profile, shown.metric):
        yield replace(known, complete=False)
        known = _with_metrics(known, profile, rows)
    if facts.root is not None and profile.launches_builder is not None:
        yield replace(known, complete=False)
        yield replace(known, root=read_bytes(facts.root, profile, rows))
    elif not _are_launched(shown, tree.kind(node)):
        yield known
    else:
        yield replace(known, complete=False)
        yield _with_launches(known, profile, rows)


def _with_metrics(facts: Facts, profile: Profile, rows: I8) -> Facts:
    """``facts`` with what GPU metrics say while the kernels among ``rows`` ran."""
    try:
        times = kernel_times(profile)
    except InputError as error:
        return replace(facts, notes=(*facts.notes, f"GPU metrics unknown: {error}"))
    lanes = [LaneRows(0, 1, np.zeros(len(rows), np.int64), rows)]
    if times is None:
        return facts
    traffic = None if facts.work is None else measure_moved(profile, lanes, 1)
    return replace(facts, measured=times.measure(lanes, 1), traffic=traffic)


def _with_work(facts: Facts, profile: Profile, rows: I8) -> Facts:
    """``facts`` with the work of the operators that launched ``rows``; may read the file."""
    try:
        return replace(facts, work=work_facts(profile, rows))
    except InputError as error:
        return replace(facts, notes=(*facts.notes, f"work of operators unknown: {error}"))


def _are_launched(shown: Projection, kind: Kind) -> bool:
    """Whether the file may say how what is of ``kind`` was launched."""
    known = shown.metric.table == "gpu" and shown.profile.launches_builder is not None
    return known and kind in LAUNCHED


def _by_group(shown: Projection, own: bool, node: int, frame: int, rows: I8) -> tuple[I8, int]:
    """The metric by group, and the number of activities: also of those without rows."""
    profile, members = shown.profile, shown.members()
    table = profile.table(shown.metric)
    if profile.totals is None or passing_rows(profile, table, shown.selection.where) is not None:
        values = shown.metric.values(table)[rows]
        return sum_by(table.groups.of_row[rows], values, len(table.groups)), len(rows)
    below = members.groups_below(node) if own else members.groups_of_frame(frame)
    value, count = profile.totals_by_group(shown.metric)
    return np.where(below, value, 0), int(count[below].sum())


def _spread(
    shown: Projection, own: bool, node: int, frame: int, each: I8
) -> tuple[Distribution | None, Histogram | None]:
    """How long ``each`` took, which are all that have rows; of summed-up ranks an estimate."""
    if shown.profile.ranks is None:
        return distribution(each), histogram(each, BINS)
    members = shown.members()
    below = members.groups_below(node) if own else members.groups_of_frame(frame)
    found = estimate_times(shown.profile, shown.view.tree, below)
    return (found.distribution, found.histogram(BINS)) if found else (None, None)


def _queue(table: Activities, rows: I8) -> Distribution | None:
    """How long the activities waited from the end of their launch to their start."""
    rows = rows[table.launched[rows]]
    return distribution(np.maximum(table.start[rows] - table.launch_end[rows], 0))


def _parents(shown: Projection, frame: int) -> HeaviestParts:
    """What calls the frame, over all its places; recursion counts once."""
    tree = shown.view.tree
    nodes = np.flatnonzero(tree.outermost(tree.frame == frame) & (tree.parent >= 0))
    above, value = tree.parent[nodes], tree.total[nodes]
    frames, place = distinct(tree.frame[above].astype(np.int64))
    sums = sum_by(place, value, len(frames))
    parts = []
    for best in np.argsort(-sums, kind="stable")[:_PARENTS].tolist():
        below = np.flatnonzero(place == best)
        widest = int(above[below[np.argmax(value[below])]])
        parts.append(Part(shown.view.name(widest), int(sums[best]), widest))
    return HeaviestParts(parts, len(frames), int(sums.sum()))


def _on(profile: Profile, table: Activities, groups: I8) -> dict[Label, HeaviestParts]:
    """Where it ran, of what it ran on several of; ``groups`` has the metric by group."""
    source = np.array([*(process.source for process in profile.processes), -1], np.int32)
    names: dict[Label, tuple[I4, Callable[[int], str]]] = {
        Label.FILES: (source[table.groups.process], lambda at: profile.sources[at].label),
        Label.PROCESSES: (table.groups.process, lambda at: process_name(profile.processes[at])),
        Label.THREADS: (table.groups.thread, lambda at: thread_name(profile.threads[at])),
        Label.GPUS: (table.groups.device, lambda at: _gpu(profile, profile.devices[at])),
        Label.STREAMS: (table.groups.stream, str),
    }
    if len(profile.processes) < 2:  # what is not known to be of the only one says nothing
        del names[Label.FILES], names[Label.PROCESSES]
    parts = {title: _parts(column, groups, name) for title, (column, name) in names.items()}
    return {title: heaviest for title, heaviest in parts.items() if heaviest.number > 1}


def _gpu(profile: Profile, device: Device) -> str:
    """Its number and model; of several files, in which many have the same, number and file."""
    if len(profile.sources) < 2:
        return device_name(device)
    return f"{file_labels(device, profile.sources)} GPU {device.id}"


_LEVELS = {Kind.PYTHON: "python", Kind.NVTX: "nvtx", Kind.FRAME: "stack"}


def _names(shown: Projection, frame: int, groups: I8) -> HeaviestParts | None:
    """The names that ``frame`` stands for, with their numbers; ``groups`` has the metric."""
    labels, exact, table = shown.labels, shown.exact, shown.profile.table(shown.metric)
    if frame not in labels.stars:
        return None
    names = np.where(labels.shown == frame, exact.shown, np.int32(-1))
    of_stack = table.stacks.innermost(names)
    level: I4 = getattr(table.groups, _LEVELS[shown.profile.frames[frame].kind])
    return _parts(of_stack[level], groups, lambda at: exact.text[at])


def _shapes(shown: Projection, frame: int, groups: I8) -> HeaviestParts | None:
    """The shapes that the range ``frame`` has, over its activities; ``groups`` has the metric."""
    profile, table = shown.profile, shown.profile.table(shown.metric)
    if profile.frames[frame].kind != Kind.NVTX or profile.resolved:
        return None
    of_frame = profile.grouping.shapes
    same = shown.labels.shown[: len(of_frame)] == frame
    of_stack = table.stacks.innermost(np.where(same, of_frame, np.int32(-1)))
    parts = _parts(of_stack[table.groups.nvtx], groups, lambda at: profile.frames[at].name)
    return parts if parts.number > 1 else None


def _parts(column: Column, groups: I8, name: Callable[[int], str]) -> HeaviestParts:
    used = np.flatnonzero(groups)
    ids, place = distinct(column[used].astype(np.int64))
    sums = sum_by(place, groups[used], len(ids))
    most = np.argsort(-sums, kind="stable")[:_MOST].tolist()
    names = [name(int(ids[at])) if ids[at] >= 0 else "unknown" for at in most]
    parts = [Part(text, int(sums[at])) for text, at in zip(names, most, strict=True)]
    return HeaviestParts(parts, len(ids), int(sums.sum()))


def _notes(shown: Projection, frame: int, groups: I8) -> Iterator[str]:
    """What is missing from the trace that matters for this frame."""
    profile, selected = shown.profile, shown.profile.frames[frame]
    if selected.kind in (Kind.CAUSE, Kind.WAIT):
        meaning = meaning_of(selected.name)
        yield f"{meaning[:1].upper()}{meaning[1:]}."
    if shown.metric.table == "memory" and selected.name in FRAME_MEANINGS:
        yield FRAME_MEANINGS[selected.name]
    if shown.metric.table != "gpu" or profile.resolved:
        return
    launches = selected.kind == Kind.LAUNCH
    if launches and selected.name == NO_LAUNCH:
        yield "Launched before the capture began, or its API calls were not recorded."
    if (
        selected.kind == Kind.LAUNCH
        and "GraphLaunch" in selected.name
        and terms_of(profile) is OPERATORS
    ):
        yield "Replayed from a graph: which operators it was captured from is not recorded."
    for kind, note in _COVERAGE.items():
        covered = profile.coverage[kind.title].percent
        if selected.kind == kind and covered < _COVERED:
            ranges = terms_of(profile).ranges
            yield note.format(ranges[0].upper() + ranges[1:], format_whole_percent(covered))
    opaque = int(groups[profile.activities.groups.kind == Kind.GRAPH].sum())
    if opaque and opaque * 100 >= groups.sum():
        share = format_percent(opaque, int(groups.sum()))
        yield (
            f"{share} of this is in CUDA graphs traced as a whole, their kernels were not recorded"
        )


def _with_launches(facts: Facts, profile: Profile, rows: I8) -> Facts:
    """``facts`` with what the file says of the launches of ``rows``."""
    try:
        launches = profile.launches
    except InputError as error:
        return replace(facts, unread=str(error))
    if launches is None:
        return facts
    duration = profile.activities.duration
    launched, moved = _launched(launches, duration, rows), _moved(launches, duration, rows)
    return replace(facts, launched=launched, moved=moved)


def _launched(launches: LaunchDetails, duration: I8, rows: I8) -> UsedConfigs | None:
    rows = rows[launches.config[rows] >= 0]
    of_memory = np.array([config.is_of_memory for config in launches.configs], bool)
    rows = rows[~of_memory[launches.config[rows]]]
    if not len(rows):
        return None
    configs, place = distinct(launches.config[rows].astype(np.int64))
    ns, count = sum_by(place, duration[rows], len(configs)), np.bincount(place)
    most = np.lexsort((-count, -ns))[:_MOST].tolist()
    used = [Used(launches.configs[configs[at]], int(count[at]), int(ns[at])) for at in most]
    return UsedConfigs(used, len(configs), int(ns.sum()))


def _moved(launches: LaunchDetails, duration: I8, rows: I8) -> Moved | None:
    rows = rows[launches.bytes[rows] >= 0]
    sizes = distribution(launches.bytes[rows])
    return Moved(sizes, int(duration[rows].sum())) if sizes else None
