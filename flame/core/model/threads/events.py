"""Hold what threads recorded besides ranges that nest: marks, start/end ranges, the GIL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from flame.core.columns import I4, I8, U1, Bool, Column
from flame.core.lazy_dataclass import dataclass


class EventStyle(IntEnum):
    """Name what an event is. ``OF_PROFILER`` are ranges that a profiler makes by itself."""

    MARK = 0
    START_END = 1
    OF_PROFILER = 2


class EventName(NamedTuple):
    """Name an event, and its domain, empty for the usual one."""

    name: str
    domain: str = ""


class EventThread(NamedTuple):
    """Name a thread that recorded events.

    ``name`` is its own, or else that of its process; ``process`` and ``thread`` are places in
    those of the profile, -1 where it has done nothing else.
    """

    pid: int
    tid: int
    name: str
    process: int
    thread: int


@dataclass(frozen=True, eq=False)
class ThreadEvents:
    """Hold events in the order of the file; they are no frames of any tree.

    ``style`` u1[n] is an `EventStyle`; ``name`` and ``thread`` i4[n] are places in ``names`` and
    ``threads``; ``start`` and ``end`` (exclusive) i8[n] are in ns, equal for marks. Where
    ``in_ranges``, start/end ranges are among the ranges of the profile as well.
    """

    names: tuple[EventName, ...]
    threads: tuple[EventThread, ...]
    style: U1
    name: I4
    thread: I4
    start: I8
    end: I8
    in_ranges: bool = False

    def __len__(self) -> int:
        return len(self.start)

    def where(self, mask: Bool) -> ThreadEvents:
        """Choose events."""
        columns = {name: getattr(self, name)[mask] for name in _COLUMNS}
        return replace(self, **columns)

    def of_style(self, style: EventStyle) -> ThreadEvents:
        """Choose the events of a style."""
        return self.where(self.style == style)

    def of_threads(self, field: str) -> I8:
        """Look up ``field``, a field of `EventThread`, of the thread of each event, i8[n]."""
        values = [getattr(thread, field) for thread in self.threads]
        found: I8 = np.array(values, np.int64)[self.thread]
        return found


_COLUMNS = ("style", "name", "thread", "start", "end")


def concatenate_events(tables: Sequence[ThreadEvents]) -> ThreadEvents:
    """Put events of several tables one after the other, each with its own names and threads."""
    names: list[EventName] = []
    threads: list[EventThread] = []
    parts: dict[str, list[Column]] = {name: [] for name in _COLUMNS}
    for table in tables:
        shifts = {"name": np.int32(len(names)), "thread": np.int32(len(threads))}
        for name, chunks in parts.items():
            column = getattr(table, name)
            chunks.append(column + shifts[name] if name in shifts else column)
        names += table.names
        threads += table.threads
    columns = {name: np.concatenate(chunks) for name, chunks in parts.items()}
    in_ranges = any(table.in_ranges for table in tables)
    return ThreadEvents(tuple(names), tuple(threads), **columns, in_ranges=in_ranges)
