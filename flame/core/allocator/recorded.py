"""Tell who allocated memory of the GPUs, from an allocator's history."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from flame.core.allocator.growth import find_growth
from flame.core.allocator.out_of_memory import failed_requests
from flame.core.allocator.reserved import reserved_parts
from flame.core.allocator.tables import DeviceAllocations, measured_rows, take_rows
from flame.core.columns import I8
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import NONE, Activities, TableCut
from flame.core.model.allocator.allocations import BEFORE
from flame.core.model.allocator.history import AllocatorHistory
from flame.core.model.allocator.recorded import (
    MemoryElsewhere,
    MemoryOfDevice,
    ReservedParts,
)

_MOST_TABLES = 10


@dataclass(frozen=True, eq=False)
class HistoryMemory:
    """Tell of the ``allocations`` in ``history``, those of each GPU.

    ``places`` are the GPUs' in the profile's devices, ``numbers`` those that ``history`` has for
    them. ``activities`` has a row for each allocation. ``elsewhere`` is memory besides.
    """

    activities: Activities
    places: tuple[int, ...]
    numbers: tuple[int, ...]
    allocations: tuple[DeviceAllocations, ...]
    history: AllocatorHistory
    elsewhere: tuple[MemoryElsewhere, ...] = ()

    @cached_property
    def devices(self) -> tuple[MemoryOfDevice, ...]:
        """What is known of each GPU."""
        parts = reserved_parts(self.history)
        return tuple(
            self._of_device(place, number, own, parts.get(number))
            for place, number, own in zip(self.places, self.numbers, self.allocations, strict=True)
        )

    def _of_device(
        self, place: int, number: int, own: DeviceAllocations, parts: ReservedParts | None
    ) -> MemoryOfDevice:
        events = self.history.events
        events = events.take(events.device == number)
        peak = own.peak(own.whole)
        alive = own.table.alive_at(peak.position)
        before = int(own.table.size[alive & (own.table.begin == BEFORE)].sum())
        boundaries = self._boundaries(number, own)
        return MemoryOfDevice(
            place,
            peak.size,
            peak.position,
            own.time_of(peak.position),
            before,
            own.curve.at(own.whole.last),
            len(events) if self.history.has_events else 0,
            parts,
            failed_requests(events, parts),
            find_growth(own.table, boundaries),
            len(boundaries),
        )

    def _boundaries(self, number: int, own: DeviceAllocations) -> list[int]:
        """The last event of each step; steps that ended between the same two events are one."""
        ends = sorted({end.time for end in self.history.step_ends if end.device == number})
        return sorted({own.last_before(time) for time in ends} - {BEFORE})

    @cached_property
    def fullest(self) -> int:
        """The place of the GPU whose peak is the largest; -1 without any."""
        if not self.places:
            return NONE
        most = np.argmax([own.peak(own.whole).size for own in self.allocations])
        return self.places[int(most)]

    def table(self, metric: str, cut: TableCut) -> Activities:
        """Get the table of the allocations that ``metric`` measures within ``cut``."""
        key = metric, cut
        if key not in self._tables:
            if len(self._tables) == _MOST_TABLES:
                self._tables.pop(next(iter(self._tables)))
            self._tables[key] = self._make_table(metric, cut)
        return self._tables[key]

    def _make_table(self, metric: str, cut: TableCut) -> Activities:
        shown = (self.fullest,) if cut.devices is None else cut.devices
        found = dict(zip(self.places, self.allocations, strict=True))
        chosen = [found[place] for place in (() if cut.is_empty else shown) if place in found]
        parts = [measured_rows(own, metric, own.between(cut.begin, cut.end)) for own in chosen]
        none: I8 = np.zeros(0, np.int64)
        rows = np.concatenate([none, *(rows for rows, _ in parts)])
        values = np.concatenate([none, *(values for _, values in parts)])
        order = np.argsort(rows, kind="stable")
        return take_rows(self.activities, rows[order], metric, values[order])

    @cached_property
    def _tables(self) -> dict[tuple[str, TableCut], Activities]:
        """The tables that were made last."""
        return {}
