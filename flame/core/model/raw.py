"""A trace as recorded: columns of activities, API calls, ranges and graph nodes, no stacks yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, Generic, TypeVar, cast

import numpy as np

from flame.core.columns import I4, I8, U1, Bool, Column
from flame.core.model.frames import FrameBuilder
from flame.core.model.launches import Launches
from flame.core.model.meta import Device, Meta, Process, ProfilerSteps, Thread
from flame.core.model.pc_samples import Code
from flame.core.model.stacks import StackBuilder

OPEN = np.int64(np.iinfo(np.int64).max)
"""End of a range that was still open when the capture stopped."""


@dataclass(frozen=True, eq=False)
class Activities:
    """GPU work. ``correlation`` <= 0: none. ``graph_node`` -1: not launched from a graph node."""

    kind: U1
    start: I8
    end: I8
    process: I4
    device: I4
    stream: I4
    correlation: I8
    frame: I4
    graph_node: I8


@dataclass(frozen=True, eq=False)
class Calls:
    """CUDA API calls. ``chain_only`` rows repeat another row's call and only carry its stacks."""

    start: I8
    end: I8
    thread: I4
    correlation: I8
    frame: I4
    python: I4
    native: I4
    chain_only: Bool


@dataclass(frozen=True, eq=False)
class Ranges:
    """NVTX ranges, by the thread that opened them. ``end`` may be `OPEN`."""

    start: I8
    end: I8
    thread: I4
    frame: I4


@dataclass(frozen=True, eq=False)
class Nodes:
    """Creations of CUDA graph nodes. ``original`` -1: made by capture, else cloned from that."""

    process: I4
    node: I8
    original: I8
    start: I8
    thread: I4


@dataclass(frozen=True, eq=False)
class Functions:
    """Python function calls, by the thread that ran them; exact where each knows its caller.

    ``call`` is the call's number, unique in its process, ``caller`` that of the call it was made
    from; 0 is unknown: nesting by time decides.
    """

    start: I8
    end: I8
    thread: I4
    frame: I4
    call: I8
    caller: I8


@dataclass(frozen=True, eq=False)
class GpuRanges:
    """Ranges on a GPU's own time line, for work whose launch was not recorded."""

    start: I8
    end: I8
    device: I4
    stream: I4
    frame: I4


@dataclass(frozen=True, eq=False)
class Operators:
    """What is known of `Ranges` that are operators of a framework, row by row.

    ``python``: the Python stack recorded with the operator, 0 for none. ``forward``: the row of the
    forward operator that made this one of the backward pass, -1 for none.
    """

    python: I4
    forward: I8


@dataclass(frozen=True, eq=False)
class Recorded:
    """Where each row of a table came from, as the program saw it; ``thread`` -1 is unknown."""

    thread: I4
    python: I4
    nvtx: I4


@dataclass(frozen=True, eq=False)
class Paths:
    """Ranges that the program itself saw open, which is more than times can tell.

    ``calls`` i4: the path of ranges of every row of `Calls`, None: nesting by time decides.
    ``activities`` are of their launches, for those whose launch was not recorded. ``nodes`` are of
    the making of graph nodes.
    """

    calls: I4 | None
    activities: Recorded
    nodes: Recorded


@dataclass(frozen=True, eq=False)
class PcSamples:
    """PC samples: ``samples`` at ``offset`` of ``functions[function]``, one row per reason.

    ``correlation`` 0: of all launches of that function in the process. ``reasons`` are keys of
    `flame.core.model.stalls`; ``codes`` has what is known of each function's instructions.
    """

    process: I4
    function: I4
    offset: I8
    reason: I4
    correlation: I8
    samples: I8
    functions: tuple[str, ...]
    codes: tuple[Code | None, ...]
    reasons: tuple[str, ...]


_DTYPES: dict[str, Any] = {
    "kind": np.uint8,
    "chain_only": np.bool_,
    "start": np.int64,
    "end": np.int64,
    "correlation": np.int64,
    "graph_node": np.int64,
    "node": np.int64,
    "original": np.int64,
    "call": np.int64,
    "caller": np.int64,
    "forward": np.int64,
    "number": np.int64,
    "bytes": np.int64,
    "graph": np.bool_,
}


_Table = TypeVar("_Table")


class Batches(Generic[_Table]):
    """Collects chunks of one table's columns as they are decoded."""

    def __init__(self, table: type[_Table]) -> None:
        self._table = table
        names = [column.name for column in fields(cast("Any", table))]
        self._chunks: dict[str, list[Column]] = {name: [] for name in names}

    def add(self, **columns: Column) -> None:
        """Append one chunk; all columns of the table, of one length."""
        for name, chunks in self._chunks.items():
            chunks.append(np.asarray(columns[name], _DTYPES.get(name, np.int32)))

    def build(self) -> _Table:
        """The whole table."""
        return self._table(**{name: self._join(name) for name in self._chunks})

    def _join(self, name: str) -> Column:
        empty: Column = np.zeros(0, _DTYPES.get(name, np.int32))
        chunks, self._chunks[name] = self._chunks[name], []
        return np.concatenate([empty, *chunks])


@dataclass
class RawTrace:
    """What a reader hands over. ``threads`` index ``processes``; all index columns are dense.

    ``last_time`` is the latest time in the file, in rows that are not kept as well: ranges without
    an end are open until then. ``launches_builder`` tells how ``activities`` were launched, row by
    row, where the format says so.
    """

    activities: Activities
    calls: Calls
    ranges: Ranges
    nodes: Nodes
    frames: FrameBuilder
    stacks: StackBuilder
    processes: tuple[Process, ...]
    threads: tuple[Thread, ...]
    devices: tuple[Device, ...]
    meta: Meta
    last_time: int
    warnings: list[str] = field(default_factory=list)
    functions: Functions = field(default_factory=lambda: Batches(Functions).build())
    gpu_ranges: GpuRanges = field(default_factory=lambda: Batches(GpuRanges).build())
    operators: Operators | None = None
    steps: ProfilerSteps = field(default_factory=lambda: Batches(ProfilerSteps).build())
    launches_builder: Callable[[], Launches] | None = None
    paths: Paths | None = None
    pc_samples: PcSamples | None = None


def closed_at(end: I8, capture_end: int) -> I8:
    """When intervals end, ns: those still open when the capture stopped did so then."""
    return np.where(end == OPEN, capture_end, end)


@dataclass(frozen=True)
class Measure:
    """One thing that a file of stacks measures.

    ``unit`` is as in `flame.core.model.metrics.Metric`; ``values`` i8[rows], never negative.
    """

    key: str
    title: str
    unit: str
    values: I8


@dataclass
class RawStacks:
    """What a reader of resolved stacks hands over, one row per sample (or per stack).

    ``stack`` i4[n] is the row's stack in ``stacks``, its frames of any kind, root first (0: the
    empty stack). ``thread`` i4[n] indexes ``threads`` (-1: none). ``start`` i8[n] is when the
    sample was taken, ns, None where the format has no times. The first measure is the default.
    """

    frames: FrameBuilder
    stacks: StackBuilder
    stack: I4
    measures: tuple[Measure, ...]
    meta: Meta
    thread: I4 | None = None
    start: I8 | None = None
    processes: tuple[Process, ...] = ()
    threads: tuple[Thread, ...] = ()
    warnings: list[str] = field(default_factory=list)
