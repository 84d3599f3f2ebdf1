"""Read launch geometry of kernels and sizes of copies, once somebody asks for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from flame.core.columns import I4, I8, Bool, Column, unique_rows
from flame.core.model.activities import repeat
from flame.core.model.frames import Kind
from flame.core.model.launches import UNKNOWN, Dim, LaunchConfig, LaunchDetails
from flame.core.readers.nsys.context import TIME_LIMIT
from flame.core.readers.nsys.gpu import TABLES
from flame.core.readers.shared.cupti import cluster_of, memory_kind
from flame.core.readers.sqlite.numbering import KeyColumns, RowNumbers
from flame.core.readers.sqlite.source import NUMBER, Chunk, TableKey, TableQuery, TableSource

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


def _columns(kind: Kind) -> tuple[Sequence[str], Sequence[str]]:
    """The columns of a table that stay as they are, and those that are numbered together."""
    return (_SIZE,) if kind in _MEMORY else (), _DESCRIBED_BY.get(kind, ())


class LaunchNumbers:
    """Numbers how activities were launched, table by table as they are read."""

    def __init__(self) -> None:
        self._configs: list[LaunchConfig] = []
        self._config: list[I4] = []
        self._size: list[I8] = []

    def names(self, kind: Kind) -> tuple[Sequence[str], Sequence[str]]:
        """List the columns of a table: those that stay as they are, and those of its key."""
        return _columns(kind)

    def take(self, kind: Kind, keys: RowNumbers) -> Callable[[Chunk], None]:
        """Make what takes each chunk of a table, whose ``keys`` end with the columns of `names`."""
        if kind not in _DESCRIBED_BY:
            return lambda chunk: self._add(np.full(len(chunk["start"]), UNKNOWN, np.int32))
        config_of = KeyColumns(keys, _describe(self._configs, kind))

        def take(chunk: Chunk) -> None:
            (config,) = config_of.of(chunk[NUMBER])
            self._add(config, chunk.get(_SIZE))

        return take

    def _add(self, config: I4, size: I8 | None = None) -> None:
        self._config.append(config)
        known = repeat(np.int64(UNKNOWN), len(config)) if size is None else size
        self._size.append(known if size is None else np.where(size < 0, UNKNOWN, size))

    def build(self) -> LaunchDetails:
        """Put together what has been taken of all tables."""
        config = np.concatenate([np.zeros(0, np.int32), *self._config])
        size = np.concatenate([np.zeros(0, np.int64), *self._size])
        return LaunchDetails(config, size, tuple(self._configs))


def read_launches(source: TableSource, starts: I8) -> LaunchDetails | None:
    """Read how the activities were launched that `gpu.read_activities` has read.

    None if it is not the same any more: ``starts`` i8[n] are the activities' starts.
    """
    numbers, done = LaunchNumbers(), 0
    for table, kind in TABLES.items():
        whole, keyed = _columns(kind)
        rows = RowNumbers(max(len(keyed), 1))
        take = numbers.take(kind, rows)
        key = TableKey(keyed, rows) if keyed else None
        for chunk in source.chunks(TableQuery(table, ["start", *whole], key)):
            size = len(chunk["start"])
            if not have_same_starts(chunk["start"], starts[done : done + size]):
                return None
            take(chunk)
            done += size
    return numbers.build() if done == len(starts) else None


def _describe(configs: list[LaunchConfig], kind: Kind) -> Callable[[I8], list[Column]]:
    """Make what numbers the configurations of ``kind`` in ``configs``, which it adds.

    It is told new keys, of which these are the last columns.
    """
    known: dict[tuple[int, ...], int] = {}

    def describe(keys: I8) -> list[Column]:
        own = keys[:, keys.shape[1] - len(_DESCRIBED_BY[kind]) :]
        first, place = unique_rows(list(own.T))
        number = np.empty(len(first), np.int32)
        for at in np.lexsort(own[first].T[::-1]).tolist():
            row = tuple(own[first[at]].tolist())
            if row not in known:
                one = _config(*map(_sane, row)) if kind == Kind.KERNEL else _memory(*row)
                known[row] = _number(configs, one)
            number[at] = known[row]
        return [number[place]]

    return describe


def have_same_starts(recorded: I8, starts: I8) -> bool:
    """Return whether these are starts of the same rows; where none was recorded, any will do."""
    if len(recorded) != len(starts):
        return False
    if np.array_equal(recorded, starts):
        return True
    absent: Bool = (recorded < -TIME_LIMIT) | (recorded > TIME_LIMIT)
    return bool((absent | (recorded == starts)).all())


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
