"""Read what was given out and taken back of memory, and how large pools of it were."""

from __future__ import annotations

import numpy as np

from flame.core.columns import I4, I8, Bool, unique_rows
from flame.core.model.activities import NONE, repeat
from flame.core.model.allocator.memory_events import (
    ON_DEVICE,
    UNTOLD,
    MemoryEvents,
    ReservedSizes,
)
from flame.core.model.raw import RecordedOrigins
from flame.core.model.side_tables.device_memory import MemoryPlace
from flame.core.readers.fdump.context import DumpContext
from flame.core.readers.fdump.records import NamedColumns
from flame.core.readers.shared.cupti import fit_31_bits, memory_kind
from flame.core.readers.shared.memory_pools import (
    CREATED,
    DESTROYED,
    LOCAL,
    OF_MEMORY,
    TRIMMED,
    PoolRows,
    reserved_in_pools,
)

MEMORY = "memory"
_SIZES = ("bytes", "pool_size", "pool_used")
FIELDS = {
    MEMORY: (
        *("time", "address", *_SIZES, "pool", "python", "nvtx", "tid", "device"),
        *("what", "operation", "kind", "pool_type"),
    )
}
_OF_POOL = 1  # what of a Memory in dump.h
_ALLOCATED, _RELEASED = 1, 2  # CUpti_ActivityMemoryOperationType
_MOST_BYTES = 1 << 53
"""Bytes beyond are damage: sums fit 64 bits."""


class DumpMemoryRows:
    """Collects records of memory, which come in no order."""

    def __init__(self, context: DumpContext) -> None:
        self._context = context
        self._parts: list[NamedColumns] = []
        self._left_out = 0

    def add(self, piece: dict[str, I8]) -> None:
        """Add records; those that make no sense are counted."""
        time, known = self._context.times(piece["time"])
        sane = known & _makes_sense(piece)
        self._left_out += int(len(sane) - sane.sum())
        rows = {name: column[sane] for name, column in piece.items()}
        self._parts.append(rows | {"time": time[sane]} | self._context.thread_and_stacks(rows))

    def build(self) -> tuple[MemoryEvents, RecordedOrigins] | None:
        """Build all events in order, and where they come from; None where nothing was recorded."""
        parts = [part for part in self._parts if len(part["time"])]
        if not parts:
            return None
        table = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        order = np.argsort(table["time"], kind="stable")
        table = {name: column[order] for name, column in table.items()}
        is_event = table["what"] != _OF_POOL
        rows = {name: column[is_event] for name, column in table.items()}
        if not len(rows["time"]):
            return None
        origins = RecordedOrigins(rows["thread"], rows["python"], rows["nvtx"])
        return self._events(rows, _reserved(table, is_event, self._devices(table))), origins

    def _events(self, rows: NamedColumns, reserved: ReservedSizes | None) -> MemoryEvents:
        first, place = unique_rows([fit_31_bits(rows["device"]), rows["kind"]])
        keys = zip(rows["device"][first].tolist(), rows["kind"][first].tolist(), strict=True)
        nothing = np.zeros(len(place), np.int64)
        return MemoryEvents(
            rows["time"],
            # An address is of one allocation at a time in the whole process, whichever its GPU.
            nothing.astype(np.int32),
            place.astype(np.int32),
            rows["address"],
            rows["bytes"],
            rows["operation"] == _ALLOCATED,
            repeat(np.int32(self._context.process), len(place)),
            rows["thread"],
            nothing,
            nothing + UNTOLD,
            tuple(self._place(*key) for key in keys),
            self._left_out,
            reserved,
        )

    def _place(self, number: int, kind: int) -> MemoryPlace:
        name = memory_kind(kind) or ""
        [gpu] = fit_31_bits(np.array([number])).tolist()
        device = NONE
        if name in ON_DEVICE and gpu != NONE:
            [device] = self._context.devices.look_up([np.array([gpu])]).tolist()
        return MemoryPlace(0, self._context.process, device, gpu, name)

    def _devices(self, table: NamedColumns) -> I4:
        """The GPU of each record of memory that is its own or of a pool; -1 of others."""
        own = [number for number in range(256) if memory_kind(number) in ON_DEVICE]
        of_gpu = (table["what"] == _OF_POOL) | np.isin(table["kind"], own)
        numbers = np.where(of_gpu, fit_31_bits(table["device"]), NONE)
        return self._context.devices.look_up([numbers])


def _makes_sense(piece: dict[str, I8]) -> Bool:
    sane: Bool = np.isin(piece["operation"], (_ALLOCATED, _RELEASED)) & (piece["what"] != _OF_POOL)
    of_pool = (piece["what"] == _OF_POOL) & (piece["pool_type"] == LOCAL)
    sane |= of_pool & np.isin(piece["operation"], (CREATED, DESTROYED, TRIMMED))
    for name in _SIZES:
        sane &= (piece[name] >= 0) & (piece[name] < _MOST_BYTES)
    return sane


def _reserved(table: NamedColumns, is_event: Bool, device: I4) -> ReservedSizes | None:
    """What the ``table`` tells of pools, of which the rows ``is_event`` are events of memory."""
    covered = (table["pool_type"] == LOCAL) & (table["pool"] != 0) & (device >= 0)
    rows = np.flatnonzero(covered)
    told = {name: column[rows] for name, column in table.items()}
    of_memory, operation = is_event[rows], told["operation"]
    return reserved_in_pools(
        PoolRows(
            (np.cumsum(is_event) - 1)[rows],
            told["time"],
            told["pool"],
            device[rows],
            told["pool_size"],
            told["pool_used"],
            np.where(of_memory & (operation == _ALLOCATED), told["bytes"], 0),
            np.where(of_memory, OF_MEMORY, operation),
        ),
        covered[is_event],
    )
