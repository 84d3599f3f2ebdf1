"""Describe a trace besides its events: processes, threads, devices, files, profiler steps."""

from __future__ import annotations

from dataclasses import dataclass, field

from flame.core.columns import I4, I8


@dataclass(frozen=True)
class Process:
    """A traced process of ``Profile.sources[source]``; ``name`` is empty where nothing says it."""

    pid: int
    name: str = ""
    source: int = 0


@dataclass(frozen=True)
class Thread:
    """A traced thread; ``process`` indexes ``Profile.processes``."""

    process: int
    tid: int
    name: str = ""


@dataclass(frozen=True)
class Device:
    """A GPU. ``id`` is the machine's GPU number where known, else the process's CUDA ordinal.

    ``source`` indexes ``Profile.sources``: files may be of different machines.
    """

    id: int
    name: str = ""
    source: int = 0


@dataclass(frozen=True)
class Share:
    """A part of the GPU time."""

    ns: int
    percent: float


@dataclass(frozen=True, eq=False)
class ProfilerSteps:
    """Steps that the program told its profiler of (``ProfilerStep#12``): when, in which process."""

    number: I8
    process: I4
    start: I8
    end: I8

    def __len__(self) -> int:
        return len(self.number)


@dataclass(frozen=True)
class Source:
    """One of the files a profile was read from; ``label`` is the name of its group (``rank 3``)."""

    label: str
    meta: Meta


@dataclass(frozen=True)
class GraphNodes:
    """Work replayed node by node from CUDA graphs; ``captured`` shows the ranges of its capture."""

    activities: int = 0
    captured: int = 0


@dataclass(frozen=True)
class Meta:
    """What is known of the capture besides its events. Never holds environment variables.

    ``origin`` is the Unix time at which the trace's clock is 0, ns; None where that is not known.
    ``rank`` is the process's number in a distributed job. ``label`` is what the trace calls itself
    among others. Traces with equal ``clock`` are of one recording: their times compare, however far
    apart they are; empty where nothing says so.
    """

    path: str = ""
    format: str = ""
    origin: int | None = None
    rank: int | None = None
    label: str = ""
    clock: str = ""
    producer: str = ""
    schema_version: str = ""
    synthetic: bool = False
    options: dict[str, str] = field(default_factory=dict)
