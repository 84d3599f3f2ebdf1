"""Read a dump of the injection library into a `RawTrace`, also while it is being written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from flame.core.columns import I4, I8, Bool, Column
from flame.core.load_progress import LoadPart
from flame.core.model.activities import NONE
from flame.core.model.allocator.memory_events import MemoryEvents
from flame.core.model.launches import LaunchDetails
from flame.core.model.raw import (
    OPEN,
    RawActivities,
    RawCalls,
    RawGraphNodes,
    RawPcSamples,
    RawRanges,
    RawTrace,
    RecordedOrigins,
    RecordedPaths,
    TableBuilder,
)
from flame.core.model.threads.call_rows import FailedCalls
from flame.core.model.threads.events import ThreadEvents
from flame.core.options import LoadOptions, Progress
from flame.core.readers.fdump import gpu, host, memory, metadata, samples
from flame.core.readers.fdump.chunks import Chunks, DumpBytes, prefix_errors
from flame.core.readers.fdump.context import DumpContext, SharedTables
from flame.core.readers.fdump.events import EventRows, NcclRows
from flame.core.readers.fdump.records import AT_ONCE, NamedColumns, Records
from flame.core.readers.fdump.warnings import Losses, dump_warnings
from flame.core.units import format_counted

_DECODED = 0.5
"""Share of the rows of a dump with PC samples; the rest is that of its disassembly, if any."""

_FIELDS = gpu.FIELDS | host.FIELDS | memory.FIELDS | {samples.SAMPLES: samples.FIELDS}
_GROWING = (
    *(gpu.KERNELS, gpu.COPIES, gpu.GRAPHS, gpu.NODES),
    *(host.LAUNCHES, host.CALLS, memory.MEMORY, host.RANGES, samples.SAMPLES),
)

Table = TypeVar("Table", RawGraphNodes, RecordedOrigins)
Known = TypeVar("Known", ThreadEvents, FailedCalls)


def read_dump(path: Path, options: LoadOptions, progress: Progress) -> RawTrace:
    """Decode all records that are whole; leave out and count the others.

    Raises InputError where nothing can be read at all.
    """
    with prefix_errors(path), closing(DumpBytes(path)) as data:
        return _read(Chunks(data), path, options, progress)


def _read(chunks: Chunks, path: Path, options: LoadOptions, progress: Progress) -> RawTrace:
    still_open, records, latest = _read_in_order(chunks)
    shared, header, losses = SharedTables(), chunks.header, Losses()
    context = DumpContext(header, shared, options, origin=header.start_monotonic)
    context.learn(latest)
    losses.learn(latest)
    has_samples = bool(records.pieces(samples.SAMPLES))
    stages = _Stages(records, LoadPart(progress, 0, _DECODED if has_samples else 1))
    work, recorded, config, size = _read_work(context, stages)
    nodes, made = _read_nodes(context, stages, work, latest)
    calls, paths, failed = _read_calls(context, stages)
    allocated, origins = _read_memory(context, stages) or (None, None)
    events, nccl = EventRows(context), NcclRows(context)
    ranges = _read_ranges(context, stages, still_open, options, (events, nccl))
    if len(still_open["start"]):
        context.reach_end(header)
    rows = samples.SampleRows(context.vocabulary)
    rows.learn_modules(latest)
    pc_samples, notes = _read_samples(
        context, stages, rows, path.parent, LoadPart(progress, _DECODED, 1), options.cache
    )
    return RawTrace(
        work,
        calls,
        ranges,
        nodes,
        shared.frames,
        shared.stacks,
        tuple(shared.processes),
        tuple(shared.threads),
        tuple(shared.devices),
        metadata.read_meta(header, context.vocabulary, str(path)),
        context.last_time,
        [*dump_warnings(chunks, context, losses), *notes],
        launches_builder=LaunchDetails(config, size, tuple(shared.configs)).builder(),
        # Start/end ranges are on no path: then time tells for all of them.
        paths=RecordedPaths(None if options.nvtx_start_end else paths, recorded, made, origins),
        pc_samples=pc_samples,
        failures_builder=_builder(failed),
        events_builder=_builder(events.build(options.nvtx_start_end)),
        nccl_builder=nccl.builder(),
        memory=allocated,
    )


def _builder(table: Known | None) -> Callable[[], Known] | None:
    return None if table is None else partial(_same, table)


def _same(table: Known) -> Known:
    return table


def _read_in_order(chunks: Chunks) -> tuple[dict[str, I8], Records, Records]:
    """Read the open ranges, then the records, then the vocabulary that they may refer to.

    In this order nothing is missed in a file that grows: a range is written as ended before it is
    no longer open, and what a record refers to before the record.
    """
    chunks.update(beyond_tail=True)
    still_open = chunks.records().table(host.OPEN_RANGES, _FIELDS[host.OPEN_RANGES])
    chunks.update(beyond_tail=True)
    records = chunks.records()
    chunks.update(beyond_tail=True)
    return still_open, records, chunks.records()


class _Stages:
    """Reads records kind by kind and reports progress, which may raise CancelledError."""

    def __init__(self, records: Records, progress: Progress) -> None:
        self._records = records
        self._progress = progress
        self._expected = sum(len(records.pieces(key)) for key in _GROWING)
        self._done = 0

    def columns(self, stage: str, key: str) -> Iterator[dict[str, I8]]:
        """Yield the columns of all records of a kind, as `Records.columns`."""
        for piece in self._records.columns(key, _FIELDS[key]):
            yield piece
            self._done += AT_ONCE
            self._progress(stage, min(self._done, self._expected), self._expected)


def _read_work(
    context: DumpContext, stages: _Stages
) -> tuple[RawActivities, RecordedOrigins, I4, I8]:
    """Read all GPU activities, and row by row their launch's origin, configuration and bytes."""
    table, recorded, rows = (
        TableBuilder(RawActivities),
        TableBuilder(RecordedOrigins),
        gpu.GpuRows(context),
    )
    config: list[Column] = [np.zeros(0, np.int32)]
    size: list[Column] = [np.zeros(0, np.int64)]

    def add(known: NamedColumns) -> None:
        table.add(**known, process=np.full(len(known["start"]), context.process))
        recorded.add(**known)
        config.append(known["config"])
        size.append(known["bytes"])

    for piece in stages.columns("reading kernels", gpu.KERNELS):
        add(rows.kernel_rows(piece))
    for piece in stages.columns("reading copies", gpu.COPIES):
        add(rows.copy_rows(piece))
    for piece in stages.columns("reading graphs", gpu.GRAPHS):
        add(rows.graph_rows(piece))
    return table.build(), recorded.build(), np.concatenate(config), np.concatenate(size)


