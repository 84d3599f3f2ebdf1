"""Number the GPUs of several files: one that processes of several files used is one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from flame.core.attribution.attribute import idle_before
from flame.core.columns import I4, I8
from flame.core.model.activities import NONE, Activities, has_times
from flame.core.model.meta import Device, Source
from flame.core.model.profile import Profile

_MOST_NAMED = 4

_Key = tuple[str, str]
"""The clock of a recording, and a UUID in it."""


class SharedGpus:
    """Collects the GPUs of files. Of one recording those of equal UUID are one.

    A GPU whose memory several processes recorded is one for each of them: what each held is told
    of, what all held together is not.
    """

    def __init__(self) -> None:
        self.devices: list[Device] = []
        self._places: dict[_Key, int] = {}

    def add(self, profile: Profile, source: int) -> I4:
        """Add the GPUs of a file, and return their new numbers; -1 for what is unknown."""
        numbers = [self._add(device, profile, source) for device in profile.devices]
        return np.array([*numbers, NONE], np.int32)

    def _add(self, device: Device, profile: Profile, source: int) -> int:
        key = profile.meta.clock, device.uuid
        mergeable = all(key) and not _has_memory(profile)
        known = self._places.get(key) if mergeable else None
        if known is None:
            self.devices.append(replace(device, source=source))
            known = len(self.devices) - 1
            if mergeable:
                self._places[key] = known
        elif source not in self.devices[known].sources:
            first = self.devices[known]
            self.devices[known] = replace(first, further=(*first.further, source))
        return known


def _has_memory(profile: Profile) -> bool:
    return profile.memory_builder is not None or profile.allocator_builder is not None


def with_idle_of_shared(table: Activities, devices: Sequence[Device]) -> Activities:
    """Measure anew how long a GPU of several files had been empty before each activity.

    What a file says of that counts its own activities alone.
    """
    shared = [place for place, device in enumerate(devices) if device.further]
    if not shared:
        return table
    rows = np.flatnonzero(np.isin(table.device, shared))
    found: I8 = table.idle.copy()
    found[rows] = idle_before(
        table.device[rows], table.start[rows], table.duration[rows], has_times(table)[rows]
    )
    return replace(table, idle=found)


def shared_gpu_warnings(devices: Sequence[Device], sources: Sequence[Source]) -> Iterator[str]:
    """Yield a warning for each GPU of a recording that is told of as several, by its UUID."""
    owners: dict[_Key, list[Device]] = {}
    for device in devices:
        if device.uuid:
            key = sources[device.source].meta.clock, device.uuid
            owners.setdefault(key, []).append(device)
    for same in owners.values():
        if len(same) > 1:
            yield (
                f"{_named(same, sources)} are one GPU: how busy it was is told of what each of "
                "them ran alone"
            )


def _named(devices: Sequence[Device], sources: Sequence[Source]) -> str:
    names = [f"GPU {one.id} of {sources[one.source].label}" for one in devices[:_MOST_NAMED]]
    if more := len(devices) - len(names):
        return f"{', '.join(names)} and {more} more"
    return f"{', '.join(names[:-1])} and {names[-1]}"
