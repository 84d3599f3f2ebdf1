"""Merge who allocated memory: the GPUs of all files, each as its own file tells of it."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from flame.core.columns import I4
from flame.core.lazy_dataclass import dataclass
from flame.core.loading.merge_details import ProfilePart
from flame.core.loading.merge_tables import join_columns, renumber_columns
from flame.core.model.activities import NONE, Activities, TableCut
from flame.core.model.allocator.recorded import (
    MemoryElsewhere,
    MemoryOfDevice,
    RecordedMemory,
)
from flame.core.model.stacks import StackTable


@dataclass(frozen=True, eq=False)
class MergedMemory:
    """Tell who allocated memory of the GPUs of ``parts``.

    ``ids`` are the new ones of the stacks of each part, which are rows of ``stacks``.
    """

    parts: tuple[ProfilePart, ...]
    ids: tuple[I4, ...]
    stacks: StackTable

    @cached_property
    def _have(self) -> list[tuple[ProfilePart, I4, RecordedMemory]]:
        pairs = zip(self.parts, self.ids, strict=True)
        return [(part, ids, part.memory()) for part, ids in pairs if part.memory is not None]

    @cached_property
    def devices(self) -> tuple[MemoryOfDevice, ...]:
        """What is known of each GPU."""
        return tuple(
            _renumbered(one, part, ids) for part, ids, own in self._have for one in own.devices
        )

    @property
    def elsewhere(self) -> tuple[MemoryElsewhere, ...]:
        """What was allocated besides, by file and kind."""
        return tuple(one for _, _, own in self._have for one in own.elsewhere)

    @cached_property
    def fullest(self) -> int:
        """The place of the GPU whose peak is the largest; -1 without any."""
        return max(self.devices, key=lambda one: one.peak).device if self.devices else NONE

    @cached_property
    def activities(self) -> Activities:
        """All allocations, a row each."""
        return self._merged([own.activities for _, _, own in self._have])

    def table(self, metric: str, cut: TableCut) -> Activities:
        """Make the table of the allocations that ``metric`` measures within ``cut``."""
        shown = (self.fullest,) if cut.devices is None else cut.devices
        return self._merged(
            [own.table(metric, _cut_of(part, cut, shown)) for part, _, own in self._have]
        )

    def _merged(self, tables: list[Activities]) -> Activities:
        pairs = zip(self._have, tables, strict=True)
        columns = [renumber_columns(part, table, ids) for (part, ids, _), table in pairs]
        measures = join_columns([dict(table.measures) for table in tables])
        return Activities(
            **join_columns(columns), stacks=self.stacks, measures=measures, is_cut=True
        )


def _cut_of(part: ProfilePart, cut: TableCut, shown: tuple[int, ...]) -> TableCut:
    """The part of ``cut`` that is of one file, by its own numbers and clock."""
    begin, end = (None if time is None else time - part.shift for time in (cut.begin, cut.end))
    own = np.flatnonzero(np.isin(part.device[:-1], shown))
    return cut._replace(devices=tuple(own.tolist()), begin=begin, end=end)


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
