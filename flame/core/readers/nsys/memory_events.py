"""Read when memory of GPUs was allocated and freed, as pairs."""

from __future__ import annotations

import numpy as np

from flame.core.columns import I4, I8, Bool
from flame.core.model.activities import NONE
from flame.core.model.side_tables.device_memory import NEVER, DeviceMemory, MemoryPlace
from flame.core.readers.nsys.side_keys import KnownKeys, are_times, numbered, read_columns
from flame.core.readers.shared.cupti import memory_kind
from flame.core.readers.sqlite.source import TableSource

TABLE = "CUDA_GPU_MEMORY_USAGE_EVENTS"
_ALLOCATE, _FREE = 0, 1  # ENUM_CUDA_DEV_MEM_EVENT_OPER
_COLUMNS = (
    *("start", "globalPid", "deviceId", "memKind", "address", "bytes", "memoryOperationType"),
)


def read_memory(source: TableSource, keys: KnownKeys) -> DeviceMemory:
    """Read allocations, each until what is next at its address: a free, or another one."""
    columns = read_columns(source, TABLE, _COLUMNS)
    time, *_, size, operation = columns
    sane = are_times(time) & (size >= 0) & np.isin(operation, (_ALLOCATE, _FREE))
    left_out = int(len(sane) - sane.sum())
    time, process, gpu, kind, address, size, operation = (column[sane] for column in columns)
    first, place = numbered([process, gpu, kind])
    rows = zip(*(column[first].tolist() for column in (process, gpu, kind)), strict=True)
    places = tuple(_place(keys, *row) for row in rows)
    _, block = numbered([process, gpu, address])
    allocates = operation == _ALLOCATE
    until, strays = _until(block, time, allocates)
    return DeviceMemory(
        places,
        place[allocates],
        time[allocates],
        until[allocates],
        size[allocates],
        np.bincount(place[strays], minlength=len(places)).astype(np.int64),
        left_out,
    )


def _place(keys: KnownKeys, process: int, gpu: int, kind: int) -> MemoryPlace:
    # ENUM_CUDA_MEM_KIND counts from 0 where CUPTI has 1; 0 is unknown there.
    name = memory_kind(kind + 1) if 0 <= kind < 1 << 31 else None
    number = gpu if 0 <= gpu < 1 << 31 else NONE
    owner, device = keys.processes.get(process, NONE), keys.devices.get((process, gpu), NONE)
    return MemoryPlace(0, owner, device, number, name or "")


def _until(block: I4, time: I8, allocates: Bool) -> tuple[I8, Bool]:
    """(when what each event allocates goes, frees of what no event before has allocated)."""
    order = np.lexsort((time, block))
    same = block[order][1:] == block[order][:-1]
    until = np.full(len(order), NEVER)
    until[order[:-1][same]] = time[order[1:][same]]
    known = np.zeros(len(order), bool)
    known[order[1:][same]] = allocates[order[:-1][same]]
    return until, ~allocates & ~known
