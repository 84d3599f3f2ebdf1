"""Find when each GPU ran anything, over all streams and processes, and what a GPU is called."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, rows_by_value
from flame.core.kept_results import kept
from flame.core.model.activities import has_times
from flame.core.model.profile import Profile
from flame.core.timeline.busy_time import BusyTime

_LONGEST_SOURCE = 10


class DeviceTime(NamedTuple):
    """Say when a GPU ran anything: ``busy``, in ns since ``Profile.rows_begin``.

    ``device`` indexes ``Profile.devices``; -1 is where the trace does not say which it was.
    """

    device: int
    label: str
    busy: BusyTime


@kept
def device_times(profile: Profile) -> tuple[DeviceTime, ...]:
    """Find when each GPU of ``profile`` ran anything; kept as long as the profile is.

    None of a file of stacks, nor of a GPU without any activity that has times.
    """
    return tuple(_device_times(profile))


def _device_times(profile: Profile) -> Iterator[DeviceTime]:
    if profile.resolved:
        return
    if profile.known is not None:
        for known in profile.known.busy():
            yield DeviceTime(
                known.device, device_label(profile, known.device), BusyTime(*known[1:])
            )
        return
    table = profile.activities
    for device, rows in _timed_rows(profile).items():
        start = table.start[rows] - profile.rows_begin
        busy = BusyTime.union(start, start + table.duration[rows])
        yield DeviceTime(device, device_label(profile, device), busy)


def timed_rows(profile: Profile, device: int) -> I8:
    """Find the rows of `Profile.activities` with times that a GPU ran; kept with the profile."""
    return _timed_rows(profile).get(device, np.zeros(0, np.int64))


@kept
def _timed_rows(profile: Profile) -> dict[int, I8]:
    device, timed = profile.activities.device, has_times(profile.activities)
    if timed.all():
        return dict(rows_by_value(device))
    rows = np.flatnonzero(timed)
    return {one: rows[places] for one, places in rows_by_value(device[rows])}


def device_label(profile: Profile, device: int, source: int | None = None) -> str:
    """Name a GPU in short, by its number and, of several files, by its file: ``rank 3 GPU0``.

    One of several files is ``rank 3+1 GPU0``, of that file and one more; or as it is in that with
    the number ``source``.
    """
    if device < 0:
        return "GPU"
    gpu = profile.devices[device]
    file = source_label(profile, gpu.source if source is None else source)
    if gpu.further and source is None:
        file = f"{file.rstrip()}+{len(gpu.further)} "
    return f"{file}GPU{gpu.id}"


def source_label(profile: Profile, source: int) -> str:
    """The end of the file's label, which tells most; empty where there is only one file."""
    if len(profile.sources) < 2:
        return ""
    label = profile.sources[source].label
    return f"{label} " if len(label) <= _LONGEST_SOURCE else f"…{label[1 - _LONGEST_SOURCE :]} "
