"""Find CUDA API calls by correlation id, for GPU work that comes after them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from flame.core.columns import I4, I8, Column, distinct, run_starts
from flame.core.lazy_dataclass import dataclass
from flame.core.live.decode.batch import NewCalls
from flame.core.live.sums.column_table import ColumnTable
from flame.core.model.activities import NONE

_PART = 1 << 15
_MOST = 1 << 22
_MOST_WAITING = 1 << 14
NEVER = (1 << 63) - 1
"""As the first start of a call's activities: it has none that are kept."""


@dataclass(frozen=True, eq=False)
class _CallSegment(ColumnTable):
    """Calls by correlation id. ``uses``: activities so far; ``first``: the earliest kept.

    These two columns change in place.
    """

    correlation: I8
    start: I8
    end: I8
    thread: I4
    frame: I4
    python: I4
    nvtx: I4
    uses: I8
    first: I8

    @cached_property
    def span(self) -> tuple[int, int]:
        """The least id, and the id behind the greatest."""
        return int(self.correlation[0]), int(self.correlation[-1]) + 1

    @cached_property
    def latest(self) -> int:
        """When the last call began."""
        return int(self.start.max())


class CallTable:
    """The calls of one process. Of several with an id the earliest launches, the longest on ties.

    Places that `find` gives hold until the next `add` or `expire`. Of very many the oldest expire.
    """

    def __init__(self) -> None:
        self._waiting: _CallSegment | None = None
        self._set_parts([])

    def _set_parts(self, parts: list[_CallSegment]) -> None:
        self._parts = parts
        self._ends: I8 = np.cumsum([len(part) for part in parts], dtype=np.int64)

    def __len__(self) -> int:
        return int(self._ends[-1]) if self._parts else 0

    def add(self, calls: NewCalls) -> None:
        """Add new calls; those without an id launch nothing."""
        part = _build_segment(calls)
        if not len(part):
            return
        parts = self._parts
        if parts and len(parts[-1]) + len(part) <= _PART:
            *parts, last = parts
            part = _order_calls(_CallSegment.concatenate([last, part]))
        self._set_parts([*parts, part])
        if len(self) > _MOST:
            self.expire(self._parts[len(self._parts) // 8].latest + 1)

    def expire(self, horizon: int) -> None:
        """Forget calls that began before ``horizon``, except the latest that launched nothing yet.

        These are few: a kernel may run for minutes, and is only known when it is over.
        """
        old = [part for part in self._parts if part.latest < horizon]
        if all(part is self._waiting for part in old):
            return
        self._waiting = _latest_unused(old)
        recent = [part for part in self._parts if part.latest >= horizon]
        self._set_parts([*filter(len, [self._waiting]), *recent])

    def find(self, correlation: I8) -> I8:
        """Return the place of the call with each id, `NONE` where there is none."""
        ids, which = distinct(correlation)
        places = np.full(len(ids), NONE, np.int64)
        best = np.full((2, len(ids)), NEVER, np.int64)
        for part, end in zip(self._parts, self._ends.tolist(), strict=True):
            low, high = np.searchsorted(ids, part.span, "left")
            if low < high:
                place = find_places(ids[low:high], part.correlation)
                rows, place = np.flatnonzero(place != NONE) + low, place[place != NONE]
                start, longest = part.start[place], part.start[place] - part.end[place]
                earliest, most = best[:, rows]
                better = (start < earliest) | ((start == earliest) & (longest < most))
                rows = rows[better]
                places[rows] = end - len(part) + place[better]
                best[:, rows] = start[better], longest[better]
        return places[which]

    def take(self, place: I8, *names: str) -> list[I8]:
        """Return columns of the calls at ``place``, `NONE` where that is `NONE`."""
        columns = [np.full(len(place), NONE, np.int64) for _ in names]
        for part, rows, of_part in self._split(place):
            for column, name in zip(columns, names, strict=True):
                column[rows] = getattr(part, name)[of_part]
        return columns

    def use(self, place: I8, start: I8) -> None:
        """Count an activity of each of the calls at ``place``; ``start`` is `NEVER` if not kept."""
        for part, rows, of_part in self._split(place):
            np.add.at(part.uses, of_part, 1)
            np.minimum.at(part.first, of_part, start[rows])

    def _split(self, place: I8) -> Iterator[tuple[_CallSegment, I8, I8]]:
        """Split ``place`` by segment: yield the indices into it, and their rows in the segment."""
        known = np.flatnonzero(place != NONE)
        number = np.searchsorted(self._ends, place[known], "right")
        for at in np.flatnonzero(np.bincount(number)).tolist():
            part, rows = self._parts[at], known[number == at]
            yield part, rows, place[rows] - (self._ends[at] - len(part))


def _build_segment(calls: NewCalls) -> _CallSegment:
    """Build a segment of all calls that have an id."""
    nothing = np.zeros(len(calls), np.int64)
    part = _CallSegment(
        calls.correlation,
        calls.start,
        calls.end,
        calls.thread,
        calls.frame,
        calls.python,
        calls.nvtx,
        nothing,
        nothing + NEVER,
    )
    return _order_calls(part.take(part.correlation > 0))


def _order_calls(part: _CallSegment) -> _CallSegment:
    """Order calls by id, and of several with one id keep only the first."""
    if (part.correlation[1:] > part.correlation[:-1]).all():
        return part
    part = part.take(np.lexsort((part.start - part.end, part.start, part.correlation)))
    return part.take(run_starts(part.correlation))


def _latest_unused(parts: list[_CallSegment]) -> _CallSegment:
    """Select the latest calls that have launched nothing."""
    part = _CallSegment.concatenate(parts)
    waiting = np.flatnonzero(part.uses == 0)
    latest = waiting[np.argsort(part.start[waiting], kind="stable")[-_MOST_WAITING:]]
    return _order_calls(part.take(latest))


def correlation_ids(calls: NewCalls) -> I8:
    """Return the ids of ``calls``, in order."""
    ids, _ = distinct(calls.correlation[calls.correlation > 0])
    return ids


def find_places(values: Column, ordered: I8) -> I8:
    """Return the place of each of ``values`` in ``ordered``, `NONE` where it is not there."""
    place = np.searchsorted(ordered, values)
    return np.where(np.append(ordered, NONE)[place] == values, place, NONE)
