"""GPU work: kernels, memory copies and sets, and CUDA graphs traced as a whole."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from flame.core.columns import I4, Column
from flame.core.model.activities import NONE
from flame.core.model.frames import Frame, Kind
from flame.core.model.raw import Activities, Batches, Nodes
from flame.core.names.cuda import demangle, kernel_base
from flame.core.readers.nsys.context import Context, FrameOf, process_key
from flame.core.readers.shared.cupti import copy_name, small
from flame.core.readers.sqlite.source import NULL

TABLES = {
    "CUPTI_ACTIVITY_KIND_KERNEL": Kind.KERNEL,
    "CUPTI_ACTIVITY_KIND_MEMCPY": Kind.MEMCPY,
    "CUPTI_ACTIVITY_KIND_MEMSET": Kind.MEMSET,
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": Kind.GRAPH,
}
_COMMON = ("start", "end", "deviceId", "streamId", "correlationId", "globalPid", "graphNodeId")
_NAMED_BY = {
    Kind.KERNEL: ("shortName", "demangledName", "mangledName"),
    Kind.MEMCPY: ("copyKind",),
    Kind.MEMSET: ("copyKind",),  # a column it does not have: all are one
    Kind.GRAPH: ("graphId",),
}


def read_activities(context: Context) -> Activities:
    """All GPU work of the trace, in table order."""
    batches = Batches(Activities)
    for table, kind in TABLES.items():
        names, frame_of = _NAMED_BY[kind], _frame_of(context, kind)
        for chunk in context.source.chunks(table, [*_COMMON, *names]):
            _add(context, batches, kind, chunk, frame_of.rows([chunk[n] for n in names]))
            context.advance("reading GPU activities", len(chunk["start"]))
    return batches.build()


def _add(
    context: Context, batches: Batches[Activities], kind: Kind, chunk: dict[str, Column], frame: I4
) -> None:
    process = context.processes(process_key(chunk["globalPid"]))
    start, end = context.spans("GPU activities", chunk["start"], chunk["end"])
    batches.add(
        kind=np.full(len(start), kind),
        start=start,
        end=end,
        process=process,
        device=_devices(context, process, chunk["deviceId"]),
        stream=small(chunk["streamId"]),
        correlation=_or(chunk["correlationId"], 0),
        frame=frame,
        graph_node=_or(chunk["graphNodeId"], NONE),
    )


def _or(column: Column, absent: int) -> Column:
    return np.where(column == NULL, absent, column)


def _devices(context: Context, process: I4, ordinal: Column) -> I4:
    """Numbers of (process, CUDA ordinal) pairs; see `flame.core.readers.nsys.metadata`."""
    known = small(ordinal)
    pairs = np.where(known < 0, NULL, ((process.astype(np.int64) + 1) << 32) | known)
    return context.devices(pairs)


def _frame_of(context: Context, kind: Kind) -> FrameOf:
    """Frames by what names an activity of ``kind``; see `_NAMED_BY`."""
    makers: dict[Kind, Callable[..., Frame]] = {
        Kind.KERNEL: lambda *ids: _kernel(context, *ids),
        Kind.MEMCPY: lambda copy: Frame(kind, copy_name(copy)),
        Kind.MEMSET: lambda _: Frame(kind, "memset"),
        Kind.GRAPH: lambda graph: Frame(kind, _graph_name(graph)),
    }
    return FrameOf(lambda *row: context.frames.add(makers[kind](*row)))


def _graph_name(graph: int) -> str:
    return "CUDA graph" if graph == NULL else f"CUDA graph {graph}"


def _kernel(context: Context, short: int, demangled: int, mangled: int) -> Frame:
    """A kernel by the trace's own short name where it has one."""
    symbol = context.string(mangled)
    full = context.string(demangled) or (demangle(symbol) if symbol else "")
    base = context.string(short) or (kernel_base(full) if full else "")
    extra = [("demangled", full), ("mangled", symbol)]
    known = tuple(pair for pair in extra if pair[1])
    return Frame(Kind.KERNEL, base or _unnamed(short, demangled, mangled), extra=known)


def _unnamed(*ids: int) -> str:
    """A kernel whose name ids lead nowhere keeps the id, so that different ones stay apart."""
    known = next((key for key in ids if key != NULL), None)
    return "[kernel without a name]" if known is None else f"[kernel with unknown name {known}]"


def read_nodes(context: Context) -> Nodes:
    """Creations of CUDA graph nodes; up to schema 3.7 they stood in CUDA_GRAPH_EVENTS."""
    batches = Batches(Nodes)
    for table in ("CUDA_GRAPH_NODE_EVENTS", "CUDA_GRAPH_EVENTS"):
        if "graphNodeId" not in context.source.columns(table):
            continue
        names = ["start", "end", "globalTid", "graphNodeId", "originalGraphNodeId"]
        for chunk in context.source.chunks(table, names):
            context.times(chunk["end"])
            batches.add(
                process=context.process_of_thread(chunk["globalTid"]),
                node=_or(chunk["graphNodeId"], NONE),
                original=_or(chunk["originalGraphNodeId"], NONE),
                start=_or(context.times(chunk["start"]), 0),
                thread=context.thread(chunk["globalTid"]),
            )
    return batches.build()
