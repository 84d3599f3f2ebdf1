"""Hold one row per activity as columns, and the groups of rows that differ in time alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np

from flame.core.columns import I4, I8, U1, Bool, Column, places_in, unique_rows
from flame.core.kept_results import kept
from flame.core.lazy_dataclass import dataclass
from flame.core.model.frames import Kind
from flame.core.model.stacks import StackTable

if TYPE_CHECKING:
    from flame.core.model.meta import Source
    from flame.core.model.pc_samples import Sampling

NONE = -1
"""Absent: in index columns, and in ``launch_start``/``launch_end`` of rows without a launch."""


GROUP_COLUMNS = (
    "kind",
    "process",
    "thread",
    "device",
    "stream",
    "python",
    "native",
    "launch",
    "nvtx",
    "frame",
    "stack",
)


FOUND_COLUMNS = ("own_python", "own_nvtx", "nested", "own_nested")
"""Columns that a table may lack: then they would be what `Activities` says."""

_OPTIONAL = (*FOUND_COLUMNS, "cause", "pool")

_OWN = {"python": "own_python", "nvtx": "own_nvtx", "nested": "own_nested"}


@dataclass(frozen=True, eq=False)
class Activities:
    """Hold activities in columns, one row each: work of a GPU, or ranges and calls of the host.

    | column | dtype | meaning |
    |---|---|---|
    | kind | u8 | `Kind` of the leaf; LAUNCH, NVTX or PYTHON in a host table |
    | start, duration | i8 | ns; duration is what the row is charged with, never negative |
    | process, thread, device | i4 | index into the profile's lists, -1 unknown |
    | stream | i4 | stream id, -1 unknown |
    | launch_start, launch_end | i8 | ns of the launching API call; -1 where ``launched`` is false |
    | launch_share | i8 | this row's part of the call's duration, ns |
    | idle | i8 | ns the device was empty just before ``start`` |
    | python, native, nvtx | i4 | stack ids |
    | launch | i4 | frame id of the API call, or of ``[no launch recorded]`` (-1: host range) |
    | frame | i4 | frame id of the leaf (-1 in a host table and in one of resolved stacks) |
    | stack | i4 | stack id of a resolved stack, which is all there is then |

    ``python``, ``native``, ``nvtx`` and ``stack`` are rows of ``stacks``; a host table has its own.
    ``measures`` (i8 each, by metric key) is what a file of resolved stacks has measured itself, and
    ``stalls``: PC samples.

    ``own_python``, ``own_nvtx`` and ``own_nested`` (stack ids) are what ``python``, ``nvtx`` and
    ``nested`` would be if no backward pass stood below its forward operators; None: the same.
    ``nested`` are stacks of Python frames and ranges as they were nested in time; None: the ranges
    stand below the Python frames.

    A table of idle time has the ``cause`` (frame id) of each row, one of allocations the ``pool``
    of its allocator, other tables None. One that
    ``is_cut`` holds only what filters by time and step have chosen.
    """

    kind: U1
    start: I8
    duration: I8
    process: I4
    thread: I4
    device: I4
    stream: I4
    launch_start: I8
    launch_end: I8
    launch_share: I8
    idle: I8
    python: I4
    native: I4
    launch: I4
    nvtx: I4
    frame: I4
    stack: I4
    launched: Bool
    stacks: StackTable
    measures: Mapping[str, I8] = field(default_factory=dict)
    own_python: I4 | None = None
    own_nvtx: I4 | None = None
    nested: I4 | None = None
    own_nested: I4 | None = None
    cause: I4 | None = None
    pool: I4 | None = None
    is_cut: bool = False

    def __len__(self) -> int:
        return len(self.start)

    @cached_property
    def groups(self) -> Groups:
        """Group the rows that differ in nothing but time and duration."""
        found = (name for name in _OPTIONAL if getattr(self, name) is not None)
        names = [*GROUP_COLUMNS, *found]
        first, group = unique_rows([getattr(self, name) for name in names])
        if len(first) == len(self) and np.array_equal(first, np.arange(len(self))):
            kept = {name: getattr(self, name) for name in (*names, "launched")}
        else:
            kept = {name: getattr(self, name)[first] for name in (*names, "launched")}
        return Groups(group.astype(np.int32), **kept)

    @cached_property
    def unlinked(self) -> Activities:
        """The same without forward operators above backward passes; groups keep their numbers."""
        if self.own_nvtx is None:
            return self
        table = self.with_columns(**_own_columns(self))
        table.__dict__["groups"] = self.groups.with_columns(**_own_columns(self.groups))
        return table

    def with_measures(self, more: Mapping[str, I8]) -> Activities:
        """Make a table of the same rows, in the same groups, with ``more`` of ``measures``."""
        table = object.__new__(type(self))  # all else is as lazy as it was
        measures = {**self.measures, **more}
        table.__dict__.update(self.__dict__, groups=self.groups, measures=measures)
        return table

    def with_columns(self, **columns: Any) -> Activities:
        """Make a table of the same rows with ``columns``, or ``stacks``, in place of its own."""
        return Activities(**_columns(self, Activities) | columns)


def _columns(table: Activities | Groups, of: type[Activities | Groups]) -> dict[str, Any]:
    # `replace` would make another table that is lazy.
    return {each.name: getattr(table, each.name) for each in fields(of)}


def _own_columns(table: Activities | Groups) -> dict[str, Any]:
    """The columns of ``table`` that differ without forward operators, and none to go back to."""
    return {name: getattr(table, own) for name, own in _OWN.items()} | dict.fromkeys(_OWN.values())


def off_gpu_columns(size: int) -> dict[str, Any]:
    """Make columns of `Activities` for ``size`` rows off the GPU: no stack, all else unknown."""
    none, empty = repeat(np.int32(NONE), size), repeat(np.int32(0), size)
    no_time = repeat(np.int64(0), size)
    return {
        **dict.fromkeys(("process", "thread", "device", "stream", "launch", "frame"), none),
        **dict.fromkeys(("python", "native", "nvtx", "stack"), empty),
        **dict.fromkeys(("launch_share", "idle"), no_time),
        **dict.fromkeys(("launch_start", "launch_end"), repeat(np.int64(NONE), size)),
        "launched": repeat(np.False_, size),
    }


def repeat(value: np.generic, size: int) -> Column:
    """Make a column of one value, which takes no memory and cannot be written to."""
    return np.broadcast_to(np.asarray(value), size)


@dataclass(frozen=True, eq=False)
class Groups:
    """Hold distinct activities in the columns of `Activities`; ``of_row`` i4: each row's group.

    Hundreds of times fewer than activities, so that pivots and filters run on these alone.
    """

    of_row: I4
    kind: U1
    process: I4
    thread: I4
    device: I4
    stream: I4
    python: I4
    native: I4
    launch: I4
    nvtx: I4
    frame: I4
    stack: I4
    launched: Bool
    own_python: I4 | None = None
    own_nvtx: I4 | None = None
    nested: I4 | None = None
    own_nested: I4 | None = None
    cause: I4 | None = None
    pool: I4 | None = None

    def __len__(self) -> int:
        return len(self.kind)

    def covered(self, sampling: Sampling | None) -> dict[str, Bool]:
        """Mark those with a launch, ranges, frames of Python, native ones, PC samples (``sass``).

        The last only where there is any ``sampling``.
        """
        covered = {name: getattr(self, name) > 0 for name in ("nvtx", "python", "native")}
        covered = {"launch": self.launched, **covered}
        return covered if sampling is None else {**covered, "sass": sampling.of_group >= 0}

    def with_columns(self, **columns: Any) -> Groups:
        """Make the same groups with some ``columns`` in place of others."""
        return Groups(**_columns(self, Groups) | columns)


class TableCut(NamedTuple):
    """Say what tables are cut to that are made when they are asked for.

    Idle time is cut by ``where``, filters by time and step. Memory is that of ``devices``, places
    in the profile's devices (None: of the one that holds most at its peak), from ``begin`` to
    ``end`` (exclusive, ns; None is unbounded); by metrics of one moment it is that of ``moment``,
    a name of `filters.MOMENTS` or ns, None for the metric's own.
    """

    where: tuple[Any, ...] = ()
    devices: tuple[int, ...] | None = None
    begin: int | None = None
    end: int | None = None
    moment: str | int | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the window ends before it begins."""
        return self.begin is not None and self.end is not None and self.begin >= self.end


