"""Read what an export tells of memory: what was given out and back, and how large pools were."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.columns import I4, I8, Bool, unique_rows
from flame.core.model.activities import NONE, repeat
from flame.core.model.allocator.memory_events import (
    ON_DEVICE,
    UNTOLD,
    MemoryEvents,
    ReservedSizes,
)
from flame.core.model.side_tables.device_memory import NEVER, DeviceMemory, MemoryPlace
from flame.core.readers.nsys.context import NsysContext
from flame.core.readers.nsys.gpu import device_numbers
from flame.core.readers.nsys.side_keys import KnownKeys, are_times, numbered, read_columns
from flame.core.readers.shared.cupti import memory_kind
from flame.core.readers.shared.memory_pools import (
    CREATED,
    DESTROYED,
    LOCAL,
    OF_MEMORY,
    TRIMMED,
    PoolRows,
    reserved_in_pools,
)
from flame.core.readers.sqlite.source import NULL, TableSource

MEMORY = "CUDA_GPU_MEMORY_USAGE_EVENTS"
_MEMORY_COLUMNS = (
    *("start", "globalPid", "contextId", "deviceId", "memKind"),
    *("address", "bytes", "correlationId", "memoryOperationType"),
)
_POOL_COLUMNS = ("localMemoryPoolAddress", "localMemoryPoolSize", "localMemoryPoolUtilizedSize")
POOLS = "CUDA_GPU_MEMORY_POOL_EVENTS"
_OF_POOLS = (
    *("start", "localMemoryPoolSize", "localMemoryPoolUtilizedSize", "operationType"),
    *("globalPid", "deviceId", "address"),
)
_ALLOCATE, _FREE = 0, 1  # ENUM_CUDA_DEV_MEM_EVENT_OPER
_MOST_BYTES = 1 << 53
"""Bytes beyond are damage: sums fit 64 bits."""


class MemoryRows(NamedTuple):
    """Hold the events that make sense, in order of time; ``left_out`` counts the others.

    ``space`` i4[n] numbers what tells addresses apart: process, context and GPU; ``place`` i4[n] is
    one in ``places``: process, GPU and kind, as the table has them. ``pool`` i8[n] is the address
    of the pool it is of, ``pool_size`` and ``pool_used`` i8[n] how large that is then, `NULL` where
    nothing is told. All else is as in `MemoryEvents`.
    """

    time: I8
    space: I4
    place: I4
    address: I8
    size: I8
    correlation: I8
    allocates: Bool
    pool: I8
    pool_size: I8
    pool_used: I8
    places: tuple[tuple[int, int, int], ...]
    left_out: int


def read_memory_rows(source: TableSource) -> MemoryRows:
    """Read the table of events of memory."""
    columns = read_columns(source, MEMORY, (*_MEMORY_COLUMNS, *_POOL_COLUMNS))
    time, size, operation = columns[0], columns[6], columns[8]
    sane = (
        are_times(time)
        & (size >= 0)
        & (size < _MOST_BYTES)
        & np.isin(operation, (_ALLOCATE, _FREE))
    )
    left_out = int(len(sane) - sane.sum())
    rows = np.flatnonzero(sane)
    rows = rows[np.argsort(time[rows], kind="stable")]
    time, process, context, gpu, kind, address, size, correlation, operation = (
        column[rows] for column in columns[:9]
    )
    _, space = numbered([process, context, gpu])
    first, place = numbered([process, gpu, kind])
    named = zip(*(column[first].tolist() for column in (process, gpu, kind)), strict=True)
    correlation = np.where(correlation == NULL, 0, correlation)
    allocates = operation == _ALLOCATE
    pool, pool_size, pool_used = (column[rows] for column in columns[9:])
    return MemoryRows(
        *(time, space, place, address, size, correlation, allocates),
        *(pool, pool_size, pool_used, tuple(named), left_out),
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
        reserved_sizes(context.source, rows, device[rows.place]),
    )


def reserved_sizes(source: TableSource, rows: MemoryRows, device: I4) -> ReservedSizes | None:
    """Read what pools of memory reserve, of ``rows`` on these GPUs; None where nothing is told."""
    covered = (device >= 0) & (rows.pool > 0) & _are_sizes(rows.pool_size, rows.pool_used)
    of_memory = np.flatnonzero(covered)
    if not len(of_memory):
        return None
    time, pool_size, pool_used, operation, *keys = _read_pool_rows(source)
    process, gpu = (
        np.array([place[at] for place in rows.places], np.int64)[rows.place] for at in (0, 1)
    )
    owners = (process[of_memory], gpu[of_memory], rows.pool[of_memory])
    pairs = zip(owners, keys, strict=True)
    _, pool = unique_rows([np.concatenate(pair) for pair in pairs])
    devices: I4 = np.full(int(pool.max()) + 1, NONE, np.int32)
    devices[pool[: len(of_memory)]] = device[of_memory]
    row = np.concatenate([of_memory, np.searchsorted(rows.time, time, "right") - 1])
    given = np.where(rows.allocates, rows.size, 0)[of_memory]
    told = PoolRows(
        row,
        np.concatenate([rows.time[of_memory], time]),
        pool,
        devices[pool],
        np.concatenate([rows.pool_size[of_memory], pool_size]),
        np.concatenate([rows.pool_used[of_memory], pool_used]),
        np.append(given, np.zeros(len(time), np.int64)),
        np.append(np.full(len(of_memory), OF_MEMORY), operation),
    )
    order = np.lexsort((told.time, told.row))
    return reserved_in_pools(told.take(order[told.device[order] >= 0]), covered)


def _read_pool_rows(source: TableSource) -> list[I8]:
    """Read the events of pools of a process's own that make sense, columns `_OF_POOLS`."""
    if not source.columns(POOLS):
        return [np.zeros(0, np.int64)] * len(_OF_POOLS)
    *columns, kind = read_columns(source, POOLS, (*_OF_POOLS, "poolType"))
    time, size, used, operation = columns[:4]
    sane = are_times(time) & _are_sizes(size, used) & (kind == LOCAL)
    sane &= np.isin(operation, (CREATED, DESTROYED, TRIMMED))
    return [column[sane] for column in columns]


def _are_sizes(*columns: I8) -> Bool:
    sane: Bool = np.logical_and.reduce([(one >= 0) & (one < _MOST_BYTES) for one in columns])
    return sane


def read_memory(source: TableSource, keys: KnownKeys) -> DeviceMemory:
    """Read allocations, each until what is next at its address: a free, or another one."""
    rows = read_memory_rows(source)
    places = tuple(
        memory_place(
            keys.processes.get(process, NONE), keys.devices.get((process, gpu), NONE), gpu, kind
        )
        for process, gpu, kind in rows.places
    )
    _, block = numbered([rows.space.astype(np.int64), rows.address])
    until, strays = _until(block, rows.time, rows.allocates)
    given = rows.allocates
    return DeviceMemory(
        places,
        rows.place[given],
        rows.time[given],
        until[given],
        rows.size[given],
        np.bincount(rows.place[strays], minlength=len(places)).astype(np.int64),
        rows.left_out,
    )


def _until(block: I4, time: I8, allocates: Bool) -> tuple[I8, Bool]:
    """(when what each event allocates goes, frees of what no event before has allocated)."""
    order = np.lexsort((time, block))
    same = block[order][1:] == block[order][:-1]
    until = np.full(len(order), NEVER)
    until[order[:-1][same]] = time[order[1:][same]]
    known = np.zeros(len(order), bool)
    known[order[1:][same]] = allocates[order[:-1][same]]
    return until, ~allocates & ~known
