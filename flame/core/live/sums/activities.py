"""Hold rows of GPU activities in segments, each with its sums."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

import numpy as np

from flame.core.columns import I4, I8, distinct
from flame.core.lazy_dataclass import dataclass
from flame.core.live.sums.column_table import ColumnTable
from flame.core.live.sums.rates import TimeBins
from flame.core.live.sums.segment import GroupSums

MEASURES = ("count", "gpu", "launch", "queue", "idle")
"""What is summed of GPU activities, by metric."""


@dataclass(frozen=True, eq=False)
class ActivityRows(ColumnTable):
    """GPU activities by start. Times are ns of CLOCK_MONOTONIC.

    ``launch_start`` and ``launch_end`` are -1 without a launch; ``share`` is the activity's part of
    that call, ``idle`` how long its GPU was empty before it, ns. ``group`` is of `ActivityGroups`.
    """

    start: I8
    duration: I8
    correlation: I8
    launch_start: I8
    launch_end: I8
    share: I8
    idle: I8
    group: I4
    config: I4
    bytes: I8

    @property
    def queue(self) -> I8:
        """How long each activity waited after its launch had ended, ns; 0 without a launch."""
        return np.where(self.launch_end < 0, 0, np.maximum(self.start - self.launch_end, 0))

    def sums(self) -> GroupSums:
        """Sum all `MEASURES` by group."""
        ones = np.ones(len(self), np.int64)
        measures = (ones, self.duration, self.share, self.queue, self.idle)
        return GroupSums.sum_rows(self.group, measures)


@dataclass(frozen=True, eq=False)
class ActivitySegment:
    """Rows in order. ``busy_until``: when each GPU is done with these and all rows before them.

    ``busy``: for how long it ran something, of all GPUs together.
    """

    rows: ActivityRows
    busy_until: Mapping[int, int]
    busy: TimeBins

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def first(self) -> int:
        """The first start."""
        return int(self.rows.start[0])

    @cached_property
    def last(self) -> int:
        """The last start."""
        return int(self.rows.start[-1])

    @cached_property
    def sums(self) -> GroupSums:
        """The sums of all rows."""
        return self.rows.sums()

    def since(self, begin: int) -> GroupSums:
        """Sum the rows that start at ``begin`` or later."""
        return self.rows_since(begin).sums()

    def rows_since(self, begin: int) -> ActivityRows:
        """Return the rows that start at ``begin`` or later."""
        low = int(np.searchsorted(self.rows.start, begin))
        return self.rows.take(slice(low, None)) if low else self.rows


def split_segments(
    rows: ActivityRows, device: I8, busy_until: Mapping[int, int], most: int
) -> Iterator[ActivitySegment]:
    """Split ``rows`` into segments of up to ``most``; fill in ``idle`` after ``busy_until``."""
    for low in range(0, len(rows), most):
        piece, on = rows.take(slice(low, low + most)), device[low : low + most]
        busy_until, since = _fill_idle(piece, on, busy_until)
        end = piece.start + piece.duration
        yield ActivitySegment(piece, busy_until, TimeBins.measure_intervals(since, end))


def _fill_idle(
    rows: ActivityRows, device: I8, before: Mapping[int, int]
) -> tuple[dict[int, int], I8]:
    """Fill in ``idle``; return until when GPUs are busy, and when each row alone makes them so."""
    until, since = dict(before), rows.start.copy()
    end = rows.start + rows.duration
    for gpu in distinct(device)[0].tolist():
        own = np.flatnonzero(device == gpu)
        start = rows.start[own]
        known = before.get(gpu, int(start[0]))
        reach = np.maximum(np.maximum.accumulate(end[own]), known)
        already = np.append(known, reach[:-1])
        rows.idle[own] = np.maximum(start - already, 0)
        since[own] = np.maximum(start, already)
        until[gpu] = int(reach[-1])
    return until, since
