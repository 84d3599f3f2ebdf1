"""Hold how activities were launched, what copies and collectives move, and what ran before when."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import prod
from typing import NamedTuple

import numpy as np

from flame.core.columns import I4, I8, order_by, places_on_lanes, sum_by, unique
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import NONE, Activities

Dim = tuple[int, int, int]

PAGEABLE, PINNED, DEVICE = "pageable", "pinned", "device"
"""Kinds of memory that matter most to a copy: what the host may move, may not, and the GPU's."""


@dataclass(frozen=True)
class LaunchConfig:
    """Describe what a kernel was launched with, or what memory was copied; None is unknown.

    ``grid`` is in blocks (or clusters' blocks), ``block`` in threads, ``registers`` per thread,
    shared memory in bytes per block (``shared_executed``: what the driver set aside; ``shared``:
    static and dynamic together, where only that is known), ``local`` in bytes per thread.
    ``cluster`` is in blocks, None without clusters. ``source`` and ``target`` say what kind of
    memory a copy reads and a copy or set writes: `PAGEABLE`, `PINNED`, `DEVICE` and others.
    """

    grid: Dim | None = None
    block: Dim | None = None
    cluster: Dim | None = None
    registers: int | None = None
    static_shared: int | None = None
    dynamic_shared: int | None = None
    shared_executed: int | None = None
    local: int | None = None
    shared: int | None = None
    source: str | None = None
    target: str | None = None

    @property
    def is_of_memory(self) -> bool:
        """Whether it is of a copy or set."""
        return self.source is not None or self.target is not None

    @property
    def blocks(self) -> int | None:
        """Blocks of the grid."""
        return prod(self.grid) if self.grid else None

    @property
    def threads(self) -> int | None:
        """Threads of one block."""
        return prod(self.block) if self.block else None


UNKNOWN = NONE
"""Nothing recorded in ``LaunchDetails.config``; no copy or set, or nothing, in its ``bytes``."""


@dataclass(frozen=True, eq=False)
class LaunchDetails:
    """Hold how GPU activities were launched, row by row as in ``Profile.activities``.

    ``config`` i4[n] indexes ``configs``, ``bytes`` i8[n] is what a copy or set moved; both may be
    `UNKNOWN`. 12 bytes per activity: kernels and copies have few configurations.
    """

    config: I4
    bytes: I8
    configs: tuple[LaunchConfig, ...]

    def __len__(self) -> int:
        return len(self.config)

    def builder(self) -> Callable[[], LaunchDetails]:
        """Make the ``launches_builder`` of a profile whose launch details are at hand."""
        return partial(_same, self)


def launches_at_hand(builder: Callable[[], LaunchDetails] | None) -> LaunchDetails | None:
    """Return what `LaunchDetails.builder` was made of; None where the file would be read."""
    return builder() if isinstance(builder, partial) and builder.func is _same else None


def _same(launches: LaunchDetails) -> LaunchDetails:
    return launches


class CaptureTimes(NamedTuple):
    """Say where the graph node of each activity was captured: ``thread`` i4[n], -1: nowhere known.

    ``time`` i8[n] is in ns.
    """

    thread: I4
    time: I8


class RecordedCollective(NamedTuple):
    """Describe a collective in the words of the trace; empty, or None, is not known.

    ``sent`` and ``received`` are what a rank gives and gets, in elements of ``dtype``. ``ranks`` is
    the size of its group, ``group`` the group's name, ``about`` what it is for, and ``members`` are
    the ranks in it: ``[0, 1, 2, 3]``. ``reduction`` is what is done with the elements (``sum``);
    ``root``, ``peer`` and ``rank``, this process's own, are numbers in the group.
    """

    name: str
    dtype: str = ""
    sent: int | None = None
    received: int | None = None
    ranks: int | None = None
    group: str = ""
    about: str = ""
    members: str = ""
    reduction: str = ""
    root: int | None = None
    peer: int | None = None
    rank: int | None = None


