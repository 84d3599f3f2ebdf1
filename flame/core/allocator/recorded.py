"""Tell who allocated memory of the GPUs, from an allocator's history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from functools import cached_property

import numpy as np

from flame.core.allocator.cut_tables import CutTables
from flame.core.allocator.growth import find_growth
from flame.core.allocator.moments import check_time, failures_within, last_failure
from flame.core.allocator.out_of_memory import failed_requests
from flame.core.allocator.over_time import memory_curve
from flame.core.allocator.reserved import reserved_parts
from flame.core.allocator.reserved_curve import ReservedCurve
from flame.core.allocator.tables import (
    DeviceAllocations,
    measured_rows,
    take_rows,
)
from flame.core.columns import I8, rows_by_value
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import NONE, Activities, TableCut
from flame.core.model.allocator.allocations import BEFORE
from flame.core.model.allocator.history import EVERY_DEVICE, AllocatorEvents, AllocatorHistory
from flame.core.model.allocator.recorded import (
    MemoryCurve,
    MemoryElsewhere,
    MemoryLives,
    MemoryMoment,
    MemoryOfDevice,
    ReservedParts,
)
from flame.core.model.metrics import OF_A_MOMENT


@dataclass(frozen=True, eq=False)
class HistoryMemory(CutTables):
    """Tell of the ``allocations`` in ``history``, those of each GPU.

    ``places`` are the GPUs' in the profile's devices, ``numbers`` those that ``history`` has for
    them. ``activities`` has a row for each allocation. ``elsewhere`` is memory besides.
    ``reserved`` is what is told of it over time, by place; else the history tells.
    """

    activities: Activities
    places: tuple[int, ...]
    numbers: tuple[int, ...]
    allocations: tuple[DeviceAllocations, ...]
    history: AllocatorHistory
    elsewhere: tuple[MemoryElsewhere, ...] = ()
    reserved: Mapping[int, ReservedCurve] = field(default_factory=dict)

    @cached_property
    def devices(self) -> tuple[MemoryOfDevice, ...]:
        """What is known of each GPU."""
        return tuple(
            self._of_device(place, number, own, self._parts.get(number))
            for place, number, own in zip(self.places, self.numbers, self.allocations, strict=True)
        )

    def _of_device(
        self, place: int, number: int, own: DeviceAllocations, parts: ReservedParts | None
    ) -> MemoryOfDevice:
        events = self._events_of(number)
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

    def _events_of(self, number: int) -> AllocatorEvents:
        """What happened on the GPU that the history has ``number`` for."""
        return self.history.events.take(self._event_rows.get(number, np.zeros(0, np.int64)))

    @cached_property
    def _event_rows(self) -> dict[int, I8]:
        """The rows of the events of each GPU."""
        return dict(rows_by_value(self.history.events.device))

    def _boundaries(self, number: int, own: DeviceAllocations) -> list[int]:
        """The last event of each step; steps that ended between the same two events are one."""
        ends = self._step_ends.get(number, self._step_ends.get(EVERY_DEVICE))
        found: list[int] = [] if ends is None else own.last_before_each(ends).tolist()
        return found

    @cached_property
    def _step_ends(self) -> dict[int, I8]:
        """When steps ended on each GPU, ascending, ns."""
        ends = self.history.step_ends
        time = np.array([end.time for end in ends], np.int64)
        device = np.array([end.device for end in ends], np.int64)
        return {one: np.sort(time[rows]) for one, rows in rows_by_value(device)}

    @cached_property
    def fullest(self) -> int:
        """The place of the GPU whose peak is the largest; -1 without any."""
        if not self.places:
            return NONE
        most = np.argmax([own.peak(own.whole).size for own in self.allocations])
        return self.places[int(most)]

    def _make_table(self, metric: str, cut: TableCut) -> Activities:
        return take_rows(self.activities, *self._rows(metric, cut), metric)

    def _rows(self, metric: str, cut: TableCut) -> tuple[I8, I8]:
        """The allocations that ``metric`` measures within ``cut``, in order, and their bytes."""
        none: I8 = np.zeros(0, np.int64)
        found = [(none, none)]
        for place, moment in self._positions(metric, cut):
            own = self._by_place[place]
            found.append(measured_rows(own, metric, own.between(cut.begin, cut.end), moment))
        rows, values = (np.concatenate(columns) for columns in zip(*found, strict=True))
        order = np.argsort(rows, kind="stable")
        return rows[order], values[order]

    def lives(self, metric: str, cut: TableCut) -> MemoryLives:
        """Tell how long the allocations lived that `table` has."""
        rows, _ = self._rows(metric, cut)
        return self._lives.take(rows)

    @cached_property
    def _lives(self) -> MemoryLives:
        """That of all allocations."""
        size = len(self.activities)
        amounts, flags = np.zeros((2, size), np.int64), np.zeros((2, size), bool)
        for own in self.allocations:
            amounts[:, own.rows] = own.lives.size, own.lives.lifetime
            flags[:, own.rows] = own.lives.before, own.lives.alive
        return MemoryLives(*amounts, *flags)

    @cached_property
    def _parts(self) -> dict[int, ReservedParts]:
        """What is reserved on each GPU, by the number that the history has for it."""
        return reserved_parts(self.history)

    @cached_property
    def _by_place(self) -> dict[int, DeviceAllocations]:
        return dict(zip(self.places, self.allocations, strict=True))

    def moments(self, metric: str, cut: TableCut) -> tuple[MemoryMoment, ...]:
        """Tell which moment ``metric`` shows of each GPU within ``cut``; none over a time."""
        if metric not in OF_A_MOMENT:
            return ()
        return tuple(self._moment(*each) for each in self._positions(metric, cut))

    def _moment(self, place: int, position: int) -> MemoryMoment:
        curve = self._curve_by_place.get(place)
        at = -1 if curve is None else int(np.searchsorted(curve.position, position))
        known = curve is not None and at < len(curve.time)
        time = int(curve.time[at]) if curve is not None and known else None
        return MemoryMoment(place, position, time, self._by_place[place].curve.at(position))

    def _positions(self, metric: str, cut: TableCut) -> Iterator[tuple[int, int]]:
        """Each GPU that ``cut`` shows, and the event right after which ``metric`` shows it."""
        if cut.is_empty:
            return
        if cut.moment == "oom" and metric in OF_A_MOMENT:
            yield from self._at_failure(cut)
            return
        if isinstance(cut.moment, int) and metric in OF_A_MOMENT:
            check_time(cut.moment, self.history.events.time, cut)
        for place in self._shown(cut):
            own = self._by_place[place]
            window = own.between(cut.begin, cut.end)
            if isinstance(cut.moment, int) and metric in OF_A_MOMENT:
                yield place, self._position_at(place, cut.moment)
            elif (cut.moment or metric) == "peak":
                yield place, own.peak(window).position
            else:
                yield place, window.last

    def _shown(self, cut: TableCut) -> list[int]:
        """The GPUs that ``cut`` chooses, of those whose memory is known."""
        wanted = (self.fullest,) if cut.devices is None else cut.devices
        return [place for place in wanted if place in self._by_place]

    def _at_failure(self, cut: TableCut) -> Iterator[tuple[int, int]]:
        """The GPU on which the last request failed, and others that are shown, at that time."""
        device, last = last_failure(failures_within(self.devices, cut))
        for place in (device,) if cut.devices is None else self._shown(cut):
            here = place == device
            yield place, last.position if here else self._position_at(place, last.time)

    def _position_at(self, place: int, time: int) -> int:
        """The event of a GPU right after which it was ``time``, ns; its last without times."""
        curve = self._curve_by_place.get(place)
        return self._by_place[place].whole.last if curve is None else curve.position_at(time)

    @cached_property
    def curves(self) -> tuple[MemoryCurve, ...]:
        """How much lived over time on each GPU whose events have times."""
        return tuple(self._curve_by_place.values())

    @cached_property
    def _curve_by_place(self) -> dict[int, MemoryCurve]:
        curves = (
            memory_curve(
                place,
                self._by_place[place],
                self._events_of(number),
                self._parts.get(number),
                self.reserved.get(place),
            )
            for place, number in zip(self.places, self.numbers, strict=True)
        )
        return {curve.device: curve for curve in curves if curve is not None}