def _read_nodes(
    context: DumpContext, stages: _Stages, work: RawActivities, latest: Records
) -> tuple[RawGraphNodes, RecordedOrigins]:
    """Read creations of CUDA graph nodes, and row by row where in the program that was."""
    batches, where = TableBuilder(RawGraphNodes), TableBuilder(RecordedOrigins)
    execs = gpu.ExecGraphs()

    def add(rows: NamedColumns) -> None:
        where.add(**rows)
        batches.add(**rows, process=np.full(len(rows["node"]), context.process))

    for piece in stages.columns("reading graphs", gpu.NODES):
        rows = gpu.build_node_rows(context, piece)
        execs.learn_nodes(rows)
        add(rows)
    execs.learn_execs(latest.table(gpu.EXECS, _FIELDS[gpu.EXECS]))
    add(execs.build_copies(work.graph_node))
    nodes, origins = batches.build(), where.build()
    # A copy is made first, and then said to be one: it was born where its original was.
    copied = nodes.original != NONE
    kept = copied | ~np.isin(nodes.node, nodes.node[copied])
    return _select_rows(nodes, kept), _select_rows(origins, kept)


def _select_rows(table: Table, rows: Bool) -> Table:
    return replace(
        table, **{column.name: getattr(table, column.name)[rows] for column in fields(table)}
    )


def _read_calls(context: DumpContext, stages: _Stages) -> tuple[RawCalls, I4, FailedCalls | None]:
    """Read all CUDA API calls, the path of NVTX ranges recorded with each, and which failed."""
    batches, paths, rows = (
        TableBuilder(RawCalls),
        [np.zeros(0, np.int32)],
        host.DumpCallRows(context),
    )
    failed = host.FailedRows()
    # Of two with the same times the first is the outer one: launches may lie in other calls.
    for key, build in ((host.CALLS, rows.call_rows), (host.LAUNCHES, rows.launch_rows)):
        for piece in stages.columns("reading API calls", key):
            known = build(piece)
            batches.add(**known)
            paths.append(known["nvtx"])
            failed.add(known, piece)
    return batches.build(), np.concatenate(paths), failed.build()


def _read_memory(
    context: DumpContext, stages: _Stages
) -> tuple[MemoryEvents, RecordedOrigins] | None:
    """Read what was given out and taken back, and where in the program that was."""
    rows = memory.DumpMemoryRows(context)
    for piece in stages.columns("reading memory", memory.MEMORY):
        rows.add(piece)
    return rows.build()


def _read_ranges(
    context: DumpContext,
    stages: _Stages,
    still_open: dict[str, I8],
    options: LoadOptions,
    others: tuple[EventRows, NcclRows],
) -> RawRanges:
    """Read all push/pop ranges, ``still_open`` ones last; start/end ranges if ``options`` say so.

    ``others`` are given the records, to take what is for them.
    ``still_open`` are columns of open ranges that were read before all others: some may have ended.
    """
    batches, payloads = TableBuilder(RawRanges), host.Payloads(context)
    wanted = (host.PUSH_POP, host.START_END) if options.nvtx_start_end else (host.PUSH_POP,)
    for piece in stages.columns("reading NVTX ranges", host.RANGES):
        for one in others:
            one.add(piece)
        piece = host.select_kinds(piece, wanted)
        rows, kept = host.build_range_rows(context, piece)
        context.timeless_ranges += len(piece["start"]) - len(rows["start"])
        batches.add(**rows)
        payloads.add(kept)
    table = batches.build()
    known = {column.name: getattr(table, column.name) for column in fields(table)}
    batches.add(**known)
    rows, _ = host.build_range_rows(context, still_open)
    context.timeless_ranges += len(still_open["start"]) - len(rows["start"])
    left = host.select_rows(rows, ~host.share_begin(rows, known))
    batches.add(**left, end=np.full(len(left["start"]), OPEN))
    return batches.build()


def _read_samples(
    context: DumpContext,
    stages: _Stages,
    rows: samples.SampleRows,
    folder: Path,
    progress: Progress,
    cache: bool,
) -> tuple[RawPcSamples | None, list[str]]:
    """Read all PC samples with the code that ``folder`` has for them, and warnings about these."""
    for piece in stages.columns("reading PC samples", samples.SAMPLES):
        rows.add(piece)
    pc_samples = rows.build(context.process)
    are = format_counted(rows.impossible, "PC sample is", "PC samples are")
    lost = f"{are} damaged, in no function or nowhere in it: left out"
    notes = [lost] if rows.impossible else []
    if pc_samples is None:
        return None, notes
    table, more = samples.add_codes(pc_samples, folder, progress, cache=cache)
    return table, [*notes, *more]
