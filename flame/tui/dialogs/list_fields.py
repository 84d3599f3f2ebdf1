"""Edit the kinds of filters that are chosen from a list of what the trace has."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from flame.core.columns import I8, Column, sum_by
from flame.core.lazy_dataclass import dataclass
from flame.core.model.frames import ACTIVITY_KINDS, Kind
from flame.core.model.grouping import device_name, process_name, thread_name
from flame.core.model.metrics import Metric
from flame.core.model.profile import Profile
from flame.core.projection.filter_options import kind_of
from flame.core.projection.filters import (
    Devices,
    Filter,
    Include,
    Pids,
    Streams,
    Tids,
)


@dataclass(frozen=True)
class Option:
    """One thing to choose: its number or kind, its name, its weight (None: not in the trace)."""

    value: int
    name: str
    weight: int | None


@dataclass(frozen=True)
class ListField:
    """A kind of filter that is chosen from what the trace has, if it ``applies``: has anything."""

    type: type[Filter]
    options: Callable[[Profile], list[Option]]
    chosen: Callable[[Any], tuple[int, ...]]
    make: Callable[[tuple[int, ...]], Filter]
    applies: Callable[[Profile], bool]
    several: bool = False

    @property
    def title(self) -> str:
        """What such filters are called."""
        return kind_of(self.type).title

    def choices(self, profile: Profile, filter_: Filter | None) -> list[Option]:
        """List all options, the heaviest first, then those of ``filter_`` that the trace lacks."""
        options = sorted(self.options(profile), key=lambda option: -(option.weight or 0))
        known = {option.value for option in options}
        chosen = self.chosen(filter_) if filter_ else ()
        absent = [value for value in chosen if value not in known]
        return [*options, *(Option(value, f"{self.title} {value}", None) for value in absent)]


def weight_of(profile: Profile) -> Metric:
    """Return what options are weighed by: the GPU time, or what a file of stacks measures first."""
    return profile.metrics[0]


def _weights(profile: Profile, index: Column, size: int) -> I8:
    """Weights by ``index`` (i4 per group of activities, -1: none) from 0 to ``size``."""
    value, _ = profile.totals_by_group(weight_of(profile))
    return sum_by(index + 1, value, size + 1)[1:]


def _options(rows: Iterable[tuple[int, str]], weights: I8) -> list[Option]:
    """Options of (number, name) rows; those with the same number are one."""
    names: dict[int, str] = {}
    sums: dict[int, int] = {}
    for (number, name), weight in zip(rows, weights.tolist(), strict=True):
        names.setdefault(number, name)
        sums[number] = sums.get(number, 0) + weight
    return [Option(number, name, sums[number]) for number, name in names.items()]


def _devices(profile: Profile) -> list[Option]:
    rows = [(device.id, device_name(device)) for device in profile.devices]
    return _options(rows, _weights(profile, profile.activities.groups.device, len(rows)))


def _streams(profile: Profile) -> list[Option]:
    ids, stream = profile.grouping.stream_ids, profile.activities.groups.stream
    index = np.where(stream < 0, -1, np.searchsorted(ids, stream))
    rows = [(number, f"stream {number}") for number in ids.tolist()]
    return _options(rows, _weights(profile, index, len(rows)))


def _processes(profile: Profile) -> list[Option]:
    rows = [(process.pid, process_name(process)) for process in profile.processes]
    return _options(rows, _weights(profile, profile.activities.groups.process, len(rows)))


def _threads(profile: Profile) -> list[Option]:
    rows = [
        (thread.tid, _thread_name(profile, place)) for place, thread in enumerate(profile.threads)
    ]
    return _options(rows, _weights(profile, profile.activities.groups.thread, len(rows)))


def _thread_name(profile: Profile, place: int) -> str:
    """The thread's name, and its process's if there are several."""
    thread = profile.threads[place]
    if len(profile.processes) < 2:
        return thread_name(thread)
    return f"{thread_name(thread)} of {process_name(profile.processes[thread.process])}"


def _kinds(profile: Profile) -> list[Option]:
    weights = _weights(profile, profile.activities.groups.kind.astype(np.int64), len(Kind))
    return [Option(kind, kind.title, int(weights[kind])) for kind in ACTIVITY_KINDS]


def _ids(filter_: Any) -> tuple[int, ...]:
    return tuple(filter_.ids)


def _included(filter_: Include) -> tuple[int, ...]:
    return tuple(map(int, filter_.kinds))


def _include(kinds: tuple[int, ...]) -> Include:
    return Include(tuple(map(Kind, kinds)))


def _has_streams(profile: Profile) -> bool:
    return len(profile.grouping.stream_ids) > 0


def _has_work(profile: Profile) -> bool:
    return not profile.resolved and len(profile.activities) > 0


def _has_pids(profile: Profile) -> bool:
    return any(process.pid >= 0 for process in profile.processes)


DEVICE_FIELD = ListField(Devices, _devices, _ids, Devices, lambda profile: bool(profile.devices))
STREAM_FIELD = ListField(Streams, _streams, _ids, Streams, _has_streams)
PROCESS_FIELD = ListField(Pids, _processes, _ids, Pids, _has_pids)
THREAD_FIELD = ListField(Tids, _threads, _ids, Tids, lambda profile: bool(profile.threads))
KINDS_FIELD = ListField(Include, _kinds, _included, _include, _has_work)