Owner = TypeVar("Owner")


class RankSums(Protocol[Owner]):
    """Hold the sums of each rank, of a profile that has those of all together and no rows."""

    @property
    def sources(self) -> Sequence[Source]:
        """The file of each rank."""
        ...

    @property
    def gpus(self) -> Mapping[str, int]:
        """How many GPUs of each name they ran on."""
        ...

    @property
    def why_no_waits(self) -> str:
        """Why it is not known how long their collectives waited; empty where it is."""
        ...

    def split(self, profile: Owner, places: Sequence[int]) -> Owner:
        """Return the same with groups of their own for the ranks at ``places``, and no others."""
        ...


class GroupWaits(NamedTuple):
    """Hold how long the collectives of each group waited for the last rank, i8[groups] each.

    Of so many ``calls`` it is known; all their GPU time is ``waiting`` or ``transfer``, ns. Frames
    of the level ``wait`` have the ids ``waiting_frame`` and ``transfer_frame``.
    """

    calls: I8
    waiting: I8
    transfer: I8
    waiting_frame: int
    transfer_frame: int


@dataclass(frozen=True, eq=False)
class GroupTotals:
    """Hold sums per group of all that was recorded, which is more than the tables have rows for.

    ``values`` by metric and ``counts`` by table (``gpu``, ``host``) are i8[groups of the table].
    There are rows of all that started after ``since``, ns. ``ranks`` tells the same of each rank,
    where they are of several, and ``waits`` how long their collectives waited, if that is known.
    """

    values: Mapping[str, I8]
    counts: Mapping[str, I8]
    since: int
    ranks: RankSums[Any] | None = None
    waits: GroupWaits | None = None

    def of(self, metric: str, table: str) -> tuple[I8, I8]:
        """(value of ``metric``, number of activities) of each group of ``table``."""
        if metric == "wait":
            assert self.waits is not None
            return self.waits.waiting, self.waits.calls
        return self.values[metric], self.counts[table]


