"""Merge the profiles of several files into one, keeping which file each activity is from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from flame.core.analysis.waiting.measures import MEASURES
from flame.core.columns import I4, I8
from flame.core.efficiency.measures import WORK
from flame.core.loading.merge.clocks import align_clocks
from flame.core.loading.merge.details import (
    ProfilePart,
    merge_allocators,
    merge_captures,
    merge_collectives,
    merge_launches,
    merge_overheads,
)
from flame.core.loading.merge.memory import MergedMemory, check_kinds
from flame.core.loading.merge.metrics import measure_scales, merge_metrics, metric_warnings
from flame.core.loading.merge.shared_gpus import (
    SharedGpus,
    shared_gpu_warnings,
    with_idle_of_shared,
)
from flame.core.loading.merge.side_tables import SidePart, merge_side_tables
from flame.core.loading.merge.tables import merge_tables
from flame.core.loading.merge.threads import ThreadTables, thread_builders
from flame.core.model.activities import (
    NONE,
    Activities,
    ThreadPieces,
    ThreadSpans,
)
from flame.core.model.frames import FrameBuilder
from flame.core.model.grouping import add_grouping
from flame.core.model.meta import (
    GraphNodes,
    Meta,
    Process,
    ProfilerSteps,
    Source,
    Thread,
)
from flame.core.model.nested import UNKNOWN as UNKNOWN_STACK
from flame.core.model.nested import NestedStacks
from flame.core.model.profile import Profile
from flame.core.model.stacks import StackBuilder
from flame.core.sampling.merge import merge_samplings


def merge_profiles(profiles: Sequence[Profile], labels: Sequence[str]) -> Profile:
    """Merge ``profiles`` into one; ``labels`` are their names on the level ``rank``.

    Processes, threads and GPUs stay apart, however equal their numbers are; but a GPU that several
    processes of a recording used is one. Sums of metrics are those of the profiles' own, exactly,
    but of idle time before activities of such a GPU. Times are those of one clock where all traces
    know the time of day and were recorded together; else each begins at 0, and a warning says so.
    Raises InputError where they have nothing in common to be measured by.
    """
    check_kinds(profiles, labels)
    metrics = merge_metrics(profiles, labels)
    clock, who = align_clocks(profiles, labels), _MergedNames()
    parts = [
        who.add(profile, number, shift, measure_scales(profile, metrics))
        for number, (profile, shift) in enumerate(zip(profiles, clock.shifts, strict=True))
    ]
    table, ids = merge_tables(parts, [profile.activities for profile in profiles])
    table = with_idle_of_shared(table, who.gpus.devices)
    sources = tuple(map(Source, labels, (profile.meta for profile in profiles)))
    warnings = [
        *shared_gpu_warnings(who.gpus.devices, sources),
        *merge_warnings([profile.warnings for profile in profiles], labels),
    ]
    listed = tuple(who.processes), tuple(who.threads), tuple(who.gpus.devices)
    grouping = add_grouping(who.frames, *listed, table.stream, sources)
    return Profile(
        who.frames.build(),
        table,
        *listed,
        grouping=grouping,
        meta=merge_metas([profile.meta for profile in profiles], clock.origin),
        begin=clock.begin,
        end=clock.end,
        graph_nodes=_sum_graph_nodes(profiles),
        warnings=(*clock.warnings, *metric_warnings(profiles, labels), *warnings),
        host_builder=partial(_merge_host_tables, parts),
        launches_builder=partial(merge_launches, parts) if any(p.launches for p in parts) else None,
        ranges_builder=_pieces_builder(parts, "ranges"),
        functions_builder=_pieces_builder(parts, "functions"),
        calls_builder=_pieces_builder(parts, "calls"),
        overheads_builder=partial(merge_overheads, parts)
        if any(p.overheads for p in parts)
        else None,
        side_tables=merge_side_tables([part.side for part in parts]),
        collectives_builder=partial(merge_collectives, parts)
        if any(p.collectives for p in parts)
        else None,
        allocator_builder=partial(merge_allocators, parts)
        if any(p.allocator for p in parts)
        else None,
        memory_builder=partial(MergedMemory, tuple(parts), tuple(labels), tuple(ids), table.stacks)
        if any(p.memory for p in parts)
        else None,
        spans_finder=partial(_find_spans, parts) if any(p.spans for p in parts) else None,
        sources=sources,
        steps=_merge_steps(profiles, parts),
        own_metrics=metrics,
        timed=all(profile.timed for profile in profiles),
        sampling=merge_samplings(profiles, [part.frames for part in parts], table.groups),
        nested_finder=partial(_find_nested, parts) if any(p.nested for p in parts) else None,
        captures_builder=partial(merge_captures, parts) if any(p.captures for p in parts) else None,
        **thread_builders(parts) | MEASURES | WORK,
    )


class _MergedNames:
    """Collects the frames, processes, threads and GPUs of all profiles, with new numbers."""

    def __init__(self) -> None:
        self.frames = FrameBuilder()
        self.processes: list[Process] = []
        self.threads: list[Thread] = []
        self.gpus = SharedGpus()

    def add(
        self, profile: Profile, source: int, shift: int, scales: Mapping[str, int]
    ) -> ProfilePart:
        """Add what ``profile`` has, and return its new numbers."""
        process = self._add_processes(profile, source)
        thread = _new_numbers(len(self.threads), len(profile.threads))
        device = self.gpus.add(profile, source)
        self.threads += [replace(t, process=int(process[t.process])) for t in profile.threads]
        return ProfilePart(
            self._add_frames(profile),
            process,
            thread,
            device,
            shift,
            scales,
            len(profile.activities),
            profile.host_builder,
            profile.ranges_builder,
            profile.functions_builder,
            profile.calls_builder,
            profile.overheads_builder,
            profile.collectives_builder,
            profile.allocator_builder,
            profile.memory_builder,
            profile.spans_finder,
            profile.nested_finder,
            profile.captures_builder,
            profile.launches_builder,
            ThreadTables.of(profile),
            SidePart(profile.side_tables, source, process, thread, device, shift),
        )

    def _add_processes(self, profile: Profile, source: int) -> I4:
        """Add processes, one for rows without any too: every row has its rank.

        That is the only one where there is but one.
        """
        first, size = len(self.processes), len(profile.processes)
        self.processes += [replace(process, source=source) for process in profile.processes]
        if size == 1:
            return np.full(2, first, np.int32)
        threads = any(thread.process < 0 for thread in profile.threads)
        if threads or bool((profile.activities.process < 0).any()):
            self.processes.append(Process(NONE, "unknown process", source))
            return np.arange(first, first + size + 1, dtype=np.int32)
        return _new_numbers(first, size)

    def _add_frames(self, profile: Profile) -> I4:
        ids = [*map(self.frames.add, profile.frames.frames), NONE]
        for frame, texts in profile.frames.examples.items():
            for text in texts:
                self.frames.add_example(ids[frame], text)
        return np.array(ids, np.int32)


def _new_numbers(first: int, size: int) -> I4:
    """Return ``size`` numbers from ``first`` on, and -1 for what is unknown."""
    return np.append(np.arange(first, first + size), NONE).astype(np.int32)


# Tables


def _merge_host_tables(parts: Sequence[ProfilePart]) -> Activities:
    return merge_tables(parts, [part.host() for part in parts])[0]


def _pieces_builder(parts: Sequence[ProfilePart], name: str) -> Callable[[], ThreadPieces] | None:
    """Tell how to build the pieces called ``name`` of all parts; None where no part has any."""
    have = [part for part in parts if getattr(part, name) is not None]
    return partial(_merge_pieces, have, name) if have else None


def _merge_pieces(parts: Sequence[ProfilePart], name: str) -> ThreadPieces:
    """Concatenate pieces of all parts; still ordered by thread, for threads follow parts' order."""
    tables: list[ThreadPieces] = []
    before = 0
    for part in parts:
        pieces = getattr(part, name)()
        tables.append(_renumber_pieces(part, pieces, before))
        before += len(pieces)
    names = ("thread", "depth", "frame", "start", "end", "parent")
    columns = {name: [getattr(table, name) for table in tables] for name in names}
    merged = {name: np.concatenate(chunks) for name, chunks in columns.items()}
    return ThreadPieces(**merged, uncut=all(table.uncut for table in tables))


