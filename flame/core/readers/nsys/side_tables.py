"""Read what an export has beside GPU work, ranges and API calls, once somebody asks for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

from flame.core.columns import I4, I8
from flame.core.model.activities import NONE
from flame.core.model.side_tables.gpu_metrics import Counter, GpuMetrics
from flame.core.model.side_tables.os_calls import OsCalls, OsThread
from flame.core.model.side_tables.tables import SideTables
from flame.core.readers.nsys.context import pid_of, process_keys, tid_of
from flame.core.readers.nsys.memory import MEMORY, read_memory
from flame.core.readers.nsys.side_keys import KnownKeys, are_times, numbered, read_columns
from flame.core.readers.sqlite.source import NULL, TableSource

OS_CALLS, METRICS, METRIC_NAMES = "OSRT_API", "GPU_METRICS", "TARGET_INFO_GPU_METRICS"
_OS_COLUMNS = ("start", "end", "globalTid", "nameId", "eventClass")
_CALL = 27  # ENUM_NSYS_EVENT_CLASS
_STRINGS_AT_ONCE = 500
_MOST = 1 << 61
"""Values beyond are damage: the difference of two fits 63 bits."""

_GPU = 0xFF
"""Bits of a type of event that are the number of the GPU."""

T = TypeVar("T")
Read = Callable[[TableSource], T]
Later = Callable[[Read[Any]], Callable[[], Any]]
"""Makes of what reads tables of a file what opens that again, and reads them."""


def side_tables(source: TableSource, keys: KnownKeys, later: Later) -> SideTables:
    """Tell how to read the tables that ``source`` has."""
    reads: dict[str, Callable[[TableSource, KnownKeys], Any]] = {
        OS_CALLS: read_os_calls,
        METRICS: read_gpu_metrics,
        MEMORY: read_memory,
    }
    return SideTables(
        *(
            later(partial(_read, read, keys)) if source.columns(table) else None
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
        name = names.get((one, number), "") or f"[metric {number}]"
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
