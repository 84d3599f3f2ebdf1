"""Hold a trace as recorded: columns of activities, calls, ranges, graph nodes; no stacks yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, fields
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import numpy as np

from flame.core.columns import I4, I8, U1, Bool, Column
from flame.core.lazy_dataclass import dataclass
from flame.core.model.frames import FrameBuilder
from flame.core.model.meta import Device, Meta, Overheads, Process, ProfilerSteps, Thread
from flame.core.model.side_tables.tables import SideTables
from flame.core.model.stacks import StackBuilder

if TYPE_CHECKING:
    from flame.core.model.allocator.memory_events import MemoryEvents
    from flame.core.model.launches import LaunchDetails, NcclRanges, RawCollectives
    from flame.core.model.meta import AllocatorMemory
    from flame.core.model.pc_samples import Code
    from flame.core.model.threads.call_rows import FailedCalls
    from flame.core.model.threads.events import ThreadEvents

OPEN = np.int64(np.iinfo(np.int64).max)
"""End of a range that was still open when the capture stopped."""


@dataclass(frozen=True, eq=False)
class RawActivities:
    """Hold GPU work. ``correlation`` <= 0: none. ``graph_node`` -1: not of a graph node."""

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
class RawCalls:
    """Hold CUDA API calls. ``chain_only`` rows repeat another row's call to carry its stacks."""

    start: I8
    end: I8
    thread: I4
    correlation: I8
    frame: I4
    python: I4
    native: I4
    chain_only: Bool


@dataclass(frozen=True, eq=False)
class RawRanges:
    """Hold NVTX ranges, by the thread that opened them. ``end`` may be `OPEN`."""

    start: I8
    end: I8
    thread: I4
    frame: I4

    def take(self, rows: I8) -> RawRanges:
        """Take the ranges ``rows``."""
        return RawRanges(self.start[rows], self.end[rows], self.thread[rows], self.frame[rows])


@dataclass(frozen=True, eq=False)
class RawGraphNodes:
    """Hold creations of CUDA graph nodes. ``original`` -1: made by capture, else cloned from it."""

    process: I4
    node: I8
    original: I8
    start: I8
    thread: I4


@dataclass(frozen=True, eq=False)
class RawPythonCalls:
    """Hold Python function calls, by the thread that ran them; exact where callers are known.

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
class RawGpuRanges:
    """Hold ranges on a GPU's own time line, for work whose launch was not recorded."""

    start: I8
    end: I8
    device: I4
    stream: I4
    frame: I4


@dataclass(frozen=True, eq=False)
class RawOperators:
    """Hold what is known of the `RawRanges` that are operators of a framework, row by row.

    ``python``: the Python stack recorded with the operator, 0 for none. ``forward``: the row of the
    forward operator that made this operator of the backward pass, -1 for none.
    """

    python: I4
    forward: I8


@dataclass(frozen=True, eq=False)
class RecordedOrigins:
    """Hold thread (-1 unknown) and stacks of each row of a table, as the program saw them."""

    thread: I4
    python: I4
    nvtx: I4


@dataclass(frozen=True, eq=False)
class RecordedPaths:
    """Hold the ranges that the program itself saw open, which times alone cannot tell.

    ``calls`` i4: the path of ranges of every row of `RawCalls`, None: nesting by time decides.
    ``activities`` are of their launches, for those whose launch was not recorded. ``nodes`` are of
    the making of graph nodes, ``memory`` of the calls of all events of memory, None: these are
    looked up.
    """

    calls: I4 | None
    activities: RecordedOrigins
    nodes: RecordedOrigins
    memory: RecordedOrigins | None = None


