"""Read what an export has beside GPU work, ranges and API calls, once somebody asks for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

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
from flame.core.model.side_tables.gpu_metrics import NAMELESS, Counter, GpuMetrics
from flame.core.model.side_tables.os_calls import OsCalls, OsThread
from flame.core.model.side_tables.tables import SideTables
from flame.core.readers.nsys.context import NsysContext, pid_of, process_keys, tid_of
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

OS_CALLS, METRICS, METRIC_NAMES = "OSRT_API", "GPU_METRICS", "TARGET_INFO_GPU_METRICS"
_OS_COLUMNS = ("start", "end", "globalTid", "nameId", "eventClass")
_CALL = 27  # ENUM_NSYS_EVENT_CLASS
_STRINGS_AT_ONCE = 500
_MOST = 1 << 61
"""Values beyond are damage: the difference of two fits 63 bits."""

_GPU = 0xFF
"""Bits of a type of event that are the number of the GPU."""

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

_BYTES = {OS_CALLS: 125, METRICS: 80, MEMORY: 350}
"""Memory per row that reading takes at most: measured with a million rows, the last estimated."""

T = TypeVar("T")
Read = Callable[[TableSource], T]


class RowBytes(NamedTuple):
    """Say how much memory it takes to read a table: ``each`` row so many bytes."""

    table: str
    each: int


class Later(Protocol):
    """Makes of what reads tables of a file what opens that again, and reads them.

    With ``rows`` that refuses a table that the memory has no room for.
    """

    def __call__(self, read: Read[Any], rows: RowBytes | None = None, /) -> Callable[[], Any]: ...


def side_tables(source: TableSource, keys: KnownKeys, later: Later) -> SideTables:
    """Tell how to read the tables that ``source`` has."""
    reads: dict[str, Callable[[TableSource, KnownKeys], Any]] = {
        OS_CALLS: read_os_calls,
        METRICS: read_gpu_metrics,
        MEMORY: read_memory,
    }
    return SideTables(
        *(
            later(partial(_read, read, keys), RowBytes(table, _BYTES[table]))
            if source.columns(table)
            else None
            for table, read in reads.items()
        )
    )


def _read(read: Callable[[TableSource, KnownKeys], T], keys: KnownKeys, source: TableSource) -> T:
    return read(source, keys)


def read_os_calls(source: TableSource, keys: KnownKeys) -> OsCalls:
    """Read the calls of the operating system's runtime, with those of threads that did no more."""
    columns = read_columns(source, OS_CALLS, _OS_COLUMNS)
    is_call = np.isin(columns[-1], (_CALL, NULL))  # others say when tracing began and ended
    start, end, owner, named = (column[is_call] for column in columns[:-1])
    sane = are_times(start) & are_times(end) & (start <= end)
    owners, thread = _distinct(owner[sane])
    names, name = _distinct(named[sane])
    texts = read_texts(source, names)
    return OsCalls(
        tuple(texts.get(key, "") or "[no name]" for key in names),
        tuple(_thread(keys, key) for key in owners),
        name,
        thread,
        start[sane],
        end[sane],
        int(len(sane) - sane.sum()),
    )


def _thread(keys: KnownKeys, key: int) -> OsThread:
    if key == NULL:
        return OsThread(0, NONE, NONE, NONE, NONE)
    process = int(process_keys(np.array([key]))[0])
    places = keys.processes.get(process, NONE), keys.threads.get(key, NONE)
    return OsThread(0, *places, pid_of(key), tid_of(key))


def read_gpu_metrics(source: TableSource, keys: KnownKeys) -> GpuMetrics:
    """Read the samples of counters; those of GPUs on which nothing ran too."""
    names = {
        (kind, metric): name
        for kind, metric, name in source.rows(METRIC_NAMES, ["typeId", "metricId", "metricName"])
        if isinstance(name, str)
    }
    time, kind, metric, value = read_columns(
        source, METRICS, ("timestamp", "typeId", "metricId", "value")
    )
    sane = are_times(time) & (kind != NULL) & (value > -_MOST) & (value < _MOST)
    first, counter = numbered([kind[sane], metric[sane]])
    counters = []
    for one, number in zip(kind[sane][first].tolist(), metric[sane][first].tolist(), strict=True):
        gpu = one & _GPU
        name = names.get((one, number), "") or f"{NAMELESS}{number}]"
        counters.append(Counter(0, keys.gpus.get(gpu, NONE), gpu, name))
    left_out = int(len(sane) - sane.sum())
    return GpuMetrics(tuple(counters), counter, time[sane], value[sane], left_out)


def _distinct(keys: I8) -> tuple[list[int], I4]:
    """(values, place of each)."""
    first, place = numbered([keys])
    return keys[first].tolist(), place


def read_texts(source: TableSource, ids: Sequence[int]) -> dict[int, str]:
    """Read the strings with these ids; those that are not there are left out."""
    found: dict[int, str] = {}
    if "id" not in source.columns("StringIds"):
        return found
    for first in range(0, len(ids), _STRINGS_AT_ONCE):
        wanted = ", ".join(map(str, ids[first : first + _STRINGS_AT_ONCE]))
        rows = source.rows("StringIds", ["id", "value"], f"WHERE id IN ({wanted})")
        found |= {key: text for key, text in rows if isinstance(key, int) and isinstance(text, str)}
    return found


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
