"""Measure how busy each GPU was: in its own window, or in those that filters choose."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, SIDES, expand_ranges, order_by, places_in
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import NONE
from flame.core.model.profile import Profile
from flame.core.projection.filters import Devices, Filter, Pids, Ranks, Steps, Time
from flame.core.timeline.busy_time import BusyTime, TimeWindow
from flame.core.timeline.devices import DeviceTime, device_times, timed_rows

_INT64 = np.iinfo(np.int64)
_WHO = Devices | Ranks | Pids
"""Filters that choose GPUs; all others choose of what ran on them."""


@dataclass(frozen=True, eq=False)
class Utilization:
    """Say how busy a GPU was: the union of its activities over all streams and processes.

    ``device`` indexes ``Profile.devices`` (-1: unknown), ``label`` is its short name. ``windows``
    are on the trace's clock: from the first start of an activity to the last stop, or what filters
    choose, and ``window`` is around them. ``busy`` is the part of them, ns, that ``stretches``
    fill, which are in ns since ``origin`` and of all the trace.
    """

    device: int
    label: str
    window: TimeWindow
    windows: BusyTime
    busy: int
    origin: int
    stretches: BusyTime

    @property
    def length(self) -> int:
        """Sum of the windows, ns."""
        return self.windows.total

    @property
    def idle(self) -> int:
        """Time in which nothing ran, ns."""
        return self.length - self.busy

    @property
    def share(self) -> float | None:
        """Part of the windows that is busy, 0..1; None where they have no length."""
        return self.busy / self.length if self.length else None

    def within(self, window: TimeWindow) -> tuple[int, int]:
        """Measure (busy, length), ns, of the part of the windows that lies in ``window``."""
        low = np.maximum(self.windows.low, window.low)
        high = np.minimum(self.windows.high, window.high)
        inside = BusyTime.between(low[high > low], high[high > low])
        return self.stretches.within_all(inside.moved(-self.origin)), inside.total

    def ran(self, window: TimeWindow) -> int:
        """Measure how long anything ran in ``window`` (trace's clock), ns."""
        return self.stretches.within(window.moved(-self.origin))

    def in_cells(self, window: TimeWindow, number: int) -> tuple[I8, I8]:
        """Cut ``window`` (trace's clock) into cells: (busy, length) of each, ns."""
        return self.stretches.in_cells(window.moved(-self.origin), number)


class IdleGap(NamedTuple):
    """Bound a stretch in which a GPU ran nothing, from one activity to the next.

    ``begin`` and ``end`` are on the trace's clock, ns. ``before`` is the row of the activity that
    ended then, ``after`` of the one that began, of several the one launched last; -1 where the gap
    is cut off by the window.
    """

    device: int
    begin: int
    end: int
    before: int
    after: int

    @property
    def length(self) -> int:
        """Length in ns."""
        return self.end - self.begin


def utilizations(profile: Profile, where: tuple[Filter, ...] = ()) -> tuple[Utilization, ...]:
    """Measure the GPUs that ``where`` leaves, in the time that it leaves; one by one.

    Filters by time and step choose windows, filters by GPU, rank and process choose GPUs. All that
    ran on a GPU counts: what other filters hide was busy all the same. Nothing is said of GPUs that
    ran nothing, of files of stacks, and of recordings of which not all rows are kept.
    """
    if profile.rows_begin > profile.begin:
        return ()
    shown = _devices_of(profile, where)
    return tuple(
        _utilization(profile, each, where)
        for each in device_times(profile)
        if shown is None or each.device in shown
    )


def _utilization(profile: Profile, each: DeviceTime, where: tuple[Filter, ...]) -> Utilization:
    origin, windows = profile.rows_begin, _windows(profile, each, where)
    busy = each.busy.within_all(windows.moved(-origin))
    return Utilization(each.device, each.label, windows.window, windows, busy, origin, each.busy)


def _devices_of(profile: Profile, where: tuple[Filter, ...]) -> set[int] | None:
    """GPUs on which anything of the chosen ranks and processes ran; None for all."""
    chosen = [each.groups(profile, profile.activities) for each in where if isinstance(each, _WHO)]
    if not chosen:
        return None
    return set(profile.activities.groups.device[np.logical_and.reduce(chosen)].tolist())


# The time that counts


def _windows(profile: Profile, each: DeviceTime, where: tuple[Filter, ...]) -> BusyTime:
    """The stretches of time that ``where`` chooses, on the trace's clock."""
    times = [filter_ for filter_ in where if isinstance(filter_, Time)]
    steps = [filter_ for filter_ in where if isinstance(filter_, Steps)]
    begins = [time.begin for time in times if time.begin is not None]
    ends = [time.end for time in times if time.end is not None]
    if steps:
        low, high = _step_windows(profile, each.device, steps)
    else:  # of what was recorded; from or to an open end as long as the GPU itself ran anything
        own = each.busy.window.moved(profile.rows_begin)
        low = np.array([profile.begin if begins else own.low])
        high = np.array([profile.end if ends else own.high])
    low = np.maximum(low, max(begins, default=_INT64.min))
    high = np.minimum(high, min(ends, default=_INT64.max))
    kept = (high > low) | (not where)
    return BusyTime.between(low[kept], high[kept])


def _step_windows(profile: Profile, device: int, chosen: list[Steps]) -> tuple[I8, I8]:
    """When the processes that use ``device`` were in the chosen steps: starts and ends, ns."""
    found, groups = profile.iterations, profile.activities.groups
    rows = np.isin(found.process, groups.process[groups.device == device])
    for steps in chosen:
        rows &= steps.chosen(found.number)
    union = BusyTime.union(found.start[rows], found.end[rows])
    return union.low, union.high


def chosen_window(profile: Profile, where: tuple[Filter, ...]) -> TimeWindow | None:
    """Find the time around what filters by time and step choose; None where there are none.

    On the trace's clock; without any GPU in it what filters by time say themselves.
    """
    times = [filter_ for filter_ in where if isinstance(filter_, Time)]
    if not times and not any(isinstance(filter_, Steps) for filter_ in where):
        return None
    found = [each.window for each in utilizations(profile, where) if each.length]
    if found:
        return TimeWindow(min(low for low, _ in found), max(high for _, high in found))
    low = max([profile.rows_begin, *(each.begin for each in times if each.begin is not None)])
    high = min([profile.end, *(each.end for each in times if each.end is not None)])
    return TimeWindow(low, high) if times and high > low else None


# Gaps


class DeviceGaps:
    """Find the idle gaps of a GPU by time and by length; numbered from 0 in order of time.

    ``begin`` and ``end`` are i8[n] on the trace's clock.
    """

    def __init__(self, profile: Profile, each: Utilization) -> None:
        self.device, self.label = each.device, each.label
        self.begin, self.end = gap_edges(each)
        self._profile, self._table = profile, profile.activities

    def __len__(self) -> int:
        return len(self.begin)

    @cached_property
    def by_length(self) -> I8:
        """The numbers, longest first, i8[n]."""
        return order_by([self.begin - self.end])

    @cached_property
    def rank(self) -> I8:
        """The place of each in ``by_length``, i8[n]."""
        return order_by([self.by_length])

    @property
    def _rows(self) -> I8:
        return timed_rows(self._profile, self.device)

    def gaps(self, numbers: I8) -> list[IdleGap]:
        """Get several gaps: only what is beside these is ordered."""
        rows, table = self._rows, self._table
        begin, end = self.begin[numbers], self.end[numbers]
        start, stop = table.start[rows], table.start[rows] + table.duration[rows]
        before, after = _places_of(begin, stop), _places_of(end, start)
        ended = _RowsAt(stop[before], start[before], rows[before])
        began = _RowsAt(start[after], table.launch_start[rows[after]], rows[after])
        return [
            IdleGap(self.device, low, high, ended.last(low), began.last(high))
            for low, high in zip(begin.tolist(), end.tolist(), strict=True)
        ]

    @cached_property
    def _ended(self) -> _RowsAt:
        start = self._table.start[self._rows]
        return _RowsAt(start + self._table.duration[self._rows], start, self._rows)

    @cached_property
    def _began(self) -> _RowsAt:
        rows = self._rows
        return _RowsAt(self._table.start[rows], self._table.launch_start[rows], rows)

    @property
    def total(self) -> int:
        """Sum of all gaps, ns."""
        return int((self.end - self.begin).sum())

    def number_of(self, gap: IdleGap) -> int:
        """Find the number of the gap with the times of ``gap``; -1 if there is none."""
        at = int(np.searchsorted(self.begin, gap.begin))
        same = at < len(self) and (self.begin[at], self.end[at]) == (gap.begin, gap.end)
        return at if same else -1

    def gap(self, number: int) -> IdleGap:
        """Get a gap with the activities beside it."""
        begin, end = int(self.begin[number]), int(self.end[number])
        return IdleGap(self.device, begin, end, self._ended.last(begin), self._began.last(end))


def _places_of(some: I8, times: I8) -> I8:
    """Where ``times`` are one of ``some``."""
    wanted = np.append(np.sort(some), _INT64.max)
    return np.flatnonzero(wanted[places_in(wanted, times)] == times)


class _RowsAt:
    """Finds the row of a time; of several one that is ``latest``."""

    def __init__(self, time: I8, latest: I8, rows: I8) -> None:
        self._order = order_by([time])
        self._time, self._latest, self._rows = time[self._order], latest, rows

    def last(self, time: int) -> int:
        """The row at ``time``, `NONE` without any."""
        first, last = (int(np.searchsorted(self._time, time, side)) for side in SIDES)
        found = self._order[first:last]
        latest = self._latest[found]
        return int(self._rows[found[latest == latest.max()][-1]]) if len(found) else NONE


def idle_gaps(profile: Profile, most: int, where: tuple[Filter, ...] = ()) -> tuple[IdleGap, ...]:
    """Find the ``most`` longest gaps of each GPU, longest first.

    All gaps of a GPU add up to its idle time.
    """
    devices = [DeviceGaps(profile, each) for each in utilizations(profile, where)]
    found = [gap for gaps in devices for gap in gaps.gaps(gaps.by_length[:most])]
    return tuple(sorted(found, key=lambda gap: -gap.length))


def gap_edges(each: Utilization) -> tuple[I8, I8]:
    """Where each of the gaps of a GPU begins and ends, on the trace's clock, in order of time."""
    busy, origin = each.stretches, each.origin
    low = np.concatenate([[_INT64.min], busy.high + origin])
    high = np.concatenate([busy.low + origin, [_INT64.max]])
    return _intersect(low, high, each.windows)


def _intersect(low: I8, high: I8, windows: BusyTime) -> tuple[I8, I8]:
    """The parts of ascending stretches that lie in ``windows``, mostly a single one."""
    if len(windows) == 1:
        low, high = np.maximum(low, windows.low), np.minimum(high, windows.high)
        some = high > low
        return low[some], high[some]
    first = np.searchsorted(windows.high, low, "right")
    number = np.maximum(np.searchsorted(windows.low, high) - first, 0)
    window, stretch = expand_ranges(first, number), np.repeat(np.arange(len(low)), number)
    low = np.maximum(low[stretch], windows.low[window])
    high = np.minimum(high[stretch], windows.high[window])
    some = high > low
    return low[some], high[some]


# Kernels and copies


def kernels_busy(profile: Profile, each: Utilization) -> int:
    """Measure how long kernels, or graphs traced as a whole, ran on a GPU: their union, ns.

    The rest of its busy time are copies and sets alone.
    """
    from flame.core.timeline.exposure import class_times

    return class_times(profile, each.device).kernels.within_all(each.windows)