@dataclass(frozen=True, eq=False)
class Collectives:
    """Hold the collectives of the activities that the trace tells them of.

    ``row`` i8[n] are rows of `Profile.activities`, which rise. ``kind`` i4[n] is a place in
    ``kinds``. ``sequence`` i8[n] is the number of the collective in its group, -1 unknown: equal on
    all ranks. ``warnings`` say what the trace has of collectives and does not tell.
    """

    row: I8
    kind: I4
    sequence: I8
    kinds: tuple[RecordedCollective, ...]
    warnings: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True, eq=False)
class CollectiveCalls:
    """Hold when threads were in calls of collectives, ns; other columns as in `Collectives`."""

    thread: I4
    start: I8
    end: I8
    kind: I4
    sequence: I8


class RawCollectives(NamedTuple):
    """Hold collectives as recorded: with activities, and with the calls that launched some."""

    told: Collectives
    calls: CollectiveCalls


class NcclCall(NamedTuple):
    """Say what a call of NCCL's function ``name`` does, as its payload tells; None is not known.

    ``bytes`` is the size of one message, ``communicator`` the hash that all its ranks share.
    ``reduction`` is empty, ``root`` and ``peer`` are None where the function has none.
    """

    name: str
    communicator: int | None = None
    bytes: int | None = None
    reduction: str = ""
    root: int | None = None
    peer: int | None = None


GROUP_START, GROUP_END = -1, -2
"""In `NcclRanges.call`: what begins and ends a group of calls, which the latter launches."""


@dataclass(frozen=True, eq=False)
class NcclRanges:
    """Hold when threads were in functions of NCCL that launch, or group what does; ns.

    ``call`` i4[n] is a place in ``calls``, `GROUP_START` or `GROUP_END`. ``sizes`` are the ranks of
    communicators, ``ranks`` says which of them each (process, communicator) is.
    """

    thread: I4
    start: I8
    end: I8
    call: I4
    calls: tuple[NcclCall, ...]
    sizes: Mapping[int, int]
    ranks: Mapping[tuple[int, int], int]
    warnings: tuple[str, ...]


def launch_times(table: Activities) -> I8:
    """When each row of ``table`` was launched; those without a recorded launch: when they began.

    It is not to be written to.
    """
    if table.launched.all():
        return table.launch_start
    times: I8 = np.where(table.launched, table.launch_start, table.start)
    return times


class LaunchedBefore(NamedTuple):
    """Sums of the GPU time launched, by process and time; ``process`` i4[n] and ``time`` i8[n]."""

    process: I4
    time: I8
    sums: I8

    @classmethod
    def of(cls, table: Activities) -> LaunchedBefore:
        """Sum up the durations of ``table``."""
        time = launch_times(table)
        order = order_by([time, table.process])
        sums = np.concatenate([[0], np.cumsum(table.duration[order])])
        return cls(table.process[order], time[order], sums)

    @classmethod
    def at(cls, table: Activities, process: I4, times: I8) -> LaunchedBefore:
        """Sum up the durations of ``table`` until ``times`` of each ``process``, and none between.

        Of few times that takes a third of `of`, as nothing but these is to be ordered.
        """
        order = order_by([times, process])
        process, times = process[order], times[order]
        place = places_on_lanes(process, times, table.process, launch_times(table), "right")
        return cls(process, times, np.cumsum(sum_by(place, table.duration, len(times) + 1)))

    @property
    def total(self) -> int:
        """The GPU time of all processes, ns."""
        return int(self.sums[-1])

    def between(self, process: I4, low: I8, high: I8) -> I8:
        """Sum what each ``process`` launched from ``low`` until before ``high``, i8[n] in ns."""
        sums = np.zeros(len(low), np.int64)
        for one in unique(process).tolist():
            first, last = np.searchsorted(self.process, [one, one + 1]).tolist()
            own, times = np.flatnonzero(process == one), self.time[first:last]
            edges = (np.searchsorted(times, at[own]) + first for at in (high, low))
            until, since = (self.sums[edge] for edge in edges)
            sums[own] = until - since
        return sums