def _renumber_pieces(part: ProfilePart, pieces: ThreadPieces, before: int) -> ThreadPieces:
    """Return ``pieces`` in new numbers, behind ``before`` others."""
    return ThreadPieces(
        thread=part.thread[pieces.thread],
        depth=pieces.depth,
        frame=part.frames[pieces.frame],
        start=pieces.start + part.shift,
        end=pieces.end + part.shift,
        parent=np.where(pieces.parent >= 0, pieces.parent + before, NONE).astype(np.int32),
        uncut=pieces.uncut,
    )


def _find_spans(parts: Sequence[ProfilePart], frames: Sequence[int]) -> ThreadSpans:
    """Find the ranges of ``frames`` in each part that has any of them."""
    found = [ThreadSpans(*(np.zeros(0, dtype) for dtype in ("i4", "i4", "i8", "i8")))]
    for part in parts:
        own = np.flatnonzero(np.isin(part.frames[:-1], frames)).tolist()
        if part.spans is not None and own:
            spans = part.spans(own)
            times = (spans.start + part.shift, spans.end + part.shift)
            found.append(ThreadSpans(part.thread[spans.thread], part.frames[spans.frame], *times))
    return ThreadSpans(*map(np.concatenate, zip(*found, strict=True)))


def _find_nested(parts: Sequence[ProfilePart], thread: I4, time: I8) -> NestedStacks:
    """Find the nested stacks of launches in each part; threads follow the parts' order."""
    stacks = StackBuilder()
    own, linked = np.full(len(thread), UNKNOWN_STACK), np.full(len(thread), UNKNOWN_STACK)
    for part in parts:
        threads = part.thread[:-1]
        rows = np.flatnonzero(np.isin(thread, threads))
        if part.nested is None or not len(rows):
            continue
        found = part.nested(thread[rows] - threads[0], time[rows] - part.shift)
        ids = stacks.absorb(found.stacks, part.frames)
        own[rows], linked[rows] = ids[found.own], ids[found.linked]
    return NestedStacks(stacks.build(), own.astype(np.int32), linked.astype(np.int32))


