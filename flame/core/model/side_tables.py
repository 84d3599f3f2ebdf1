"""Hold what a trace records beside GPU work, ranges and API calls, read when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from flame.core.columns import I4, I8

NEVER = np.int64(np.iinfo(np.int64).max)
"""End of memory that is not freed while the trace is recorded."""


class OsThread(NamedTuple):
    """Name a thread that called the operating system, by its numbers there (-1: unknown).

    ``process`` and ``thread`` are places in the lists of the profile, -1 where these have it not;
    ``source`` is its file.
    """

    source: int
    process: int
    thread: int
    pid: int
    tid: int


@dataclass(frozen=True, eq=False)
class OsCalls:
    """Hold calls of the operating system's runtime, in no order.

    ``name`` i4[n] is a place in ``names``, ``thread`` i4[n] one in ``threads``; ``start`` and
    ``end`` (exclusive) i8[n] are in ns. ``left_out`` counts calls whose times make no sense.
    """

    names: tuple[str, ...]
    threads: tuple[OsThread, ...]
    name: I4
    thread: I4
    start: I8
    end: I8
    left_out: int = 0

    def __len__(self) -> int:
        return len(self.start)


class Counter(NamedTuple):
    """Name a counter of a GPU: its number in the file ``source``, and its place in the profile.

    The place is -1 where nothing ran on it.
    """

    source: int
    device: int
    gpu: int
    name: str


@dataclass(frozen=True, eq=False)
class GpuMetrics:
    """Hold samples of counters of GPUs, in no order.

    ``counter`` i4[n] is a place in ``counters``; ``time`` i8[n] is in ns, ``value`` i8[n] in the
    counter's unit, which its name tells. ``left_out`` counts samples without a sensible time.
    """

    counters: tuple[Counter, ...]
    counter: I4
    time: I8
    value: I8
    left_out: int = 0

    def __len__(self) -> int:
        return len(self.time)


class MemoryPlace(NamedTuple):
    """Name what memory of whom was allocated; ``kind`` is one of those of launches, or empty.

    ``process`` and ``device`` are places in the lists of the profile, -1 where these have it not;
    ``gpu`` is the process's own number of the GPU.
    """

    source: int
    process: int
    device: int
    gpu: int
    kind: str


@dataclass(frozen=True, eq=False)
class DeviceMemory:
    """Hold allocations of memory by the GPU's driver, in no order.

    ``place`` i4[n] is a place in ``places``; ``start`` and ``end`` i8[n] say from when to when it
    was allocated, ns, `NEVER` where it was not freed; ``size`` i8[n] is in bytes. ``strays`` i8[m]
    counts, by place, what was freed that had been allocated before recording began. ``left_out``
    counts events that make no sense.
    """

    places: tuple[MemoryPlace, ...]
    place: I4
    start: I8
    end: I8
    size: I8
    strays: I8
    left_out: int = 0

    def __len__(self) -> int:
        return len(self.start)


class SideTables(NamedTuple):
    """Say how to read each of the tables, which takes as long as it is; None where there is none.

    They raise InputError where the trace has changed.
    """

    os_calls: Callable[[], OsCalls] | None = None
    gpu_metrics: Callable[[], GpuMetrics] | None = None
    device_memory: Callable[[], DeviceMemory] | None = None
