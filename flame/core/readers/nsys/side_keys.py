"""Understand the keys of tables that are read later, when the rest of the file is not at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from flame.core.columns import I4, I8, Bool, Column, unique_rows
from flame.core.lazy_dataclass import dataclass
from flame.core.readers.nsys.context import TIME_LIMIT, NsysContext
from flame.core.readers.sqlite.source import NULL, TableQuery, TableSource

_LONGEST = 1 << 53
"""Nanoseconds from the middle of a session, 104 days: a single absurd time would stretch all."""


@dataclass(frozen=True)
class KnownKeys:
    """Hold the places in the lists of a profile of what the tables name by their own keys.

    ``devices`` by process and CUDA ordinal, ``gpus`` by number in the machine, those of which it is
    known.
    """

    processes: dict[int, int]
    threads: dict[int, int]
    devices: dict[tuple[int, int], int]
    gpus: dict[int, int]


def known_keys(
    context: NsysContext, gpus: Mapping[int, int], device_of: Sequence[int]
) -> KnownKeys:
    """Collect the keys that have been met; ``gpus`` by number, ``device_of`` by pair of keys."""
    processes = [*context.processes.keys, NULL]
    pairs = [(processes[(key >> 32) - 1], key & 0xFFFFFFFF) for key in context.devices.keys]
    return KnownKeys(
        {key: place for place, key in enumerate(context.processes.keys)},
        {key: place for place, key in enumerate(context.threads.keys)},
        dict(zip(pairs, device_of, strict=True)),
        dict(gpus),
    )


def read_columns(source: TableSource, table: str, names: Sequence[str]) -> list[I8]:
    """Read the columns ``names`` of ``table``, i8[n] each; `NULL` where nothing is recorded."""
    parts: dict[str, list[Column]] = {name: [np.zeros(0, np.int64)] for name in names}
    for chunk in source.chunks(TableQuery(table, list(names))):
        for name, found in parts.items():
            found.append(chunk[name])
    return [np.concatenate(found) for found in parts.values()]


def are_times(column: I8) -> Bool:
    """Tell which numbers are recorded, and of one session with most of the others, bool[n]."""
    sane: Bool = (column > -TIME_LIMIT) & (column < TIME_LIMIT)
    known = column[sane]
    if len(known):
        middle = np.partition(known, len(known) // 2)[len(known) // 2]
        sane[sane] = abs(known - middle) < _LONGEST
    return sane


def numbered(columns: Sequence[I8]) -> tuple[I8, I4]:
    """(row of the first of each kind, kind of each row)."""
    if not len(columns[0]):
        return np.zeros(0, np.int64), np.zeros(0, np.int32)
    first, place = unique_rows(columns)
    return first, place.astype(np.int32)
