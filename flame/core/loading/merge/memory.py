"""Merge who allocated memory: the GPUs of all files, each as its own file tells of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from flame.core.allocator.cut_tables import CutTables
from flame.core.allocator.moments import check_time, failures_within, last_failure
from flame.core.columns import I4
from flame.core.errors import InputError
from flame.core.lazy_dataclass import dataclass
from flame.core.loading.merge.details import ProfilePart
from flame.core.loading.merge.tables import join_columns, renumber_columns
from flame.core.model.activities import NONE, Activities, TableCut
from flame.core.model.allocator.recorded import (
    MemoryCurve,
    MemoryElsewhere,
    MemoryLives,
    MemoryMoment,
    MemoryOfDevice,
    RecordedMemory,
)
from flame.core.model.metrics import OF_A_MOMENT
from flame.core.model.profile import Profile
from flame.core.model.stacks import StackTable


class _File(NamedTuple):
    """A file that tells of memory: what it is called, its new numbers, ids of stacks too."""

    label: str
    part: ProfilePart
    ids: I4
    memory: RecordedMemory


@dataclass(frozen=True, eq=False)
class MergedMemory(CutTables):
    """Tell who allocated memory of the GPUs of ``parts``, files that are called ``labels``.

    ``ids`` are the new ones of the stacks of each part, which are rows of ``stacks``.
    """

    parts: tuple[ProfilePart, ...]
    labels: tuple[str, ...]
    ids: tuple[I4, ...]
    stacks: StackTable

    @cached_property
    def _have(self) -> list[_File]:
        files = zip(self.labels, self.parts, self.ids, strict=True)
        return [_File(*file, memory()) for file in files if (memory := file[1].memory) is not None]

    @cached_property
    def devices(self) -> tuple[MemoryOfDevice, ...]:
        """What is known of each GPU."""
        return tuple(
            _renumbered(one, file.part, file.ids)
            for file in self._have
            for one in file.memory.devices
        )

    @property
    def elsewhere(self) -> tuple[MemoryElsewhere, ...]:
        """What was allocated besides, by file and kind."""
        return tuple(one for file in self._have for one in file.memory.elsewhere)

    @cached_property
    def fullest(self) -> int:
        """The place of the GPU whose peak is the largest; -1 without any."""
        return max(self.devices, key=lambda one: one.peak).device if self.devices else NONE

    @cached_property
    def activities(self) -> Activities:
        """All allocations, a row each."""
        return self._merged([file.memory.activities for file in self._have])

    def _make_table(self, metric: str, cut: TableCut) -> Activities:
        cuts = self._cuts(metric, cut)
        return self._merged([file.memory.table(metric, own) for file, own in cuts])

    def _cuts(self, metric: str, cut: TableCut) -> Iterator[tuple[_File, TableCut]]:
        """Each file, and what ``cut`` says of it in its own numbers and times."""
        shown = self._shown(metric, cut)
        if isinstance(cut.moment, int) and metric in OF_A_MOMENT and not cut.is_empty:
            self._check_time(cut.moment, cut, shown)
        return ((file, _cut_of(file.part, cut, shown)) for file in self._have)

    def _shown(self, metric: str, cut: TableCut) -> tuple[int, ...]:
        """The GPUs that ``cut`` shows: at a failed request those of files in which one failed.

        UsageError where none did.
        """
        if cut.moment != "oom" or metric not in OF_A_MOMENT or cut.is_empty:
            return (self.fullest,) if cut.devices is None else cut.devices
        failures = failures_within(self.devices, cut)
        last, _ = last_failure(failures)
        if cut.devices is None:
            return (last,)
        failed = {self._files[device] for device, _ in failures}
        return tuple(device for device in cut.devices if self._files.get(device) in failed)

    @cached_property
    def _files(self) -> dict[int, int]:
        """The place of its file, of each GPU whose memory is known."""
        return {
            device: place
            for place, file in enumerate(self._have)
            for device in file.part.device[:-1].tolist()
        }

    def _check_time(self, time: int, cut: TableCut, shown: tuple[int, ...]) -> None:
        """Refuse a moment that the history of one of the files of ``shown`` GPUs does not have."""
        for place in dict.fromkeys(map(self._files.get, shown)):
            if place is not None:
                file = self._have[place]
                times = [one.time + file.part.shift for one in file.memory.curves]
                check_time(time, np.concatenate([np.zeros(0, np.int64), *times]), cut, file.label)

    @cached_property
    def curves(self) -> tuple[MemoryCurve, ...]:
        """How much lived over time on each GPU whose events have times."""
        return tuple(
            one._replace(device=int(file.part.device[one.device]), time=one.time + file.part.shift)
            for file in self._have
            for one in file.memory.curves
        )

    def moments(self, metric: str, cut: TableCut) -> tuple[MemoryMoment, ...]:
        """Tell which moment ``metric`` shows of each GPU within ``cut``; none over a time."""
        return tuple(
            one._replace(
                device=int(file.part.device[one.device]),
                time=None if one.time is None else one.time + file.part.shift,
            )
            for file, own in self._cuts(metric, cut)
            if own.devices
            for one in file.memory.moments(metric, own)
        )

    def lives(self, metric: str, cut: TableCut) -> MemoryLives:
        """Tell how long the allocations lived that `table` has."""
        parts = [file.memory.lives(metric, own) for file, own in self._cuts(metric, cut)]
        size, lifetime, before, alive = map(np.concatenate, zip(*parts, strict=True))
        return MemoryLives(size, lifetime, before, alive)

    def _merged(self, tables: list[Activities]) -> Activities:
        pairs = zip(self._have, tables, strict=True)
        columns = [renumber_columns(file.part, table, file.ids) for file, table in pairs]
        measures = join_columns([dict(table.measures) for table in tables])
        return Activities(
            **join_columns(columns), stacks=self.stacks, measures=measures, is_cut=True
        )


def _cut_of(part: ProfilePart, cut: TableCut, shown: tuple[int, ...]) -> TableCut:
    """The part of ``cut`` that is of one file, by its own numbers and clock."""
    begin, end = (None if time is None else time - part.shift for time in (cut.begin, cut.end))
    own = tuple(np.flatnonzero(np.isin(part.device[:-1], shown)).tolist())
    moment = cut.moment if own else None  # what is not shown has none
    if isinstance(moment, int):
        moment -= part.shift
    return cut._replace(devices=own, begin=begin, end=end, moment=moment)


def _renumbered(one: MemoryOfDevice, part: ProfilePart, ids: I4) -> MemoryOfDevice:
    failures = (
        each._replace(
            time=each.time + part.shift if each.time >= 0 else each.time, stack=int(ids[each.stack])
        )
        for each in one.out_of_memory
    )
    growth = (
        each._replace(stack=int(ids[each.stack]), native=int(ids[each.native]))
        for each in one.growth
    )
    return one._replace(
        device=int(part.device[one.device]),
        peak_time=None if one.peak_time is None else one.peak_time + part.shift,
        out_of_memory=tuple(failures),
        growth=tuple(growth),
    )


def check_kinds(profiles: Sequence[Profile], labels: Sequence[str]) -> None:
    """Raise InputError for a memory snapshot beside another trace: nothing measures both."""
    is_snapshot = np.array([one.resolved and one.memory_builder is not None for one in profiles])
    if is_snapshot.any() and not is_snapshot.all():
        snapshot, other = (labels[int(np.argmax(is_snapshot == kind))] for kind in (True, False))
        raise InputError(
            f"{snapshot} is a memory snapshot, {other} is none: they have no metric in common, "
            "open them one by one"
        )
