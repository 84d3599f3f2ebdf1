"""Find when programs were held up: by the profiler, loading, garbage collection or the GIL."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cache

import numpy as np

from flame.core.columns import I8, Bool, Column
from flame.core.kept_results import kept
from flame.core.lazy_dataclass import dataclass
from flame.core.lazy_regex import lazy_regex
from flame.core.model.frames import Kind
from flame.core.model.meta import process_of_threads
from flame.core.model.profile import Profile
from flame.core.model.threads.events import EventStyle, ThreadEvents
from flame.core.names.overheads import is_of_profiler

PROFILER, LOADING, COLLECTION = "profiler", "loading", "garbage collection"

_COLLECTION = lazy_regex(r"(?:python )?gc|garbage collection", re.IGNORECASE)
_WAITING = lazy_regex(r"wait.*\bgil\b", re.IGNORECASE)
_HOLDING = lazy_regex(r"hold.*\bgil\b", re.IGNORECASE)
_TIMES = ("process", "thread", "start", "end")


@dataclass(frozen=True, eq=False)
class States:
    """Hold when anything held a program up: one row each, in no order.

    ``name`` i8[n] is a place in ``names``, whose state is in ``states``; ``process`` and ``thread``
    i8[n] are -1 where they are not known; ``start`` and ``end`` (exclusive) i8[n] are in ns.
    """

    names: list[str]
    states: list[str]
    name: I8
    process: I8
    thread: I8
    start: I8
    end: I8

    def __len__(self) -> int:
        return len(self.start)

    def where(self, mask: Bool) -> States:
        """Choose some."""
        columns = {name: getattr(self, name)[mask] for name in ("name", *_TIMES)}
        return replace(self, **columns)


def find_states(profile: Profile) -> States | None:
    """Find what held the programs of ``profile`` up; None where the trace does not tell."""
    return _joined([_overheads(profile), find_collections(profile)])


@kept
def find_collections(profile: Profile) -> States | None:
    """Find when garbage was collected; None where the trace does not tell.

    By ranges that nest, and by start/end ranges where these are not among them. Kept as long as the
    profile is.
    """
    return _joined([_collecting_ranges(profile), _collecting_events(profile)])


def _joined(parts: Iterable[States | None]) -> States | None:
    found = [one for one in parts if one is not None]
    if not found:
        return None
    names = [name for one in found for name in one.names]
    states = [state for one in found for state in one.states]
    shift = np.cumsum([0, *(len(one.names) for one in found)])[:-1]
    place = [one.name + by for one, by in zip(found, shift.tolist(), strict=True)]
    columns = (np.concatenate([getattr(one, column) for one in found]) for column in _TIMES)
    return States(names, states, np.concatenate(place), *columns)


def _overheads(profile: Profile) -> States | None:
    """What the profiler told of itself, and of loading."""
    known = profile.overheads
    if known is None:
        return None
    states = [PROFILER if is_of_profiler(name) else LOADING for name in known.names]
    name, process, thread = (
        column.astype(np.int64) for column in (known.name, known.process, known.thread)
    )
    return States(list(known.names), states, name, process, thread, known.start, known.end)


def _collecting_ranges(profile: Profile) -> States | None:
    """Ranges that stand for garbage collection; None where there are none."""
    frames = profile.frames
    ranges = np.flatnonzero(frames.kind == Kind.NVTX).tolist()
    fits = cache(_COLLECTION.fullmatch)  # many frames have one name
    chosen = [at for at in ranges if fits(frames[at].name)]
    if not chosen or profile.spans_finder is None:
        return None
    spans = profile.spans_finder(chosen)
    place = np.searchsorted(chosen, spans.frame)
    thread = spans.thread.astype(np.int64)
    names = [frames[at].name for at in chosen]
    who = (place, process_of_threads(profile.threads)[thread], thread)
    return States(names, [COLLECTION] * len(names), *who, spans.start, spans.end)


def _collecting_events(profile: Profile) -> States | None:
    events = profile.events
    if events is None or events.in_ranges:
        return None
    chosen = np.array([bool(_COLLECTION.fullmatch(one.name)) for one in events.names], bool)
    found = events.where(chosen[events.name] & (events.style == EventStyle.START_END))
    if not len(found):
        return None
    found = found.where(found.end > found.start)
    names = [one.name for one in found.names]
    who = (found.of_threads("process"), found.of_threads("thread"))
    place = found.name.astype(np.int64)
    return States(names, [COLLECTION] * len(names), place, *who, found.start, found.end)


@dataclass(frozen=True, eq=False)
class GilTimes:
    """Hold when threads held the GIL and when they waited for it, as ranges of both."""

    holding: ThreadEvents
    waiting: ThreadEvents


def gil_times(events: ThreadEvents | None) -> GilTimes | None:
    """Choose what ``events`` tell of the GIL; None where they do not."""
    if events is None:
        return None
    own = events.of_style(EventStyle.OF_PROFILER)
    if not len(own):
        return None
    some = own.end > own.start
    return GilTimes(*(own.where(some & _named(own, each)) for each in (_HOLDING, _WAITING)))


def _named(events: ThreadEvents, pattern: re.Pattern[str]) -> Column:
    fits: Column = np.array([bool(pattern.match(one.name)) for one in events.names], bool)
    return fits[events.name]
