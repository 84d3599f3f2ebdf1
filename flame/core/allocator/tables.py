"""Make the tables behind the metrics of memory: which allocations each of them measures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np

from flame.core.allocator.live import LiveCurve, Peak, find_peak, live_curve
from flame.core.columns import I8, Bool, rows_by_value
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import Activities
from flame.core.model.allocator.allocations import ALIVE, BEFORE, Allocations
from flame.core.model.allocator.history import NO_TIME
from flame.core.model.allocator.recorded import MemoryLives
from flame.core.model.metrics import OF_A_MOMENT


class Window(NamedTuple):
    """Say which events of a device are meant: those after ``first``, up to ``last``.

    ``begin`` and ``end`` are when it begins and ends, ns.
    """

    first: int
    last: int
    begin: int
    end: int


@dataclass(frozen=True, eq=False)
class DeviceAllocations:
    """Hold the allocations of one device, and the ``rows`` that they are of all.

    ``time`` i8[events] is when each of its events was, in order, ns; empty where that was not
    recorded.
    """

    rows: I8
    table: Allocations
    curve: LiveCurve
    position: I8
    time: I8

    @property
    def whole(self) -> Window:
        """The window of all events."""
        last = int(self.curve.position[-1])
        begin, end = (int(self.time[0]), int(self.time[-1])) if len(self.time) else (0, 0)
        return Window(BEFORE, last, begin, end)

    def between(self, begin: int | None, end: int | None) -> Window:
        """The window from ``begin`` to ``end`` (exclusive), ns; None is unbounded."""
        whole = self.whole
        return Window(
            whole.first if begin is None else self.last_before(begin),
            whole.last if end is None else self.last_before(end),
            whole.begin if begin is None else max(begin, whole.begin),
            whole.end if end is None else min(end, whole.end),
        )

    def last_before(self, time: int) -> int:
        """The last event before ``time``, ns; `BEFORE` where there is none."""
        at = int(np.searchsorted(self.time, time, "left"))
        return int(self.position[at - 1]) if at else BEFORE

    def last_before_each(self, times: I8) -> I8:
        """The last event before each of ``times`` (ascending, ns), once; none before the first."""
        passed = np.searchsorted(times, self.time, "right")
        return self.position[np.diff(np.append(passed, len(times))) > 0]

    def time_of(self, position: int) -> int | None:
        """When the event at ``position`` was, ns; None where that is not known."""
        at = int(np.searchsorted(self.position, position))
        known = at < len(self.position) and self.position[at] == position
        return int(self.time[at]) if known else None

    def peak(self, window: Window) -> Peak:
        """Find the most that lived at a time in ``window``."""
        return find_peak(self.curve, window.first, window.last)

    def measured(self, metric: str, window: Window, moment: int) -> Bool:
        """Tell which of the allocations ``metric`` measures in ``window``, or at ``moment``.

        That is a position, of metrics of one moment.
        """
        table, (first, last, _, _) = self.table, window
        if metric in OF_A_MOMENT:
            return table.alive_at(moment)
        if metric == "held":
            return (table.begin <= last) & (table.end > first)
        began: Bool = (table.begin > first) & (table.begin <= last)
        if metric == "churn":
            began &= table.end <= last
        return began

    @property
    def lives(self) -> MemoryLives:
        """How long each lived, as far as that is known."""
        table = self.table
        known = (table.begin_time != NO_TIME) & (table.end_time != NO_TIME)
        lifetime = np.where(known, np.maximum(table.end_time - table.begin_time, 0), -1)
        return MemoryLives(table.size, lifetime, table.begin == BEFORE, table.end == ALIVE)

    def mean_sizes(self, window: Window) -> I8:
        """How many bytes each holds in the mean of ``window``, to the nearest byte.

        What was not recorded to begin lives from its beginning on, what was not to end, to its end.
        """
        table, (_, _, begin, end) = self.table, window
        low = np.where(table.begin == BEFORE, begin, table.begin_time)
        high = np.where(table.end == ALIVE, end, table.end_time)
        inside = np.clip(high, begin, end) - np.clip(low, begin, end)
        share = inside / max(end - begin, 1)
        mean: I8 = np.rint(table.size * np.maximum(share, 0.0)).astype(np.int64)
        return mean


def split_devices(
    table: Allocations, devices: Sequence[int]
) -> Iterator[tuple[int, DeviceAllocations]]:
    """Split ``table`` by ``devices``, numbers of which each comes with its allocations."""
    known, none = dict(rows_by_value(table.device)), np.zeros(0, np.int64)
    for device in devices:
        rows = known.get(device, none)
        own = table.take(rows)
        position, time = _event_times(own)
        yield device, DeviceAllocations(rows, own, live_curve(own), position, time)


def _event_times(table: Allocations) -> tuple[I8, I8]:
    """The places and times of the events of a device, in order; times never go back."""
    began, ended = table.begin_time != NO_TIME, table.end_time != NO_TIME
    position = np.concatenate([table.begin[began], table.end[ended]])
    time = np.concatenate([table.begin_time[began], table.end_time[ended]])
    order = np.argsort(position, kind="stable")
    return position[order], np.maximum.accumulate(time[order])


def measured_rows(
    device: DeviceAllocations, metric: str, window: Window, moment: int
) -> tuple[I8, I8]:
    """Find the rows of all that ``metric`` measures on ``device``, and the bytes of each."""
    chosen = np.flatnonzero(device.measured(metric, window, moment))
    sizes = device.mean_sizes(window) if metric == "held" else device.table.size
    return device.rows[chosen], sizes[chosen]


def take_rows(table: Activities, rows: I8, values: I8, metric: str) -> Activities:
    """Make a table of ``rows`` of ``table``, which ``metric`` measures by ``values``."""
    columns: dict[str, Any] = {
        each.name: value[rows] if isinstance(value, np.ndarray) else value
        for each in fields(Activities)
        if (value := getattr(table, each.name)) is not None
    }
    return Activities(**columns | {"measures": {metric: values}, "is_cut": True})
