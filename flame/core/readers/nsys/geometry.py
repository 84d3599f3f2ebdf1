"""Read launch geometry of kernels and sizes of copies, once somebody asks for them."""

from __future__ import annotations

import numpy as np

from flame.core.columns import I8, Bool
from flame.core.model.frames import Kind
from flame.core.model.launches import UNKNOWN, Dim, LaunchConfig, LaunchDetails
from flame.core.readers.nsys.context import TIME_LIMIT
from flame.core.readers.nsys.gpu import TABLES
from flame.core.readers.shared.cupti import cluster_of, memory_kind
from flame.core.readers.shared.row_ids import RowIds
from flame.core.readers.sqlite.source import TableQuery, TableSource

# In the order of the fields of `LaunchConfig`; only the clusters came later than 2020 (3.23.3).
_GEOMETRY = (
    *("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"),
    *("clusterX", "clusterY", "clusterZ", "registersPerThread"),
    *("staticSharedMemory", "dynamicSharedMemory", "sharedMemoryExecuted", "localMemoryPerThread"),
)
_SIZE = "bytes"
_MEMORY = {Kind.MEMCPY: ("srcKind", "dstKind"), Kind.MEMSET: ("memKind",)}
_COLUMNS = {Kind.KERNEL: _GEOMETRY, **{kind: (_SIZE, *names) for kind, names in _MEMORY.items()}}
_SANE = 1 << 40


def read_launches(source: TableSource, starts: I8) -> LaunchDetails | None:
    """Read how the activities were launched that `gpu.read_activities` has read.

    None if it is not the same any more: ``starts`` i8[n] are the activities' starts.
    """
    configs: list[LaunchConfig] = []
    numbers = RowIds(lambda *row: _number(configs, _config(*map(_sane, row))))
    memories = {kind: RowIds(lambda *row: _number(configs, _memory(*row))) for kind in _MEMORY}
    config, size = np.full(len(starts), UNKNOWN, np.int32), np.full(len(starts), UNKNOWN)
    done = 0
    for table, kind in TABLES.items():
        names = _COLUMNS.get(kind, ())
        for chunk in source.chunks(TableQuery(table, ["start", *names])):
            rows = slice(done, done + len(chunk["start"]))
            if not have_same_starts(chunk["start"], starts[rows]):
                return None
            if kind == Kind.KERNEL:
                config[rows] = numbers.look_up([chunk[name] for name in names])
            elif kind in _MEMORY:
                size[rows] = np.where(chunk[_SIZE] < 0, UNKNOWN, chunk[_SIZE])
                config[rows] = memories[kind].look_up([chunk[name] for name in _MEMORY[kind]])
            done = rows.stop
    return LaunchDetails(config, size, tuple(configs)) if done == len(starts) else None


def have_same_starts(recorded: I8, known: I8) -> bool:
    """Return whether these are starts of the same rows; where none was recorded, any will do."""
    if len(recorded) != len(known):
        return False
    absent: Bool = (recorded < -TIME_LIMIT) | (recorded > TIME_LIMIT)
    return bool((absent | (recorded == known)).all())


def _number(configs: list[LaunchConfig], config: LaunchConfig) -> int:
    """Return the number of a configuration, which is new; `UNKNOWN` if it says nothing."""
    if config == LaunchConfig():
        return UNKNOWN
    configs.append(config)
    return len(configs) - 1


def _sane(value: int) -> int | None:
    return value if 0 <= value < _SANE else None


def _memory(*kinds: int) -> LaunchConfig:
    """The memory of a copy, (source, target), or of a set, (target)."""
    # ENUM_CUDA_MEM_KIND counts from 0 where CUPTI has 1; 0 is unknown there.
    source, target = ([None, *map(_memory_kind, kinds)])[-2:]
    return LaunchConfig(source=source, target=target)


def _memory_kind(number: int) -> str | None:
    return memory_kind(number + 1)


def _config(*row: int | None) -> LaunchConfig:
    grid, block, cluster = _dim(*row[0:3]), _dim(*row[3:6]), _dim(*row[6:9])
    registers, static, dynamic, executed, local = row[9:]
    return LaunchConfig(
        grid, block, cluster_of(cluster), registers, static, dynamic, executed, local
    )


def _dim(x: int | None, y: int | None, z: int | None) -> Dim | None:
    return None if x is None or y is None or z is None else (x, y, z)
