"""Merge what several traces record beside GPU work, ranges and API calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from flame.core.columns import I4, I8
from flame.core.model.side_tables.device_memory import NEVER, DeviceMemory, MemoryPlace
from flame.core.model.side_tables.gpu_metrics import GpuMetrics
from flame.core.model.side_tables.os_calls import OsCalls, OsThread
from flame.core.model.side_tables.tables import SideTables

T = TypeVar("T")


class SidePart(NamedTuple):
    """Hold the tables of a profile, and the new numbers of its processes, threads and GPUs.

    The last of each is for what is unknown (-1); ``shift`` moves its times.
    """

    tables: SideTables
    source: int
    process: I4
    thread: I4
    device: I4
    shift: int


Parts = list[tuple[SidePart, Any]]


def merge_side_tables(parts: Sequence[SidePart]) -> SideTables:
    """Tell how to read the tables of all ``parts``; None of those that no part has."""
    merges: dict[str, Callable[[Parts], Any]] = {
        "os_calls": _merge_os_calls,
        "gpu_metrics": _merge_gpu_metrics,
        "device_memory": _merge_device_memory,
    }
    found = {}
    for name, merge in merges.items():
        have = [part for part in parts if getattr(part.tables, name) is not None]
        found[name] = partial(_merged, have, name, merge) if have else None
    return SideTables(**found)


def _merged(parts: Sequence[SidePart], name: str, merge: Callable[[Parts], T]) -> T:
    return merge([(part, getattr(part.tables, name)()) for part in parts])


def _merge_os_calls(parts: Parts) -> OsCalls:
    return OsCalls(
        tuple(name for _, table in parts for name in table.names),
        tuple(_thread(part, one) for part, table in parts for one in table.threads),
        _moved((table.name, len(table.names)) for _, table in parts),
        _moved((table.thread, len(table.threads)) for _, table in parts),
        _times(parts, "start"),
        _times(parts, "end"),
        _left_out(parts),
    )


def _thread(part: SidePart, one: OsThread) -> OsThread:
    process, thread = int(part.process[one.process]), int(part.thread[one.thread])
    return one._replace(source=part.source, process=process, thread=thread)


def _merge_gpu_metrics(parts: Parts) -> GpuMetrics:
    return GpuMetrics(
        tuple(
            one._replace(source=part.source, device=int(part.device[one.device]))
            for part, table in parts
            for one in table.counters
        ),
        _moved((table.counter, len(table.counters)) for _, table in parts),
        _times(parts, "time"),
        _joined(parts, "value"),
        _left_out(parts),
    )


def _merge_device_memory(parts: Parts) -> DeviceMemory:
    return DeviceMemory(
        tuple(_place(part, one) for part, table in parts for one in table.places),
        _moved((table.place, len(table.places)) for _, table in parts),
        _times(parts, "start"),
        _times(parts, "end"),
        _joined(parts, "size"),
        _joined(parts, "strays"),
        _left_out(parts),
    )


def _place(part: SidePart, one: MemoryPlace) -> MemoryPlace:
    process, device = int(part.process[one.process]), int(part.device[one.device])
    return one._replace(source=part.source, process=process, device=device)


def _moved(columns: Iterable[tuple[I4, int]]) -> I4:
    """Concatenate places in lists of these lengths, which stand one behind the other."""

    def each() -> Iterator[I4]:
        before = 0
        for column, size in columns:
            yield column + np.int32(before)
            before += size

    return np.concatenate(list(each()))


def _times(parts: Parts, name: str) -> I8:
    columns = [(part.shift, getattr(table, name)) for part, table in parts]
    return np.concatenate([np.where(time == NEVER, NEVER, time + by) for by, time in columns])


def _joined(parts: Parts, name: str) -> I8:
    return np.concatenate([getattr(table, name) for _, table in parts])


def _left_out(parts: Parts) -> int:
    return sum(table.left_out for _, table in parts)
