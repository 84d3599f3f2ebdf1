"""Merge who held the memory of GPUs, of several snapshots: each GPU stays at its own peak."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np

from flame.core.columns import I4
from flame.core.errors import InputError
from flame.core.lazy_dataclass import dataclass
from flame.core.loading.merge_details import ProfilePart
from flame.core.model.activities import Activities, TableCut
from flame.core.model.allocator.recorded import (
    MemoryCurve,
    MemoryLives,
    MemoryMoment,
    MemoryOfDevice,
    RecordedMemory,
)
from flame.core.model.profile import Profile
from flame.core.model.stacks import StackBuilder, StackTable

_MOST_TABLES = 10

MergeTables = Callable[[Sequence[ProfilePart], Sequence[Activities]], Activities]


@dataclass(frozen=True, eq=False)
class MemoryPart:
    """Hold the memory of one of several files, with the new numbers of what it has.

    ``recorded`` are its stacks, by which it numbers those of growth and of failed requests.
    """

    memory: RecordedMemory
    part: ProfilePart
    recorded: StackTable


@dataclass(frozen=True, eq=False)
class MergedMemory:
    """Tell of the memory of all GPUs of several files, in the order of the merged devices.

    ``stacks`` are those of the merged profile.
    """

    parts: tuple[MemoryPart, ...]
    stacks: StackTable
    merge: MergeTables

    @cached_property
    def devices(self) -> tuple[MemoryOfDevice, ...]:
        """What is known of each GPU."""
        builder = StackBuilder.from_table(self.stacks)
        return tuple(
            _renumbered(one, each.part, builder.absorb(each.recorded, each.part.frames))
            for each in self.parts
            for one in each.memory.devices
        )

    def table(self, metric: str, cut: TableCut) -> Activities:
        """Get the table of the allocations that ``metric`` measures within ``cut``."""
        key = metric, cut
        if key not in self._tables:
            if len(self._tables) == _MOST_TABLES:
                self._tables.pop(next(iter(self._tables)))
            self._tables[key] = self._make_table(metric, cut)
        return self._tables[key]

    @cached_property
    def _tables(self) -> dict[tuple[str, TableCut], Activities]:
        """The tables that were made last."""
        return {}

    def _make_table(self, metric: str, cut: TableCut) -> Activities:
        tables = [each.memory.table(metric, own) for each, own in self._cuts(cut)]
        return self.merge([each.part for each in self.parts], tables)

    def _cuts(self, cut: TableCut) -> Iterator[tuple[MemoryPart, TableCut]]:
        """Each file, and what ``cut`` says of it in its own numbers and times."""
        if cut.devices is None:
            fullest = max(self.devices, key=lambda one: one.peak).device
            cut = cut._replace(devices=(fullest,))
        return ((each, _own_cut(cut, each.part)) for each in self.parts)

    @cached_property
    def curves(self) -> tuple[MemoryCurve, ...]:
        """How much lived over time on each GPU whose events have times."""
        return tuple(
            one._replace(device=int(each.part.device[one.device]), time=one.time + each.part.shift)
            for each in self.parts
            for one in each.memory.curves
        )

    def moments(self, metric: str, cut: TableCut) -> tuple[MemoryMoment, ...]:
        """Tell which moment ``metric`` shows of each GPU within ``cut``; none over a time."""
        return tuple(
            one._replace(
                device=int(each.part.device[one.device]),
                time=None if one.time is None else one.time + each.part.shift,
            )
            for each, own in self._cuts(cut)
            if own.devices
            for one in each.memory.moments(metric, own)
        )

    def lives(self, metric: str, cut: TableCut) -> MemoryLives:
        """Tell how long the allocations lived that `table` has."""
        parts = [each.memory.lives(metric, own) for each, own in self._cuts(cut)]
        size, lifetime, before, alive = map(np.concatenate, zip(*parts, strict=True))
        return MemoryLives(size, lifetime, before, alive)


def _own_cut(cut: TableCut, part: ProfilePart) -> TableCut:
    """Say in the numbers and times of ``part`` what ``cut`` says of all."""
    of_part = part.device[:-1].tolist()
    chosen = tuple(of_part.index(device) for device in cut.devices or () if device in of_part)
    begin, end = (None if time is None else time - part.shift for time in (cut.begin, cut.end))
    moment = cut.moment if chosen else None  # what is not shown has none
    if isinstance(moment, int):
        moment -= part.shift
    return cut._replace(devices=chosen, begin=begin, end=end, moment=moment)


def _renumbered(one: MemoryOfDevice, part: ProfilePart, stacks: I4) -> MemoryOfDevice:
    failed = (
        each._replace(
            time=each.time + part.shift if each.time >= 0 else each.time,
            stack=int(stacks[each.stack]),
        )
        for each in one.out_of_memory
    )
    grown = (
        each._replace(stack=int(stacks[each.stack]), native=int(stacks[each.native]))
        for each in one.growth
    )
    return one._replace(
        device=int(part.device[one.device]),
        peak_time=None if one.peak_time is None else one.peak_time + part.shift,
        out_of_memory=tuple(failed),
        growth=tuple(grown),
    )


def merge_memory(
    profiles: Sequence[Profile],
    parts: Sequence[ProfilePart],
    stacks: StackTable,
    merge: MergeTables,
) -> MergedMemory | None:
    """Merge the memory of ``profiles``, None without any; ``merge`` joins tables."""
    found = tuple(
        MemoryPart(profile.memory, part, profile.activities.stacks)
        for profile, part in zip(profiles, parts, strict=True)
        if profile.memory is not None
    )
    return MergedMemory(found, stacks, merge) if found else None


def check_kinds(profiles: Sequence[Profile], labels: Sequence[str]) -> None:
    """Raise InputError for a memory snapshot beside another trace: nothing measures both."""
    is_snapshot = np.array([one.resolved and one.memory is not None for one in profiles])
    if is_snapshot.any() and not is_snapshot.all():
        snapshot, other = (labels[int(np.argmax(is_snapshot == kind))] for kind in (True, False))
        raise InputError(
            f"{snapshot} is a memory snapshot, {other} is none: they have no metric in common, "
            "open them one by one"
        )