@dataclass(frozen=True, eq=False)
class RawPcSamples:
    """Hold PC samples: ``samples`` at ``offset`` of ``functions[function]``, a row per reason.

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


class TableBuilder(Generic[_Table]):
    """Collect chunks of one table's columns as they are decoded; ``expected`` is about how many.

    Memory for these is set aside at the first chunk, and taken as it is filled.
    """

    def __init__(self, table: type[_Table], expected: int = 0) -> None:
        self._table = table
        self._names = [column.name for column in fields(cast("Any", table))]
        self._expected = expected
        self._columns: dict[str, Column] = {}
        self._size = 0

    def add(self, **columns: Column) -> None:
        """Append one chunk; all columns of the table, of one length."""
        begin, end = self._size, self._size + len(columns[self._names[0]])
        self._make_room(end)
        for name, column in self._columns.items():
            column[begin:end] = columns[name]
        self._size = end

    def _make_room(self, size: int) -> None:
        if size <= self._room:
            return
        room = max(size, self._expected if self._room == 0 else 2 * self._room)
        for name in self._names:
            column: Column = np.empty(room, _DTYPES.get(name, np.int32))
            if self._size:
                column[: self._size] = self._columns[name][: self._size]
            self._columns[name] = column

    @property
    def _room(self) -> int:
        return len(self._columns[self._names[0]]) if self._columns else 0

    def build(self) -> _Table:
        """Build the table of all chunks; what is added then begins another."""
        self._make_room(max(self._size, 1))
        built = {name: column[: self._size] for name, column in self._columns.items()}
        self._columns, self._size = {}, 0
        return self._table(**built)


@dataclass
class RawTrace:
    """Hold what a reader decodes. ``threads`` index ``processes``; all index columns are dense.

    ``last_time`` is the latest time in the file, in rows that are not kept as well: ranges without
    an end are open until then. ``launches_builder`` tells how ``activities`` were launched, row by
    row, where the format says so. ``overheads``, ``collectives``, ``allocator`` and ``memory``, of
    which the last is what was given out and back, are None where it does not tell of any.
    ``failures_builder`` reads which ``calls`` failed, where that was recorded, ``events_builder``
    what threads recorded besides ranges that nest, where they did, ``nccl_builder`` what NCCL tells
    of its calls. ``side_tables`` read what else the file has.
    """

    activities: RawActivities
    calls: RawCalls
    ranges: RawRanges
    nodes: RawGraphNodes
    frames: FrameBuilder
    stacks: StackBuilder
    processes: tuple[Process, ...]
    threads: tuple[Thread, ...]
    devices: tuple[Device, ...]
    meta: Meta
    last_time: int
    warnings: list[str] = field(default_factory=list)
    functions: RawPythonCalls = field(default_factory=lambda: TableBuilder(RawPythonCalls).build())
    gpu_ranges: RawGpuRanges = field(default_factory=lambda: TableBuilder(RawGpuRanges).build())
    operators: RawOperators | None = None
    steps: ProfilerSteps = field(default_factory=lambda: TableBuilder(ProfilerSteps).build())
    launches_builder: Callable[[], LaunchDetails] | None = None
    paths: RecordedPaths | None = None
    pc_samples: RawPcSamples | None = None
    overheads: Overheads | None = None
    failures_builder: Callable[[], FailedCalls] | None = None
    events_builder: Callable[[], ThreadEvents] | None = None
    side_tables: SideTables = field(default_factory=SideTables)
    collectives: RawCollectives | None = None
    nccl_builder: Callable[[], NcclRanges] | None = None
    allocator: AllocatorMemory | None = None
    memory: MemoryEvents | None = None


def close_open_ends(end: I8, capture_end: int) -> I8:
    """Replace `OPEN` in ``end`` (ns): intervals still open end when the capture stopped."""
    if end.max(initial=0) < OPEN:
        return end
    return np.where(end == OPEN, capture_end, end)


@dataclass(frozen=True)
class Measure:
    """Hold the values of one thing that a file of stacks measures.

    ``unit`` is as in `flame.core.model.metrics.Metric`; ``values`` i8[rows], never negative.
    """

    key: str
    title: str
    unit: str
    values: I8


@dataclass
class RawStacks:
    """Hold what a reader of resolved stacks decodes, one row per sample (or per stack).

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
