"""Read an Nsight Systems SQLite export into a `RawTrace`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from flame.core.compiled.library import compiled
from flame.core.model.allocator.memory_events import MemoryEvents
from flame.core.model.raw import RawActivities, RawTrace
from flame.core.options import LoadOptions, Progress
from flame.core.readers.nsys import (
    api,
    gpu,
    metadata,
    nvtx,
    nvtx_events,
    overheads,
)
from flame.core.readers.nsys.context import NsysContext
from flame.core.readers.nsys.nccl import nccl_reader
from flame.core.readers.nsys.nvtx_frames import TABLE as NVTX_TABLE
from flame.core.readers.nsys.side_keys import known_keys
from flame.core.readers.nsys.side_tables import Later, read_memory_events, side_tables
from flame.core.readers.sqlite.source import TableSource

if TYPE_CHECKING:
    from flame.core.readers.nsys.geometry import LaunchNumbers

TABLES = (*gpu.TABLES, api.TABLE, NVTX_TABLE, "StringIds", "META_DATA_EXPORT", "EXPORT_META_DATA")

_WEIGHTS = {**dict.fromkeys(gpu.TABLES, 4), api.TABLE: 3, NVTX_TABLE: 10}
"""How long a row takes, as against the others: measured with ten million kernels."""

_BYTES = {**dict.fromkeys(gpu.TABLES, 140), api.TABLE: 35, NVTX_TABLE: 26}
"""Memory per row that a load takes at most, attribution included; by numpy alone 2.2 times that."""
_BASE = 80_000_000


def is_export(source: TableSource) -> bool:
    """Return whether the file has any table that only Nsight Systems exports have."""
    return any(source.columns(table) for table in TABLES)


def memory_needed(source: TableSource) -> int:
    """Estimate how many bytes a load takes in all; more where many rows have been deleted."""
    rows = sum(source.size(table) * size for table, size in _BYTES.items())
    return _BASE + (rows if compiled() else rows * 22 // 10)


def read_tables(
    source: TableSource, path: str, options: LoadOptions, progress: Progress, later: Later
) -> RawTrace:
    """Decode all tables flame knows; ``later`` those that are to be read when they are asked for.

    Raises what the source raises on damage.
    """
    context = NsysContext(source, options, progress)
    context.expect_rows_of(_WEIGHTS)
    launches = _launch_numbers() if options.launches else None
    activities = gpu.read_activities(context, launches)
    nodes = gpu.read_nodes(context)
    calls, failed = api.read_calls(context)
    ranges, events = nvtx.read_ranges(context)
    allocated = read_memory_events(context)
    devices, device_of = metadata.read_devices(context)
    keys = known_keys(context, metadata.placed_gpus(context, devices), device_of)
    nccl = nccl_reader(context, keys)
    return RawTrace(
        _number_devices(activities, device_of),
        calls,
        ranges,
        nodes,
        context.frames,
        context.stacks,
        metadata.read_processes(context),
        metadata.read_threads(context),
        devices,
        metadata.read_meta(context, path),
        context.last_time,
        [*context.warnings, *context.time_warnings(), *metadata.metric_warnings(context)],
        overheads=overheads.read_overheads(context),
        failures_builder=failed.builder() if failed is not None else None,
        events_builder=nvtx_events.events_builder(events, context, path) if events else None,
        side_tables=side_tables(source, keys, later),
        nccl_builder=later(nccl) if nccl else None,
        memory=_number_places(allocated, device_of) if allocated else None,
        launches_builder=launches.build if launches else None,
    )


def _launch_numbers() -> LaunchNumbers:
    from flame.core.readers.nsys.geometry import LaunchNumbers

    return LaunchNumbers()


def _number_places(events: MemoryEvents, device_of: list[int]) -> MemoryEvents:
    index = [*device_of, -1]
    places = tuple(one._replace(device=index[one.device]) for one in events.places)
    reserved = events.reserved
    if reserved is not None:
        reserved = replace(reserved, device=np.array(index, np.int32)[reserved.device])
    return replace(events, places=places, reserved=reserved)


def _number_devices(activities: RawActivities, device_of: list[int]) -> RawActivities:
    index = np.array([*device_of, -1], np.int32)
    return replace(activities, device=index[activities.device])
