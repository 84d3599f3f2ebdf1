"""Read GPU work: kernels, copies and sets, how they were launched, and nodes of CUDA graphs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from flame.core.columns import I8, unique
from flame.core.model.activities import NONE
from flame.core.model.frames import Frame, Kind
from flame.core.model.launches import UNKNOWN, Dim, LaunchConfig
from flame.core.names.cuda import demangle, kernel_base
from flame.core.readers.fdump.context import DumpContext
from flame.core.readers.fdump.ids import ABSENT, IdTable, OptionalRowIds
from flame.core.readers.fdump.records import NamedColumns
from flame.core.readers.shared.cupti import (
    cluster_of,
    copy_name,
    fit_31_bits,
    graph_name,
    memory_kind,
)

KERNELS, COPIES, NODES, EXECS = "kernel", "memop", "graph_node", "graph_exec"
GRAPHS = "graph_run"
_PLACED = ("start", "end", "correlation", "python", "nvtx", "tid", "device", "stream")
_COMMON = (*_PLACED, "graph_node")
# In the order of the fields of `LaunchConfig`, which has one that no activity record knows.
_GEOMETRY = (
    *("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"),
    *("cluster_x", "cluster_y", "cluster_z", "registers", "static_shared", "dynamic_shared"),
    "local",
)
FIELDS = {
    KERNELS: (*_COMMON, "symbol", *_GEOMETRY),
    COPIES: (*_COMMON, "kind", "copy_kind", "bytes", "source", "target"),
    GRAPHS: (*_PLACED, "graph"),
    NODES: ("node", "original", "time", "tid", "python", "nvtx"),
    EXECS: ("exec", "graph"),
}
_SET = 1  # of a memop's kind
_HOST = 0x7FFFFFFF
_GRAPH, _NUMBER = 32, (1 << 32) - 1  # in the id of a node: where its graph begins, and the rest


class GpuRows:
    """Builds rows of GPU activities from their records.

    Columns are those of `flame.core.model.raw.RawActivities` and `RecordedOrigins` without the
    process, and ``config`` and ``bytes`` as in `flame.core.model.launches.LaunchDetails`.
    """

    def __init__(self, context: DumpContext) -> None:
        self._context = context
        self._kernels = OptionalRowIds(partial(_add_kernel, context))
        self._copies = OptionalRowIds(partial(_add_copy, context))
        self._graphs = OptionalRowIds(partial(_add_graph, context))
        self._configs = OptionalRowIds(lambda *row: context.shared.config_index(_config(*row)))
        self._memories = OptionalRowIds(partial(_add_memory, context))

    def kernel_rows(self, piece: dict[str, I8]) -> NamedColumns:
        """Build the rows of kernels."""
        size = len(piece["start"])
        return self._common_columns(piece) | {
            "kind": np.full(size, Kind.KERNEL),
            "frame": self._kernels.look_up([piece["symbol"]]),
            "config": self._configs.look_up([piece[name] for name in _GEOMETRY]),
            "bytes": np.full(size, UNKNOWN),
        }

    def copy_rows(self, piece: dict[str, I8]) -> NamedColumns:
        """Build the rows of copies and sets."""
        return self._common_columns(piece) | {
            "kind": np.where(piece["kind"] == _SET, Kind.MEMSET, Kind.MEMCPY),
            "frame": self._copies.look_up([piece["kind"], piece["copy_kind"]]),
            "config": self._memories.look_up([piece["source"], piece["target"]]),
            "bytes": np.where(piece["bytes"] < 0, UNKNOWN, piece["bytes"]),
        }

    def graph_rows(self, piece: dict[str, I8]) -> NamedColumns:
        """Build the rows of CUDA graphs that were recorded as a whole."""
        size = len(piece["start"])
        # Where a graph begins on the host CUPTI says INT_MAX.
        device = np.where(piece["device"] == _HOST, NONE, piece["device"])
        return self._common_columns(piece | {"graph_node": np.zeros(size), "device": device}) | {
            "kind": np.full(size, Kind.GRAPH),
            "frame": self._graphs.look_up([piece["graph"]]),
            "config": np.full(size, UNKNOWN),
            "bytes": np.full(size, UNKNOWN),
        }

    def _common_columns(self, piece: dict[str, I8]) -> NamedColumns:
        context = self._context
        start, end = context.spans("GPU activities", piece["start"], piece["end"])
        return context.thread_and_stacks(piece) | {
            "start": start,
            "end": end,
            "device": context.devices.look_up([fit_31_bits(piece["device"])]),
            "stream": fit_31_bits(piece["stream"]),
            "correlation": piece["correlation"],
            "graph_node": np.where(piece["graph_node"] > 0, piece["graph_node"], NONE),
        }


def _add_memory(context: DumpContext, source: int, target: int) -> int:
    """Add the kinds of memory of a copy or set."""
    config = LaunchConfig(source=memory_kind(source), target=memory_kind(target))
    return context.shared.config_index(config) if config.is_of_memory else UNKNOWN


def _add_kernel(context: DumpContext, symbol: int) -> int:
    """Add the frame of a kernel, called by its base name; the full name and symbol are kept."""
    text = context.vocabulary.texts.look_up(np.array([symbol]))[symbol]
    full = demangle(text)
    known = (("demangled", full), ("mangled", text if text.startswith("_Z") else ""))
    extra = tuple(pair for pair in known if pair[1])
    name = kernel_base(full) or "[kernel without a name]"
    return context.shared.frames.add(Frame(Kind.KERNEL, name, extra=extra))


def _add_copy(context: DumpContext, kind: int, copy: int) -> int:
    named = Frame(Kind.MEMCPY, copy_name(copy))
    return context.shared.frames.add(Frame(Kind.MEMSET, "memset") if kind == _SET else named)


def _add_graph(context: DumpContext, graph: int) -> int:
    return context.shared.frames.add(Frame(Kind.GRAPH, graph_name(graph)))


def _config(*row: int) -> LaunchConfig:
    grid, block, cluster = _dim(*row[0:3]), _dim(*row[3:6]), _dim(*row[6:9])
    registers, static, dynamic, local = row[9:]
    return LaunchConfig(grid, block, cluster_of(cluster), registers, static, dynamic, local=local)


def _dim(x: int, y: int, z: int) -> Dim:
    return x, y, z


def build_node_rows(context: DumpContext, piece: dict[str, I8]) -> NamedColumns:
    """Build rows of CUDA graph nodes' creations: columns of `RawGraphNodes` and `RecordedOrigins`.

    Of a copy only what it is of: where and when it was made may be told in several ways.
    """
    time, known = context.times(piece["time"])
    made = piece["original"] == 0
    rows = context.thread_and_stacks(piece)
    return rows | {
        "node": piece["node"],
        "original": np.where(made, NONE, piece["original"]),
        "start": np.where(known & made, time, 0),
        "thread": np.where(made, rows["thread"], NONE),
    }


class ExecGraphs:
    """Tells of which node one of an executable graph is a copy, by their ids.

    The id of a node is that of its graph, and a number that its copy keeps. That is believed as
    long as all copies that the dump tells of agree with it.
    """

    def __init__(self) -> None:
        self._graphs = IdTable()
        self._originals = IdTable()
        self._made: I8 = np.zeros(0, np.int64)
        self._believed: bool | None = None

    def learn_execs(self, records: Mapping[str, I8]) -> None:
        """Add records of executable graphs."""
        self._graphs.learn(records["exec"], records["graph"])
        self._believed = None

    def learn_nodes(self, rows: NamedColumns) -> None:
        """Add what was told of nodes: rows of `build_node_rows`."""
        node, original = rows["node"].astype(np.int64), rows["original"].astype(np.int64)
        copied = original != NONE
        self._originals.learn(node[copied], original[copied])
        self._made = unique(np.concatenate([self._made, node[~copied]])).astype(np.int64)
        self._believed = None

    def sources_of(self, nodes: I8) -> I8:
        """Return the node that each of ``nodes`` is a copy of, `NONE` where ids do not tell."""
        if self._believed is None:
            self._believed = self._agree_with_copies() and not self._hold_captures()
        if not self._believed:
            return np.full(len(nodes), NONE, np.int64)
        return self._by_id(nodes)

    def build_copies(self, nodes: I8) -> NamedColumns:
        """Build rows as `build_node_rows` does, of ``nodes`` whose ids tell their source."""
        node = unique(nodes).astype(np.int64)
        source = self.sources_of(node)
        known = np.flatnonzero(source != NONE)
        nothing = np.zeros(len(known), np.int64)
        rows = dict.fromkeys(("start", "python", "nvtx"), nothing)
        return rows | {"node": node[known], "original": source[known], "thread": nothing + NONE}

    def _by_id(self, nodes: I8) -> I8:
        graph = self._graphs.look_up(nodes >> _GRAPH)
        return np.where(graph == ABSENT, NONE, graph << _GRAPH | nodes & _NUMBER)

    def _agree_with_copies(self) -> bool:
        source, original = self._by_id(self._originals.ids), self._originals.values
        return bool(((source == NONE) | (source == original)).all())

    def _hold_captures(self) -> bool:
        """Return whether an executable graph has nodes of its own: then its id is no graph's."""
        made = self._made[~self._originals.contains(self._made)]
        return bool(self._graphs.contains(made >> _GRAPH).any())