def _merge_steps(profiles: Sequence[Profile], parts: Sequence[ProfilePart]) -> ProfilerSteps | None:
    tables = [
        ProfilerSteps(
            steps.number,
            part.process[steps.process],
            steps.start + part.shift,
            steps.end + part.shift,
            part.thread[steps.thread],
        )
        for part, profile in zip(parts, profiles, strict=True)
        if (steps := profile.steps) is not None
    ]
    if not tables:
        return None
    names = ("number", "process", "start", "end", "thread")
    columns = [np.concatenate([getattr(table, name) for table in tables]) for name in names]
    return ProfilerSteps(*columns)


# What is known besides


def merge_metas(metas: Sequence[Meta], origin: int | None) -> Meta:
    """Merge what ``metas`` have in common, and list what differs; 0 is at ``origin``."""
    # A process may have had less of what another had: a worker without Python frames.
    producers = dict.fromkeys(part for meta in metas for part in meta.producer.split(", ") if part)
    versions = dict.fromkeys(meta.schema_version for meta in metas if meta.schema_version)
    common = set.intersection(*(set(meta.options.items()) for meta in metas))
    ran_on = set.intersection(*(set(meta.versions.items()) for meta in metas))
    return Meta(
        format=", ".join(dict.fromkeys(meta.format for meta in metas)),
        origin=origin,
        producer=", ".join(producers),
        schema_version=", ".join(versions),
        synthetic=any(meta.synthetic for meta in metas),
        options=dict(sorted(common)),
        versions=dict(sorted(ran_on)),
    )


def _sum_graph_nodes(profiles: Sequence[Profile]) -> GraphNodes:
    nodes = [profile.graph_nodes for profile in profiles]
    return GraphNodes(
        sum(counts.activities for counts in nodes), sum(counts.captured for counts in nodes)
    )


def merge_warnings(warnings: Sequence[Sequence[str]], labels: Sequence[str]) -> list[str]:
    """Merge warnings of several profiles, each once, with the labels of those that have it."""
    owners: dict[str, list[str]] = {}
    for own, label in zip(warnings, labels, strict=True):
        for warning in dict.fromkeys(own):
            owners.setdefault(warning, []).append(label)
    return [
        warning if len(own_labels) == len(labels) else f"{', '.join(own_labels)}: {warning}"
        for warning, own_labels in owners.items()
    ]
