"""Read the events of memory that the driver, or a pool of its own, gave out and took back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.columns import I4, I8, Bool
from flame.core.model.activities import NONE, repeat
from flame.core.model.allocator.memory_events import ON_DEVICE, UNTOLD, MemoryEvents
from flame.core.model.side_tables.device_memory import MemoryPlace
from flame.core.readers.nsys.context import NsysContext
from flame.core.readers.nsys.gpu import device_numbers
from flame.core.readers.nsys.side_keys import are_times, numbered, read_columns
from flame.core.readers.shared.cupti import memory_kind
from flame.core.readers.sqlite.source import NULL, TableSource

MEMORY = "CUDA_GPU_MEMORY_USAGE_EVENTS"
_COLUMNS = (
    *("start", "globalPid", "contextId", "deviceId", "memKind"),
    *("address", "bytes", "correlationId", "memoryOperationType"),
)
_ALLOCATE, _FREE = 0, 1  # ENUM_CUDA_DEV_MEM_EVENT_OPER
_MOST = 1 << 53
"""Bytes beyond are damage: sums fit 64 bits."""


class MemoryRows(NamedTuple):
    """Hold the events that make sense, in order of time; ``left_out`` counts the others.

    ``space`` i4[n] numbers what tells addresses apart, process and context; ``place`` i4[n] is one
    in ``places``: process, GPU and kind, as the table has them. All else is as in `MemoryEvents`.
    """

    time: I8
    space: I4
    place: I4
    address: I8
    size: I8
    correlation: I8
    allocates: Bool
    places: tuple[tuple[int, int, int], ...]
    left_out: int


def read_memory_rows(source: TableSource) -> MemoryRows:
    """Read the table of events of memory."""
    columns = read_columns(source, MEMORY, _COLUMNS)
    time, size, operation = columns[0], columns[6], columns[8]
    sane = are_times(time) & (size >= 0) & (size < _MOST) & np.isin(operation, (_ALLOCATE, _FREE))
    left_out = int(len(sane) - sane.sum())
    rows = np.flatnonzero(sane)
    rows = rows[np.argsort(time[rows], kind="stable")]
    time, process, context, gpu, kind, address, size, correlation, operation = (
        column[rows] for column in columns
    )
    _, space = numbered([process, context])
    first, place = numbered([process, gpu, kind])
    named = zip(*(column[first].tolist() for column in (process, gpu, kind)), strict=True)
    correlation = np.where(correlation == NULL, 0, correlation)
    allocates = operation == _ALLOCATE
    return MemoryRows(
        time, space, place, address, size, correlation, allocates, tuple(named), left_out
    )


def memory_place(process: int, device: int, gpu: int, kind: int) -> MemoryPlace:
    """Make the place of the table's ``gpu`` and ``kind``, and of the profile's other two."""
    # ENUM_CUDA_MEM_KIND counts from 0 where CUPTI has 1; 0 is unknown there.
    name = memory_kind(kind + 1) if 0 <= kind < 1 << 31 else None
    number = gpu if 0 <= gpu < 1 << 31 else NONE
    return MemoryPlace(0, process, device, number, name or "")


def read_memory_events(context: NsysContext) -> MemoryEvents | None:
    """Read what was given out and taken back; None where nothing was.

    Places have the numbers of `NsysContext.devices` for devices.
    """
    if not context.source.size(MEMORY):
        return None
    rows = read_memory_rows(context.source)
    if not len(rows.time):
        return None
    keys = np.array([key for key, _, _ in rows.places], np.int64)
    process = context.process_numbers(keys)
    named = [memory_place(NONE, NONE, gpu, kind) for _, gpu, kind in rows.places]
    gpus = [NULL if one.kind not in ON_DEVICE else one.gpu for one in named]
    device = device_numbers(context, process, np.array(gpus, np.int64))
    owners = zip(named, process.tolist(), device.tolist(), strict=True)
    return MemoryEvents(
        rows.time,
        rows.space,
        rows.place,
        rows.address,
        rows.size,
        rows.allocates,
        process[rows.place],
        repeat(np.int32(NONE), len(rows.time)),
        rows.correlation,
        repeat(np.int64(UNTOLD), len(rows.time)),
        tuple(one._replace(process=owner, device=gpu) for one, owner, gpu in owners),
        rows.left_out,
    )
