"""Divide the time in which a GPU was busy among compute, communication and copies."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from flame.core.attribution.nesting import outer_first
from flame.core.columns import I8, U1, Bool
from flame.core.kept_results import kept
from flame.core.model.frames import COPIES, Kind
from flame.core.model.profile import Profile
from flame.core.timeline.busy_time import BusyTime
from flame.core.timeline.devices import device_times, timed_rows


class WorkClass(IntEnum):
    """Class what runs on a GPU. While several do, the time is that of the first of them.

    Kernels that move data between GPUs are ``COMMUNICATION``, all others and graphs that were
    traced as a whole ``COMPUTE``; ``COPY`` are copies and sets.
    """

    COMPUTE = 0
    COMMUNICATION = 1
    COPY = 2


@kept
def work_classes(profile: Profile) -> U1:
    """Class each activity of ``profile``, u1[n] `WorkClass`; kept as long as the profile is."""
    found: U1 = class_of_groups(profile)[profile.activities.groups.of_row]
    return found


@kept
def class_of_groups(profile: Profile) -> U1:
    """Class each group of activities, u1[groups] `WorkClass`."""
    groups = profile.activities.groups
    talks = profile.grouping.communicates(profile.frames)[groups.frame]
    talks &= groups.kind == Kind.KERNEL
    of_group = np.where(talks, WorkClass.COMMUNICATION, WorkClass.COMPUTE)
    of_group[np.isin(groups.kind, COPIES)] = WorkClass.COPY
    return of_group.astype(np.uint8)


class ClassTimes(NamedTuple):
    """Say when a GPU computed; when it did or communicated; when it did anything.

    On the trace's clock.
    """

    compute: BusyTime
    kernels: BusyTime
    all: BusyTime

    def exposed(self, windows: BusyTime) -> tuple[int, int, int]:
        """Divide the busy part of ``windows`` by `WorkClass`, ns: what each kept busy alone."""
        compute, kernels, busy = (times.within_all(windows) for times in self)
        return compute, kernels - compute, busy - kernels


def class_times(profile: Profile, device: int) -> ClassTimes:
    """Find when a GPU of ``profile``, which ran anything, ran which classes of work."""
    return _class_times(profile)[device]


@kept
def _class_times(profile: Profile) -> dict[int, ClassTimes]:
    table, of_group = profile.activities, class_of_groups(profile)
    found = {}
    for each in device_times(profile):
        busy = each.busy.moved(profile.rows_begin)
        if (of_group[table.groups.device == each.device] == WorkClass.COMPUTE).all():
            found[each.device] = ClassTimes(busy, busy, busy)
            continue
        rows, classes = timed_rows(profile, each.device), work_classes(profile)
        start = table.start[rows]
        found[each.device] = _by_class(start, start + table.duration[rows], classes[rows], busy)
    return found


def _by_class(start: I8, end: I8, of: U1, busy: BusyTime) -> ClassTimes:
    """When intervals of each class are open; ``busy`` is when any is."""

    def when(mask: Bool) -> BusyTime:
        return busy if mask.all() else BusyTime.union(start[mask], end[mask])

    computing, kernels = of == WorkClass.COMPUTE, of != WorkClass.COPY
    compute = when(computing)
    return ClassTimes(compute, compute if (computing == kernels).all() else when(kernels), busy)


def exposed_times(profile: Profile, measured: Sequence[WorkClass] = tuple(WorkClass)) -> I8:
    """Measure how long each activity alone of its class kept its GPU busy, i8[n] in ns.

    Only those of the ``measured`` classes count; 0 of all others. Those of all classes add up to
    the time in which the GPUs were busy. Of several of one class that run together, the time is
    that of the one that began first, of equals the longer.
    """
    table, classes = profile.activities, work_classes(profile)
    found = np.zeros(len(table), np.int64)
    for device, *_ in device_times(profile):
        rows_of_device, times = timed_rows(profile, device), class_times(profile, device)
        before = {WorkClass.COMMUNICATION: times.compute, WorkClass.COPY: times.kernels}
        for each in measured:
            rows = rows_of_device[classes[rows_of_device] == each]
            low, high = _first_open(table.start[rows], table.start[rows] + table.duration[rows])
            found[rows] = high - low
            if each in before:
                found[rows] -= before[each].sums_until(high) - before[each].sums_until(low)
    return found


def _first_open(start: I8, end: I8) -> tuple[I8, I8]:
    """The part of each interval in which none that began before it is open, (low, high)."""
    order = outer_first(start, end)
    reach = np.maximum.accumulate(end[order])
    low, high = start.copy(), end.copy()
    low[order[1:]] = np.maximum(start[order[1:]], reach[:-1])
    return low, np.maximum(low, high)
