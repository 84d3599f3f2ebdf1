"""Describe a trace besides its events: processes, threads, devices, files, profiler steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np

from flame.core.columns import I4, I8
from flame.core.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from flame.core.names.phases import Phase

_MOST_NAMED = 2


@dataclass(frozen=True)
class Process:
    """Name a traced process of ``Profile.sources[source]``; ``name`` may be unknown (empty)."""

    pid: int
    name: str = ""
    source: int = 0


@dataclass(frozen=True)
class Thread:
    """Name a traced thread; ``process`` indexes ``Profile.processes``."""

    process: int
    tid: int
    name: str = ""


def process_of_threads(threads: Sequence[Thread]) -> I8:
    """Look up the process of each thread, i8[threads + 1]; -1 of the last, who is not known."""
    return np.array([*(thread.process for thread in threads), -1], np.int64)


@dataclass(frozen=True)
class DeviceFacts:
    """Say what a GPU is and can do; None, or empty, where that was not recorded.

    ``memory`` is in bytes, ``bandwidth`` that of it in bytes per second, by the device's own
    account; ``capability`` is that of CUDA (``9.0``), ``clock`` the highest of the SMs, Hz.
    """

    chip: str = ""
    sms: int | None = None
    memory: int | None = None
    bandwidth: int | None = None
    capability: str = ""
    clock: int | None = None


@dataclass(frozen=True)
class Device:
    """Name a GPU. ``id`` is its number in the machine where known, else its CUDA ordinal.

    ``source`` indexes ``Profile.sources``: files may be of different machines. Devices with equal
    ``uuid`` are one GPU, or one MIG instance; empty where it was not recorded. ``further`` are the
    other files whose processes used it; ``id`` is that of the first.
    """

    id: int
    name: str = ""
    source: int = 0
    facts: DeviceFacts = DeviceFacts()
    uuid: str = ""
    further: tuple[int, ...] = ()

    @property
    def sources(self) -> tuple[int, ...]:
        """All files whose processes used it."""
        return (self.source, *self.further)


@dataclass(frozen=True)
class Share:
    """Hold a part of the GPU time."""

    ns: int
    percent: float


@dataclass(frozen=True, eq=False)
class ProfilerSteps:
    """Hold when the program was in which profiler step (``ProfilerStep#12``), by process.

    ``thread`` called `profiler.step()`; -1 is unknown.
    """

    number: I8
    process: I4
    start: I8
    end: I8
    thread: I4

    def __len__(self) -> int:
        return len(self.number)


@dataclass(frozen=True, eq=False)
class Overheads:
    """Hold when the profiler held the program up, by its own account, in no order.

    ``name`` i4[n] is a place in ``names``; ``process`` and ``thread`` i4[n] are where, -1 unknown;
    ``start`` and ``end`` (exclusive) i8[n] are in ns.
    """

    names: tuple[str, ...]
    name: I4
    process: I4
    thread: I4
    start: I8
    end: I8

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True, eq=False)
class NamedPhases:
    """Hold phases: ``rules`` that a user has named, in their order, the first that fits counts.

    Or those that names of ranges tell: ``told`` i4[frames] is the number of that of each range, -1
    of none, and the innermost one counts. ``frames`` i4[phases + 1] are those that stand for them,
    the last one for what is of none.
    """

    rules: tuple[Phase, ...]
    frames: I4
    told: I4 | None = None


@dataclass(frozen=True, eq=False)
class AllocatorMemory:
    """Hold how much a framework's allocator had given out of each GPU's memory, in order of time.

    ``time`` i8[n] is in ns on the trace's clock, ``device`` i4[n] indexes ``Profile.devices`` (-1
    unknown), ``bytes`` i8[n] is what was in use from then on.
    """

    time: I8
    device: I4
    bytes: I8

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True)
class Source:
    """Describe a file that a profile was read from; ``label`` names its group (``rank 3``)."""

    label: str
    meta: Meta


def file_labels(item: Device | Process, sources: Sequence[Source]) -> str:
    """Name the files that ``item`` is of, several of a GPU: ``rank 0, rank 1 and 2 more``."""
    numbers = item.sources if isinstance(item, Device) else (item.source,)
    labels = [sources[number].label for number in numbers]
    named, more = labels[:_MOST_NAMED], len(labels) - _MOST_NAMED
    return ", ".join(named) + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True)
class GraphNodes:
    """Count work replayed from CUDA graph nodes; ``captured`` shows the ranges of its capture."""

    activities: int = 0
    captured: int = 0


@dataclass(frozen=True)
class Meta:
    """Describe the capture besides its events. Never holds environment variables.

    ``origin`` is the Unix time at which the trace's clock is 0, ns; None where that is not known.
    ``rank`` is the process's number in a distributed job of so many ``ranks``. ``label`` is what
    the trace calls itself among others. Traces with equal ``clock`` are of one recording: their
    times compare, however far apart they are; empty where nothing says so. ``host`` is the name of
    the machine. ``versions`` are of what the program ran on (``driver``, ``CUDA``, ``NCCL``).
    ``counters`` are the recorder's of its own doings, by name; empty where it kept none.
    """

    path: str = ""
    format: str = ""
    origin: int | None = None
    rank: int | None = None
    ranks: int | None = None
    label: str = ""
    clock: str = ""
    host: str = ""
    producer: str = ""
    schema_version: str = ""
    synthetic: bool = False
    options: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
