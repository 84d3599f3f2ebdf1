"""Merge what threads of several files recorded: all calls, those that failed, marks and states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from flame.core.columns import I4, Column
from flame.core.model.profile import Profile
from flame.core.model.threads.call_rows import CallRows, FailedCalls
from flame.core.model.threads.events import EventThread, ThreadEvents, concatenate_events


class ThreadTables(NamedTuple):
    """Hold the builders of a profile of what its threads recorded, None of what it has not."""

    callrows: Callable[[], CallRows] | None
    failures: Callable[[], FailedCalls] | None
    events: Callable[[], ThreadEvents] | None

    @classmethod
    def of(cls, profile: Profile) -> ThreadTables:
        """Take them from ``profile``."""
        return cls(profile.callrows_builder, profile.failures_builder, profile.events_builder)


class RenumberedProfile(Protocol):
    """A merged profile as the new numbers of what it has; the last are for what is unknown."""

    @property
    def frames(self) -> I4: ...
    @property
    def process(self) -> I4: ...
    @property
    def thread(self) -> I4: ...
    @property
    def shift(self) -> int: ...
    @property
    def tables(self) -> ThreadTables: ...


def thread_builders(parts: Sequence[RenumberedProfile]) -> dict[str, Any]:
    """Make the builders of the merged profile by their names; None of what no part has."""
    merging = {"callrows": _merge_rows, "failures": _merge_failures, "events": _merge_events}
    return {
        f"{name}_builder": partial(merge, parts)
        for name, merge in merging.items()
        if any(getattr(part.tables, name) is not None for part in parts)
    }


def _merge_rows(parts: Sequence[RenumberedProfile]) -> CallRows:
    tables = [_renumbered(part, part.tables.callrows()) for part in parts if part.tables.callrows]
    return CallRows(**_joined(tables, ("thread", "frame", "start", "end")))


def _merge_failures(parts: Sequence[RenumberedProfile]) -> FailedCalls:
    tables = [_renumbered(part, part.tables.failures()) for part in parts if part.tables.failures]
    columns = _joined(tables, ("thread", "frame", "start", "end", "value"))
    return FailedCalls(**columns, known=sum(table.known for table in tables))


def _renumbered(part: RenumberedProfile, table: Any) -> Any:
    return replace(
        table,
        thread=part.thread[table.thread],
        frame=part.frames[table.frame],
        start=table.start + part.shift,
        end=table.end + part.shift,
    )


def _joined(tables: Sequence[Any], names: Sequence[str]) -> dict[str, Column]:
    return {name: np.concatenate([getattr(table, name) for table in tables]) for name in names}


def _merge_events(parts: Sequence[RenumberedProfile]) -> ThreadEvents:
    return concatenate_events(
        [_moved(part, part.tables.events()) for part in parts if part.tables.events]
    )


def _moved(part: RenumberedProfile, table: ThreadEvents) -> ThreadEvents:
    threads = tuple(_known_as(part, thread) for thread in table.threads)
    start, end = table.start + part.shift, table.end + part.shift
    return replace(table, threads=threads, start=start, end=end)


def _known_as(part: RenumberedProfile, thread: EventThread) -> EventThread:
    """The thread in the numbers of the merged profile; what was unknown stays so."""
    process, own = thread.process, thread.thread
    return thread._replace(
        process=int(part.process[process]) if process >= 0 else process,
        thread=int(part.thread[own]) if own >= 0 else own,
    )
