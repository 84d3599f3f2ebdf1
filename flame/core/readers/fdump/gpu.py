"""GPU work: kernels, copies and sets, how they were launched, and the nodes of CUDA graphs."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TypeVar

import numpy as np

from flame.core.columns import I4, I8, Bool, Column
from flame.core.frames import Frame, Kind
from flame.core.kernel_names import demangle, kernel_base
from flame.core.launches import UNKNOWN, Dim, LaunchConfig, Launches
from flame.core.profile import NONE
from flame.core.raw import Activities, Batches, Nodes, Recorded
from flame.core.readers.cupti import cluster_of, copy_name, small
from flame.core.readers.fdump.context import Context
from flame.core.readers.fdump.ids import Made

KERNELS, COPIES, NODES = "kernel", "memop", "graph_node"
_COMMON = (
    *("start", "end", "graph_node", "correlation", "python", "nvtx", "tid", "device", "stream"),
)
# In the order of the fields of `LaunchConfig`, which has one that no activity record knows.
_GEOMETRY = (
    *("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"),
    *("cluster_x", "cluster_y", "cluster_z", "registers", "static_shared", "dynamic_shared"),
    "local",
)
_SET = 1  # of a memop's kind

Table = TypeVar("Table", Nodes, Recorded)


class Work:
    """All GPU work of a dump: ``activities``, and row by row ``recorded`` and ``launches``."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._rows = Batches(Activities)
        self._recorded = Batches(Recorded)
        self._configs: list[LaunchConfig] = []
        self._config: list[Column] = [np.zeros(0, np.int32)]
        self._bytes: list[Column] = [np.zeros(0, np.int64)]
        self._read_kernels()
        self._read_copies()
        self.activities = self._rows.build()
        self.recorded = self._recorded.build()
        config, size = np.concatenate(self._config), np.concatenate(self._bytes)
        self.launches = Launches(config, size, tuple(self._configs))

    def _read_kernels(self) -> None:
        context = self._context
        frames = Made(lambda symbol: context.frames.add(_kernel(context, symbol)))
        numbers = Made(self._config_number)
        stage, names = "reading kernels", (*_COMMON, "symbol", *_GEOMETRY)
        for piece in context.columns(stage, KERNELS, names):
            kind = np.full(len(piece["start"]), Kind.KERNEL)
            self._add(piece, kind, frames.rows([piece["symbol"]]))
            self._config.append(numbers.rows([piece[name] for name in _GEOMETRY]))
            self._bytes.append(np.full(len(kind), UNKNOWN))

    def _read_copies(self) -> None:
        context = self._context
        frames = Made(lambda kind, copy: context.frames.add(_copy(kind, copy)))
        stage, names = "reading copies", (*_COMMON, "kind", "copy_kind", "bytes")
        for piece in context.columns(stage, COPIES, names):
            kind = np.where(piece["kind"] == _SET, Kind.MEMSET, Kind.MEMCPY)
            self._add(piece, kind, frames.rows([piece["kind"], piece["copy_kind"]]))
            self._config.append(np.full(len(kind), UNKNOWN, np.int32))
            self._bytes.append(np.where(piece["bytes"] < 0, UNKNOWN, piece["bytes"]))

    def _add(self, piece: dict[str, I8], kind: Column, frame: I4) -> None:
        context = self._context
        start, end = context.spans("GPU activities", piece["start"], piece["end"])
        self._rows.add(
            kind=kind,
            start=start,
            end=end,
            process=np.zeros(len(start)),
            device=context.devices(small(piece["device"])),
            stream=small(piece["stream"]),
            correlation=piece["correlation"],
            frame=frame,
            graph_node=np.where(piece["graph_node"] > 0, piece["graph_node"], NONE),
        )
        self._recorded.add(**recorded(context, piece))

    def _config_number(self, *row: int) -> int:
        grid, block, cluster = _dim(*row[0:3]), _dim(*row[3:6]), _dim(*row[6:9])
        registers, static, dynamic, local = row[9:]
        self._configs.append(
            LaunchConfig(
                grid,
                block,
                cluster_of(cluster),
                registers,
                static,
                dynamic,
                local=local,
            )
        )
        return len(self._configs) - 1


def _dim(x: int, y: int, z: int) -> Dim:
    return x, y, z


def recorded(context: Context, piece: dict[str, I8]) -> dict[str, Column]:
    """Columns of `Recorded` for records that say of what thread and stacks they are."""
    return {
        "thread": context.thread(piece["tid"]),
        "python": context.stacks.of(piece["python"], Kind.PYTHON),
        "nvtx": context.stacks.of(piece["nvtx"], Kind.NVTX),
    }


def _kernel(context: Context, symbol: int) -> Frame:
    """A kernel by its base name; the full name and the symbol are kept."""
    text = context.vocabulary.texts.of(np.array([symbol]))[symbol]
    full = demangle(text)
    known = (("demangled", full), ("mangled", text if text.startswith("_Z") else ""))
    extra = tuple(pair for pair in known if pair[1])
    return Frame(Kind.KERNEL, kernel_base(full) or "[kernel without a name]", extra=extra)


def _copy(kind: int, copy: int) -> Frame:
    if kind == _SET:
        return Frame(Kind.MEMSET, "memset")
    return Frame(Kind.MEMCPY, copy_name(copy))


def read_nodes(context: Context) -> tuple[Nodes, Recorded]:
    """Creations of CUDA graph nodes, and row by row where that was."""
    batches, where = Batches(Nodes), Batches(Recorded)
    names = ("node", "original", "time", "tid", "python", "nvtx")
    for piece in context.columns("reading graphs", NODES, names):
        time, known = context.times(piece["time"])
        row = recorded(context, piece)
        where.add(**row)
        batches.add(
            process=np.zeros(len(time)),
            node=piece["node"],
            original=np.where(piece["original"] == 0, NONE, piece["original"]),
            start=np.where(known, time, 0),
            thread=row["thread"],
        )
    nodes, origins = batches.build(), where.build()
    # A copy is made first, and then said to be one: it was born where its original was.
    copied = nodes.original != NONE
    kept = copied | ~np.isin(nodes.node, nodes.node[copied])
    return _chosen(nodes, kept), _chosen(origins, kept)


def _chosen(table: Table, rows: Bool) -> Table:
    return replace(table, **{one.name: getattr(table, one.name)[rows] for one in fields(table)})
