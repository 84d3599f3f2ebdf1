"""Collect when the profiler held the program up, by its own account."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flame.core.columns import I4, I8, Column, unique
from flame.core.model.activities import NONE
from flame.core.model.meta import Overheads
from flame.core.model.raw import RawCalls
from flame.core.readers.kineto.context import AnyEvent, KinetoContext

CATEGORY = "overhead"


class ProfilerOverheads:
    """Collects overhead: when there was some, and of what kind."""

    def __init__(self, context: KinetoContext) -> None:
        self._context = context
        self._names: dict[str, int] = {}
        self._parts: list[tuple[Column, ...]] = []

    def add(self, events: Sequence[AnyEvent]) -> None:
        """Add overhead."""
        some, start, end = self._context.find_timed([one for one in events if one.ph == "X"])
        names = [self._names.setdefault(event.name, len(self._names)) for event in some]
        self._parts.append((np.array(names, np.int32), start, end))

    def build(self, calls: RawCalls, process_of: I4) -> Overheads | None:
        """Build the table; None where nothing is told. ``process_of`` are those of threads.

        The trace says neither the process nor the thread. A process alone is the one; so is a
        thread alone that calls CUDA, for there such overhead comes up, or which alone was in a call
        all the while.
        """
        if not self._parts:
            return None
        name, start, end = (np.concatenate(columns) for columns in zip(*self._parts, strict=True))
        name, start, end = (column[end > start] for column in (name, start, end))
        thread = find_callers(calls, start, end)
        alone = len(unique(process_of)) == 1
        process = np.append(process_of, NONE).astype(np.int32)[0 if alone else thread]
        process = np.broadcast_to(process, len(name)).copy()
        return Overheads(tuple(self._names), name, process, thread, start, end)


def find_callers(calls: RawCalls, start: I8, end: I8) -> I4:
    """Find the only thread with ``calls``, or with one around each interval, i4[n].

    -1 for none or several.
    """
    threads = unique(calls.thread)
    if len(threads) == 1:
        return np.full(len(start), threads[0], np.int32)
    found, number = np.full(len(start), NONE, np.int32), np.zeros(len(start), np.int64)
    rows = np.flatnonzero((calls.start < end.max(initial=0)) & (calls.end > start.min(initial=0)))
    for thread in unique(calls.thread[rows]).tolist() if len(start) else ():
        own = rows[calls.thread[rows] == thread]
        own = own[np.argsort(calls.start[own], kind="stable")]
        reach = np.append(np.maximum.accumulate(calls.end[own]), np.iinfo(np.int64).min)
        around = reach[np.searchsorted(calls.start[own], start, "right") - 1] >= end
        found[around] = thread
        number += around
    found[number != 1] = NONE
    return found
