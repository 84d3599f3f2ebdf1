"""Read launch geometry of kernels and sizes of copies, once somebody asks for them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from flame.core.columns import I8, Bool, Column
from flame.core.model.frames import Kind
from flame.core.model.launches import UNKNOWN, Dim, LaunchConfig, LaunchDetails
from flame.core.readers.nsys.context import TIME_LIMIT
from flame.core.readers.nsys.gpu import TABLES
from flame.core.readers.shared.cupti import cluster_of, memory_kind
from flame.core.readers.sqlite.numbering import KeyColumns, RowNumbers
from flame.core.readers.sqlite.source import NUMBER, TableKey, TableQuery, TableSource

# In the order of the fields of `LaunchConfig`; only the clusters came later than 2020 (3.23.3).
_GEOMETRY = (
    *("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"),
    *("clusterX", "clusterY", "clusterZ", "registersPerThread"),
    *("staticSharedMemory", "dynamicSharedMemory", "sharedMemoryExecuted", "localMemoryPerThread"),
)
_SIZE = "bytes"
_MEMORY = {Kind.MEMCPY: ("srcKind", "dstKind"), Kind.MEMSET: ("memKind",)}
_DESCRIBED_BY = {Kind.KERNEL: _GEOMETRY, **_MEMORY}
_SANE = 1 << 40


def read_launches(source: TableSource, starts: I8) -> LaunchDetails | None:
    """Read how the activities were launched that `gpu.read_activities` has read.

    None if it is not the same any more: ``starts`` i8[n] are the activities' starts.
    """
    configs: list[LaunchConfig] = []
    config, size = np.full(len(starts), UNKNOWN, np.int32), np.full(len(starts), UNKNOWN)
    done = 0
    for table, kind in TABLES.items():
        numbers = RowNumbers(max(len(_DESCRIBED_BY.get(kind, ())), 1))
        config_of = KeyColumns(numbers, _describe(configs, kind))
        for chunk in source.chunks(_query(table, kind, numbers)):
            rows = slice(done, done + len(chunk["start"]))
            if not have_same_starts(chunk["start"], starts[rows]):
                return None
            if kind in _DESCRIBED_BY:
                (config[rows],) = config_of.of(chunk[NUMBER])
            if kind in _MEMORY:
                size[rows] = np.where(chunk[_SIZE] < 0, UNKNOWN, chunk[_SIZE])
            done = rows.stop
    return LaunchDetails(config, size, tuple(configs)) if done == len(starts) else None


def _query(table: str, kind: Kind, numbers: RowNumbers) -> TableQuery:
    if kind not in _DESCRIBED_BY:
        return TableQuery(table, ["start"])
    names = ["start", _SIZE] if kind in _MEMORY else ["start"]
    return TableQuery(table, names, TableKey(_DESCRIBED_BY[kind], numbers))


def _describe(configs: list[LaunchConfig], kind: Kind) -> Callable[[I8], list[Column]]:
    """Make what numbers the configurations of ``kind`` in ``configs``, which it adds."""

    def describe(keys: I8) -> list[Column]:
        found = np.empty(len(keys), np.int32)
        for at in np.lexsort(keys.T[::-1]).tolist():
            row = keys[at].tolist()
            one = _config(*map(_sane, row)) if kind == Kind.KERNEL else _memory(*row)
            found[at] = _number(configs, one)
        return [found]

    return describe


def have_same_starts(recorded: I8, known: I8) -> bool:
    """Return whether these are starts of the same rows; where none was recorded, any will do."""
    if len(recorded) != len(known):
        return False
    if np.array_equal(recorded, known):
        return True
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
