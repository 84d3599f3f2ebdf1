"""Keep the API calls and ranges of one growing dump, added up as they end.

Host time is additive: whatever is open charges its place, and takes as much from the place around
it. So each call and range can be counted by itself, in whichever order they come.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from flame.core.columns import I4, I8
from flame.core.lazy_dataclass import dataclass
from flame.core.live.decode.batch import DumpBatch, NewCalls, NewRanges
from flame.core.live.sums.column_table import ColumnTable
from flame.core.live.sums.groups import HostGroups
from flame.core.live.sums.rates import TimeBins
from flame.core.live.sums.segment import GroupSums, KeptSegments, refuse_sums
from flame.core.live.window import SECOND
from flame.core.model.activities import NONE
from flame.core.model.stacks import EMPTY

MEASURES = ("count", "host")
"""What is summed of calls and ranges."""

_SEGMENT = 1 << 14
_LONG = SECOND


@dataclass(frozen=True, eq=False)
class SpanRows(ColumnTable):
    """Calls and ranges: ns of CLOCK_MONOTONIC, their group, and that around them (-1: none)."""

    start: I8
    end: I8
    group: I4
    parent: I4

    def sums(self, begin: int) -> GroupSums:
        """Sum both `MEASURES` by group, of the time from ``begin`` on."""
        rows = self.take(self.end > begin)
        time = rows.end - np.maximum(rows.start, begin)
        inside = np.flatnonzero(rows.parent != NONE)
        group = np.append(rows.group, rows.parent[inside])
        count = np.append(np.ones(len(rows), np.int64), np.zeros(len(inside), np.int64))
        return GroupSums.sum_rows(group, (count, np.append(time, -time[inside])))


@dataclass(frozen=True, eq=False)
class SpanSegment:
    """Some rows, ordered by end."""

    rows: SpanRows

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def first(self) -> int:
        """The first start."""
        return int(self.rows.start.min())

    @cached_property
    def last(self) -> int:
        """The last end."""
        return int(self.rows.end[-1])

    @cached_property
    def sums(self) -> GroupSums:
        """The sums of all rows."""
        return self.rows.sums(self.first)

    def since(self, begin: int) -> GroupSums:
        """Sum the time from ``begin`` on."""
        return self.rows.sums(begin)


class SpanStore:
    """Keeps the calls and ranges of the last minute in segments.

    Those of a second and more are in segments of their own: few segments lie across a moment then.
    ``parents`` gives the path around each path of ranges. ``launches``: how many calls that launch
    began, by step of time.
    """

    def __init__(self, groups: HostGroups, process: int, parents: Callable[[], I4]) -> None:
        self.short: list[SpanSegment] = []
        self.long: list[SpanSegment] = []
        self.newest = 0
        self.launches = TimeBins.empty()
        self._groups = groups
        self._process = process
        self._parents = parents
        self._open = SpanRows(*(np.zeros(0, np.int64),) * 2, *(np.zeros(0, np.int32),) * 2)
        self._weight = 0.0

    def __len__(self) -> int:
        return sum(len(segment) for segment in self.segments)

    @property
    def segments(self) -> list[SpanSegment]:
        """The segments of calls and ranges that have ended."""
        return [*self.long, *self.short]

    def add(self, batch: DumpBatch) -> None:
        """Add rows that have ended, replace the open ones; InputError as `ActivityStore.add`."""
        self._open = self._range_rows(batch.open)
        if batch.empty:
            return
        calls = [self._call_rows(calls) for calls in (batch.calls, batch.others) if len(calls)]
        rows = SpanRows.concatenate([self._range_rows(batch.ended), *calls])
        rows = rows.take(rows.end > rows.start)
        self._weight += float((rows.end - rows.start).sum(dtype=np.float64))
        refuse_sums(self._weight)
        long = rows.end - rows.start >= _LONG
        self.newest = max(self.newest, int(rows.end.max(initial=0)))
        self.long = _append_rows(self.long, rows.take(long))
        self.short = _append_rows(self.short, rows.take(~long))
        self.launches = self.launches.add(TimeBins.count_times(batch.calls.start))

    def expire(self, horizon: int) -> list[SpanSegment]:
        """Take out the segments that had ended at ``horizon``."""
        gone = [segment for segment in self.segments if segment.last <= horizon]
        self.long = [segment for segment in self.long if segment.last > horizon]
        self.short = [segment for segment in self.short if segment.last > horizon]
        self.launches = self.launches.since(horizon)
        return gone

    @property
    def oldest(self) -> int:
        """The end of the segment that ends first."""
        return min(segment.last for segment in self.segments)

    def drop_oldest(self) -> KeptSegments:
        """Take out the segment that ends first."""
        return KeptSegments((), self.expire(self.oldest))

    def open_rows(self, end: int) -> SpanRows:
        """Return the ranges that are open, as if they ended at ``end``."""
        rows = self._open.take(self._open.start < end)
        return SpanRows(rows.start, np.full(len(rows), end), rows.group, rows.parent)

    @property
    def has_open(self) -> bool:
        """Whether any range is open."""
        return len(self._open) > 0

    def _range_rows(self, spans: NewRanges) -> SpanRows:
        known = np.flatnonzero((spans.thread >= 0) & (spans.nvtx != EMPTY))
        path, on = spans.nvtx[known], spans.thread[known]
        own = self._groups.intern_ranges(self._process, on, path)
        around = self._groups.intern_ranges(self._process, on, self._parents()[path])
        return SpanRows(spans.start[known], spans.end[known], own, around)

    def _call_rows(self, calls: NewCalls) -> SpanRows:
        known = np.flatnonzero(calls.thread >= 0)
        on, path = calls.thread[known], calls.nvtx[known]
        own = self._groups.intern_calls(self._process, on, path, calls.frame[known])
        around = self._groups.intern_ranges(self._process, on, path)
        within = calls.within[known]
        inside = np.flatnonzero(within != NONE)
        if len(inside):
            rows = on[inside], path[inside], within[inside]
            around[inside] = self._groups.intern_calls(self._process, *rows)
        return SpanRows(calls.start[known], calls.end[known], own, around)


def _append_rows(known: list[SpanSegment], rows: SpanRows) -> list[SpanSegment]:
    """Append ``rows`` to ``known``, in the last segment if there is room for them."""
    if not len(rows):
        return known
    if known and len(known[-1]) + len(rows) <= _SEGMENT:
        *known, last = known
        rows = SpanRows.concatenate([last.rows, rows])
    rows = rows.take(np.argsort(rows.end, kind="stable"))
    pieces = [rows.take(slice(low, low + _SEGMENT)) for low in range(0, len(rows), _SEGMENT)]
    return [*known, *map(SpanSegment, pieces)]
