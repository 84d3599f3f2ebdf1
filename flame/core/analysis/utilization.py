"""Measure how busy each GPU was: in its own window, or in those that filters choose."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, expand_ranges
from flame.core.model.activities import NONE, has_times
from flame.core.model.frames import COPIES
from flame.core.model.profile import Profile
from flame.core.projection.filters import Devices, Filter, Pids, Ranks, Step, Time
from flame.core.timeline.busy_time import BusyTime, TimeWindow
from flame.core.timeline.devices import DeviceTime, device_times

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
    steps = [filter_ for filter_ in where if isinstance(filter_, Step)]
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


def _step_windows(profile: Profile, device: int, chosen: list[Step]) -> tuple[I8, I8]:
    """When the processes that use ``device`` were in the chosen steps: starts and ends, ns."""
    steps, groups = profile.steps, profile.activities.groups
    if steps is None:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    rows = np.isin(steps.process, groups.process[groups.device == device])
    for step in chosen:
        rows &= (steps.number >= step.first) & (steps.number <= step.last)
    union = BusyTime.union(steps.start[rows], steps.end[rows])
    return union.low, union.high


# Gaps


def idle_gaps(profile: Profile, most: int, where: tuple[Filter, ...] = ()) -> tuple[IdleGap, ...]:
    """Find the ``most`` longest gaps of each GPU, longest first.

    All gaps of a GPU add up to its idle time.
    """
    found = [gap for each in utilizations(profile, where) for gap in _longest(profile, each, most)]
    return tuple(sorted(found, key=lambda gap: -gap.length))


def gap_edges(each: Utilization) -> tuple[I8, I8]:
    """Where each of the gaps of a GPU begins and ends, on the trace's clock, in order of time."""
    busy, origin = each.stretches, each.origin
    low = np.concatenate([[_INT64.min], busy.high + origin])
    high = np.concatenate([busy.low + origin, [_INT64.max]])
    return _intersect(low, high, each.windows)


def _intersect(low: I8, high: I8, windows: BusyTime) -> tuple[I8, I8]:
    """The parts of ascending stretches that lie in ``windows``."""
    first = np.searchsorted(windows.high, low, "right")
    number = np.maximum(np.searchsorted(windows.low, high) - first, 0)
    window, stretch = expand_ranges(first, number), np.repeat(np.arange(len(low)), number)
    low = np.maximum(low[stretch], windows.low[window])
    high = np.minimum(high[stretch], windows.high[window])
    some = high > low
    return low[some], high[some]


def _longest(profile: Profile, each: Utilization, most: int) -> Iterator[IdleGap]:
    low, high = gap_edges(each)
    table = profile.activities
    rows = np.flatnonzero((table.device == each.device) & has_times(table))
    start = table.start[rows]
    end = start + table.duration[rows]
    for at in np.argsort(low - high, kind="stable")[:most].tolist():
        before, after = rows[end == low[at]], rows[start == high[at]]
        yield IdleGap(
            each.device,
            int(low[at]),
            int(high[at]),
            int(before[np.argmax(table.start[before])]) if len(before) else NONE,
            int(after[np.argmax(table.launch_start[after])]) if len(after) else NONE,
        )


# Kernels and copies


def kernels_busy(profile: Profile, each: Utilization) -> int:
    """Measure how long kernels, or graphs traced as a whole, ran on a GPU: their union, ns.

    The rest of its busy time are copies and sets alone.
    """
    table = profile.activities
    rows = (table.device == each.device) & has_times(table) & ~np.isin(table.kind, COPIES)
    start = table.start[rows]
    return BusyTime.union(start, start + table.duration[rows]).within_all(each.windows)
