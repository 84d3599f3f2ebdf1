"""Tell how much memory lived, and was reserved, over time."""

from __future__ import annotations

import numpy as np

from flame.core.allocator.reserved_curve import ReservedCurve, with_reserved
from flame.core.allocator.tables import DeviceAllocations
from flame.core.columns import I8
from flame.core.model.allocator.allocations import BEFORE
from flame.core.model.allocator.history import NO_TIME, AllocatorAction, AllocatorEvents
from flame.core.model.allocator.recorded import MemoryCurve, ReservedParts

_GROWTH = {
    AllocatorAction.SEGMENT_ALLOC: 1,
    AllocatorAction.SEGMENT_MAP: 1,
    AllocatorAction.SEGMENT_FREE: -1,
    AllocatorAction.SEGMENT_UNMAP: -1,
}


def memory_curve(
    place: int,
    own: DeviceAllocations,
    events: AllocatorEvents,
    parts: ReservedParts | None,
    reserved_curve: ReservedCurve | None = None,
) -> MemoryCurve | None:
    """Follow the memory of the device at ``place`` over its ``events``; None without times.

    What was reserved is ``reserved_curve``, else rolled back from the ``parts`` of the end.
    """
    rows = np.flatnonzero(events.time != NO_TIME)
    if not len(rows):
        return None
    position = np.append(BEFORE, events.position[rows])
    time = np.maximum.accumulate(events.time[rows])
    live = own.curve.size[np.searchsorted(own.curve.position, position, "right") - 1]
    reserved = _reserved(events, parts)
    if reserved is not None:
        reserved = reserved[np.append(0, rows + 1)]
        if (reserved < live).any():  # events of segments are missing
            reserved = None
    curve = MemoryCurve(place, position, np.append(time[:1], time), live, reserved)
    return curve if reserved_curve is None else with_reserved(curve, reserved_curve)


def _reserved(events: AllocatorEvents, parts: ReservedParts | None) -> I8 | None:
    """What was reserved before the first of ``events`` and after each, rolled back from the end."""
    if parts is None:
        return None
    sign = np.zeros(max(AllocatorAction) + 1, np.int64)
    for action, direction in _GROWTH.items():
        sign[action] = direction
    grown = np.cumsum(np.append(0, sign[events.action] * events.size))
    reserved: I8 = parts.reserved - grown[-1] + grown
    return reserved
