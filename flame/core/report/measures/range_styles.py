"""Choose marks and start/end ranges of a scope, and tell which ranges are of which style."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import NamedTuple

import numpy as np

from flame.core.columns import I4, I8, unique_rows
from flame.core.model.frames import Kind
from flame.core.model.threads.events import EventName, EventStyle, ThreadEvents
from flame.core.report.scope import Scope

PUSH_POP, START_END, BOTH = "push/pop", "start/end", "both"


class NamedEvents(NamedTuple):
    """Hold events by name: ``name`` i8[names] is a place in ``events.names``.

    ``group`` i8[n] is the place in ``name`` that each event has.
    """

    events: ThreadEvents
    name: I8
    group: I8

    @property
    def names(self) -> list[EventName]:
        """The names, in order."""
        return [self.events.names[at] for at in self.name.tolist()]


def events_of(scope: Scope, style: EventStyle) -> NamedEvents | None:
    """Choose the events of a ``style`` that the filters leave; None where there are none."""
    events = scope.events
    if events is None:
        return None
    events = events.of_style(style)
    events = events.where(scope.in_time(events.of_threads("process"), events.start))
    if not len(events):
        return None
    first, group = unique_rows([events.name])
    return NamedEvents(events, events.name[first].astype(np.int64), group)


def styles_of(scope: Scope, shown: I4) -> dict[int, str]:
    """Tell of which style ranges are, by the frame that they are ``shown`` (i4[frames]) as.

    Empty where start/end ranges are not among the ranges.
    """
    profile = scope.profile
    events = profile.events
    if events is None or not events.in_ranges or profile.spans_finder is None:
        return {}
    frames = np.flatnonzero(profile.frames.kind == Kind.NVTX).tolist()
    spans = np.bincount(profile.spans_finder(frames).frame, minlength=len(profile.frames))
    ended = _count_start_end(events)
    wholes: Counter[tuple[str, str]] = Counter()
    keys = {at: (profile.frames[at].name, profile.frames[at].get("domain")) for at in frames}
    for at, key in keys.items():
        wholes[key] += int(spans[at])
    found: defaultdict[int, set[str]] = defaultdict(set)
    for at, key in keys.items():
        if spans[at]:
            found[int(shown[at])] |= _styles(ended[key], wholes[key])
    return {at: styles.pop() if len(styles) == 1 else BOTH for at, styles in found.items()}


def _count_start_end(events: ThreadEvents) -> Counter[tuple[str, str]]:
    """Count the start/end ranges with any length by name and domain."""
    rows = (events.style == EventStyle.START_END) & (events.end > events.start)
    counts = np.bincount(events.name[rows], minlength=len(events.names))
    found: Counter[tuple[str, str]] = Counter()
    for name, count in zip(events.names, counts.tolist(), strict=True):
        found[name.name, name.domain] += count
    return found


def _styles(start_end: int, whole: int) -> set[str]:
    if not start_end:
        return {PUSH_POP}
    return {START_END} if start_end >= whole else {PUSH_POP, START_END}
