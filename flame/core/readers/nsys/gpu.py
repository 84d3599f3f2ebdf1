"""Read GPU work: kernels, memory copies and sets, and CUDA graphs traced as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from flame.core.columns import I4, I8, Column
from flame.core.model.activities import NONE
from flame.core.model.frames import Frame, Kind
from flame.core.model.raw import RawActivities, RawGraphNodes, TableBuilder
from flame.core.names.cuda import demangle, kernel_base
from flame.core.readers.nsys.context import NsysContext, process_keys
from flame.core.readers.shared.cupti import copy_name, fit_31_bits, graph_name
from flame.core.readers.shared.row_ids import RowIds
from flame.core.readers.sqlite.numbering import KeyColumns, RowNumbers
from flame.core.readers.sqlite.source import NULL, NUMBER, Chunk, TableKey, TableQuery

TABLES = {
    "CUPTI_ACTIVITY_KIND_KERNEL": Kind.KERNEL,
    "CUPTI_ACTIVITY_KIND_MEMCPY": Kind.MEMCPY,
    "CUPTI_ACTIVITY_KIND_MEMSET": Kind.MEMSET,
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": Kind.GRAPH,
}
_OWN = ("start", "end", "correlationId", "graphNodeId")
_SHARED = ("globalPid", "deviceId", "streamId")
_NAMED_BY = {
    Kind.KERNEL: ("shortName", "demangledName", "mangledName"),
    Kind.MEMCPY: ("copyKind",),
    Kind.MEMSET: ("copyKind",),  # a column it does not have: all are one
    Kind.GRAPH: ("graphId",),
}


class LaunchColumns(Protocol):
    """Takes what tables tell of launches besides, while they are read."""

    def names(self, kind: Kind) -> tuple[Sequence[str], Sequence[str]]:
        """List its columns of a table: those that stay as they are, and those of the key."""

    def take(self, kind: Kind, keys: RowNumbers) -> Callable[[Chunk], None]:
        """Make what takes each chunk of a table, whose ``keys`` end with its columns."""


def read_activities(context: NsysContext, launches: LaunchColumns | None = None) -> RawActivities:
    """Read all GPU activities of the trace, in table order; and, if asked for, their launches."""
    batches = TableBuilder(RawActivities, sum(map(context.source.size, TABLES)))
    for table, kind in TABLES.items():
        whole, keyed = launches.names(kind) if launches else ((), ())
        names = [*_SHARED, *_NAMED_BY[kind], *keyed]
        rows = RowNumbers(len(names))
        shared = KeyColumns(rows, _describe_keys(context, kind))
        take = launches.take(kind, rows) if launches else None
        for chunk in context.source.chunks(
            TableQuery(table, [*_OWN, *whole], TableKey(names, rows))
        ):
            _add_activities(context, batches, kind, chunk, shared)
            if take:
                take(chunk)
            context.advance("reading GPU activities", table, len(chunk["start"]))
    return batches.build()


def _describe_keys(context: NsysContext, kind: Kind) -> Callable[[I8], list[Column]]:
    """Make what tells process, device, stream and frame of activities of ``kind`` from keys."""
    frame_of = _frame_ids(context, kind)

    def describe(keys: I8) -> list[Column]:
        pid, ordinal, stream, *names = keys.T[: len(_SHARED) + len(_NAMED_BY[kind])]
        process = context.processes(process_keys(pid))
        device = device_numbers(context, process, ordinal)
        return [process, device, fit_31_bits(stream), frame_of.look_up(names)]

    return describe


def _add_activities(
    context: NsysContext,
    batches: TableBuilder[RawActivities],
    kind: Kind,
    chunk: Chunk,
    shared: KeyColumns,
) -> None:
    start, end = context.spans("GPU activities", chunk["start"], chunk["end"])
    process, device, stream, frame = shared.of(chunk[NUMBER])
    batches.add(
        kind=np.full(len(start), kind, np.uint8),
        start=start,
        end=end,
        process=process,
        device=device,
        stream=stream,
        correlation=_fill_null(chunk["correlationId"], 0),
        frame=frame,
        graph_node=_fill_null(chunk["graphNodeId"], NONE),
    )


def _fill_null(column: Column, absent: int) -> Column:
    if column.min(initial=0) > NULL:
        return column
    return np.where(column == NULL, absent, column)


def device_numbers(context: NsysContext, process: I4, ordinal: Column) -> I4:
    """Number (process, CUDA ordinal) pairs; see `flame.core.readers.nsys.metadata`."""
    known = fit_31_bits(ordinal)
    pairs = np.where(known < 0, NULL, ((process.astype(np.int64) + 1) << 32) | known)
    return context.devices(pairs)


def _frame_ids(context: NsysContext, kind: Kind) -> RowIds:
    """Return the frame ids of activities of ``kind`` by what names them; see `_NAMED_BY`."""
    makers: dict[Kind, Callable[..., Frame]] = {
        Kind.KERNEL: lambda *ids: _kernel_frame(context, *ids),
        Kind.MEMCPY: lambda copy: Frame(kind, copy_name(copy)),
        Kind.MEMSET: lambda _: Frame(kind, "memset"),
        Kind.GRAPH: lambda graph: Frame(kind, graph_name(graph)),
    }
    return RowIds(lambda *row: context.frames.add(makers[kind](*row)))


def _kernel_frame(context: NsysContext, short: int, demangled: int, mangled: int) -> Frame:
    """Make the frame of a kernel, called by the trace's own short name where it has one."""
    symbol = context.text_of(mangled)
    full = context.text_of(demangled) or (demangle(symbol) if symbol else "")
    base = context.text_of(short) or (kernel_base(full) if full else "")
    extra = [("demangled", full), ("mangled", symbol)]
    known = tuple(pair for pair in extra if pair[1])
    return Frame(Kind.KERNEL, base or _placeholder_name(short, demangled, mangled), extra=known)


def _placeholder_name(*ids: int) -> str:
    """Name a kernel whose name ids lead nowhere by its id: different ones stay apart."""
    known = next((key for key in ids if key != NULL), None)
    return "[kernel without a name]" if known is None else f"[kernel with unknown name {known}]"


def read_nodes(context: NsysContext) -> RawGraphNodes:
    """Read creations of CUDA graph nodes; up to schema 3.7 they stood in CUDA_GRAPH_EVENTS."""
    batches = TableBuilder(RawGraphNodes)
    for table in ("CUDA_GRAPH_NODE_EVENTS", "CUDA_GRAPH_EVENTS"):
        if "graphNodeId" not in context.source.columns(table):
            continue
        names = ["start", "end", "globalTid", "graphNodeId", "originalGraphNodeId"]
        for chunk in context.source.chunks(TableQuery(table, names)):
            context.times(chunk["end"])
            batches.add(
                process=context.process_numbers(chunk["globalTid"]),
                node=_fill_null(chunk["graphNodeId"], NONE),
                original=_fill_null(chunk["originalGraphNodeId"], NONE),
                start=_fill_null(context.times(chunk["start"]), 0),
                thread=context.thread_numbers(chunk["globalTid"]),
            )
    return batches.build()