@dataclass(frozen=True, eq=False)
class ThreadPieces:
    """Hold intervals of threads, cut into pieces that nest; ordered by (thread, depth, start).

    They are ranges, Python functions or API calls. ``thread``, ``depth`` (0: in no other piece),
    ``frame``, ``parent`` (the piece around it, -1 without one) are i4[n]; ``start`` and ``end``
    (exclusive) i8[n], ns. Intervals without length and those of unknown threads are left out.
    Where they are ``uncut`` each is known to be all of an interval, and none of these is missing.
    """

    thread: I4
    depth: I4
    frame: I4
    start: I8
    end: I8
    parent: I4
    uncut: bool = False

    def __len__(self) -> int:
        return len(self.start)

    def where(self, chosen: Bool) -> ThreadPieces:
        """Choose pieces (bool[n]); one whose outer piece is not chosen is in none."""
        rows = np.flatnonzero(chosen)
        parent = self.parent[rows].astype(np.int64)
        place = places_in(rows, parent)
        inside = np.append(rows, NONE)[place] == parent
        return ThreadPieces(
            thread=self.thread[rows],
            depth=self.depth[rows],
            frame=self.frame[rows],
            start=self.start[rows],
            end=self.end[rows],
            parent=np.where(inside & (parent >= 0), place, NONE).astype(np.int32),
        )


class ThreadSpans(NamedTuple):
    """Hold intervals of threads as they were recorded, in any order, however they cross.

    ``thread`` and ``frame`` are i4[n]; ``start`` and ``end`` (exclusive) i8[n], ns. Intervals
    without length and those of unknown threads are left out.
    """

    thread: I4
    frame: I4
    start: I8
    end: I8


@kept
def has_times(table: Activities) -> Bool:
    """Tell which rows of ``table`` have times: all but CUDA graphs that CUPTI wrote zeros for."""
    zero = (table.kind == Kind.GRAPH) & (table.start == 0) & (table.duration == 0)
    timed: Bool = ~zero
    return timed
