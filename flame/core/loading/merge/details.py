"""Merge what no stack needs: launches, collectives, the profiler's overhead, memory in use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from flame.core.columns import I4, I8
from flame.core.lazy_dataclass import dataclass
from flame.core.loading.merge.side_tables import SidePart
from flame.core.loading.merge.threads import ThreadTables
from flame.core.model.activities import NONE, Activities, ThreadPieces, ThreadSpans
from flame.core.model.allocator.recorded import RecordedMemory
from flame.core.model.launches import (
    UNKNOWN,
    CaptureTimes,
    Collectives,
    LaunchConfig,
    LaunchDetails,
    RecordedCollective,
)
from flame.core.model.meta import AllocatorMemory, Overheads
from flame.core.model.nested import NestedStacks


@dataclass(frozen=True, eq=False)
class ProfilePart:
    """A merged profile as the new numbers of all that it has; ``shift`` moves its times.

    The last of ``frames``, ``process``, ``thread`` and ``device`` is for what is unknown (-1).
    ``scales`` are the factors of its own measures. The builders are the profile's, which has
    ``rows`` activities.
    """

    frames: I4
    process: I4
    thread: I4
    device: I4
    shift: int
    scales: Mapping[str, int]
    rows: int
    host: Callable[[], Activities]
    ranges: Callable[[], ThreadPieces] | None
    functions: Callable[[], ThreadPieces] | None
    calls: Callable[[], ThreadPieces] | None
    overheads: Callable[[], Overheads] | None
    collectives: Callable[[], Collectives] | None
    allocator: Callable[[], AllocatorMemory] | None
    memory: Callable[[], RecordedMemory] | None
    spans: Callable[[Sequence[int]], ThreadSpans] | None
    nested: Callable[[I4, I8], NestedStacks] | None
    captures: Callable[[], CaptureTimes] | None
    launches: Callable[[], LaunchDetails | None] | None
    tables: ThreadTables
    side: SidePart


def merge_launches(parts: Sequence[ProfilePart]) -> LaunchDetails:
    """Concatenate how all activities were launched; unknown where a part does not know."""
    configs: list[LaunchConfig] = []
    config, size = [], []
    for part in parts:
        known = part.launches() if part.launches else None
        if known is None:
            known = LaunchDetails(
                np.full(part.rows, UNKNOWN, np.int32), np.full(part.rows, UNKNOWN, np.int64), ()
            )
        config.append(np.where(known.config == UNKNOWN, UNKNOWN, known.config + len(configs)))
        size.append(known.bytes)
        configs += known.configs
    return LaunchDetails(
        np.concatenate(config).astype(np.int32), np.concatenate(size), tuple(configs)
    )


def merge_captures(parts: Sequence[ProfilePart]) -> CaptureTimes:
    """Concatenate where nodes of CUDA graphs were captured; nowhere known without them."""
    threads, times = [], []
    for part in parts:
        if part.captures is None:
            threads.append(np.full(part.rows, NONE, np.int32))
            times.append(np.zeros(part.rows, np.int64))
        else:
            found = part.captures()
            threads.append(part.thread[found.thread])
            times.append(found.time + part.shift)
    return CaptureTimes(np.concatenate(threads), np.concatenate(times))


def merge_overheads(parts: Sequence[ProfilePart]) -> Overheads:
    """Concatenate when profilers held the programs up."""
    names: list[str] = []
    columns = []
    for part in parts:
        if part.overheads is None:
            continue
        found = part.overheads()
        times = (found.start + part.shift, found.end + part.shift)
        who = (part.process[found.process], part.thread[found.thread])
        columns.append((found.name + np.int32(len(names)), *who, *times))
        names += found.names
    return Overheads(tuple(names), *map(np.concatenate, zip(*columns, strict=True)))


def merge_collectives(parts: Sequence[ProfilePart]) -> Collectives:
    """Concatenate which collectives activities are of."""
    kinds: list[RecordedCollective] = []
    warnings: dict[str, None] = {}
    columns, before = [], 0
    for part in parts:
        if part.collectives is not None:
            found = part.collectives()
            kind = found.kind + np.int32(len(kinds))
            columns.append((found.row + before, kind, found.sequence))
            kinds += found.kinds
            warnings |= dict.fromkeys(found.warnings)
        before += part.rows
    row, kind, sequence = map(np.concatenate, zip(*columns, strict=True))
    return Collectives(row, kind, sequence, tuple(kinds), tuple(warnings))


def merge_allocators(parts: Sequence[ProfilePart]) -> AllocatorMemory:
    """Concatenate how much memory was given out, and order it by time."""
    columns = []
    for part in parts:
        if part.allocator is not None:
            found = part.allocator()
            columns.append((found.time + part.shift, part.device[found.device], found.bytes))
    time, device, size = map(np.concatenate, zip(*columns, strict=True))
    order = np.argsort(time, kind="stable")
    return AllocatorMemory(time[order], device[order], size[order])
