"""Declare what the head of a kept profile says, besides its columns."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from flame.core.model.frames import Frame
from flame.core.model.launches import LaunchConfig
from flame.core.model.meta import Device, GraphNodes, Meta, Process, Thread
from flame.core.operators.peaks import DevicePeak
from flame.core.reopening.trace_identity import TraceIdentity

_Amount = Annotated[int, msgspec.Meta(ge=0)]

FAR = 1 << 61
"""No time, ns, is as far from the origin: differences and sums of two fit 64 bits."""

_Time = Annotated[int, msgspec.Meta(gt=-FAR, lt=FAR)]

Builder = Literal[
    "host",
    "launches",
    "ranges",
    "functions",
    "calls",
    "callrows",
    "failures",
    "events",
    "overheads",
    "collectives",
    "allocator",
    "memory",
    "spans",
    "nested",
    "captures",
    "os_calls",
    "gpu_metrics",
    "device_memory",
]
"""What a profile can make of its trace when it is asked for."""

SIDE_TABLES: tuple[Builder, ...] = ("os_calls", "gpu_metrics", "device_memory")
"""Those of `SideTables`."""

BUILDER_FIELDS: dict[Builder, str] = {
    "host": "host_builder",
    "launches": "launches_builder",
    "ranges": "ranges_builder",
    "functions": "functions_builder",
    "calls": "calls_builder",
    "callrows": "callrows_builder",
    "failures": "failures_builder",
    "events": "events_builder",
    "overheads": "overheads_builder",
    "collectives": "collectives_builder",
    "allocator": "allocator_builder",
    "memory": "memory_builder",
    "spans": "spans_finder",
    "nested": "nested_finder",
    "captures": "captures_builder",
    **{name: f"side_tables.{name}" for name in SIDE_TABLES},
}
"""The fields of `Profile` that make it."""

STACK_COLUMNS = ("parent", "frame", "depth")
STEP_COLUMNS = {"number": "i8", "process": "i4", "start": "i8", "end": "i8", "thread": "i4"}
WORK_COLUMNS = {"rows": "i8", "operator": "i4", "flops": "i8", "bytes": "i8", "counts": "i8"}
ITERATION_COLUMNS = {
    **STEP_COLUMNS,
    "frame": "i4",
    "frames": "i8",
}
GROUPING_COLUMNS = (
    "process",
    "thread",
    "device",
    "stream_ids",
    "stream",
    "shapes",
    "rank",
    "category",
)


class About(msgspec.Struct, frozen=True, array_like=True):
    """Say of what, and by what, a profile was kept; ``options`` are those that count, as text."""

    trace: TraceIdentity
    options: tuple[tuple[str, str], ...]
    flame: str


class KeptWork(msgspec.Struct, frozen=True, array_like=True):
    """Say at which peaks, by device, the kept work was added up; ``memory_known`` as there."""

    peaks: tuple[DevicePeak | None, ...]
    memory_known: bool


class ProfileHead(msgspec.Struct, frozen=True):
    """Hold all of a profile that is no column.

    ``rest`` is the frame of `Grouping`, ``busy`` are the
    devices that have columns for when they were. ``work`` and ``configs`` are None where the work
    of operators, and launches, have no columns.
    """

    frames: list[Frame]
    examples: dict[int, tuple[str, ...]]
    processes: tuple[Process, ...]
    threads: tuple[Thread, ...]
    devices: tuple[Device, ...]
    rest: _Amount
    meta: Meta
    begin: _Time
    end: _Time
    graph_nodes: GraphNodes
    warnings: tuple[str, ...]
    builders: tuple[Builder, ...]
    metrics: tuple[str, ...]
    busy: tuple[int, ...]
    iterations: Literal["profiler", "ranges", "none"]
    has_steps: bool
    work: KeptWork | None
    configs: tuple[LaunchConfig, ...] | None
