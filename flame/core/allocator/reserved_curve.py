"""Tell how much memory of a trace's GPUs was reserved over time, by allocators or in pools."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.allocator.live import LiveCurve, live_curve
from flame.core.columns import I4, I8, Bool, places_in, run_starts
from flame.core.model.allocator.allocations import Allocations
from flame.core.model.allocator.memory_events import UNTOLD, MemoryEvents, ReservedSizes
from flame.core.model.allocator.recorded import MemoryCurve

_NONE_YET = -1


class ReservedCurve(NamedTuple):
    """Hold how much was reserved on a device: ``size`` i8[n] bytes right after its events.

    ``position`` i8[n] is the event among those of the device, `BEFORE` before the first; ``time``
    i8[n] is when, ns. ``before`` was reserved before the first row.
    """

    position: I8
    time: I8
    size: I8
    before: int


def reserved_curves(
    events: MemoryEvents, allocations: Allocations, device: I4, is_own: Bool
) -> dict[int, ReservedCurve]:
    """Work out what was reserved on each GPU over ``events``, whose ``allocations`` these are.

    ``device`` i4[places] is the GPU of each place, ``is_own`` bool[places] whether its memory is
    the GPU's own. GPUs of which nothing is told, or not how it began, are left out.
    """
    reserved = events.reserved
    if reserved is None:
        return {}
    found = {}
    for number in np.unique(reserved.device).tolist():
        here = is_own & (device == number)
        told = np.flatnonzero(reserved.device == number)
        before = _told_before(reserved, told)
        if before is not None and here[events.place].any():
            alone = here[events.place] & ~reserved.covered
            besides = live_curve(allocations.take(alone[allocations.stream]))
            changes = _joined(_changes(reserved, told), _steps(besides, events.time))
            rows = np.flatnonzero(here[events.place])
            found[number] = _curve(changes, rows, before + int(besides.size[0]))
    return found


class _Changes(NamedTuple):
    """Say by how many bytes what is reserved changes: after which event of all, and when."""

    row: I8
    time: I8
    change: I8


def _joined(*parts: _Changes) -> _Changes:
    """All changes in order."""
    row, time, change = map(np.concatenate, zip(*parts, strict=True))
    order = np.lexsort((time, row))
    return _Changes(row[order], time[order], change[order])


def _steps(curve: LiveCurve, time: I8) -> _Changes:
    """The changes of what lives, of events at these times."""
    rows = curve.position[1:]
    return _Changes(rows, time[rows], np.diff(curve.size))


def _curve(changes: _Changes, rows: I8, before: int) -> ReservedCurve:
    """What is reserved on a GPU, whose events are ``rows`` of all."""
    position = places_in(rows, changes.row, "right") - 1
    return ReservedCurve(position, changes.time, np.cumsum(changes.change) + before, before)


def _told_before(reserved: ReservedSizes, told: I8) -> int | None:
    """What was reserved before the first of the rows ``told``; None where one does not say."""
    order = told[np.argsort(reserved.source[told], kind="stable")]
    before = reserved.before[order[run_starts(reserved.source[order])]]
    return None if (before == UNTOLD).any() else int(before.sum())


def _changes(reserved: ReservedSizes, told: I8) -> _Changes:
    """The changes of what is reserved by allocators and in pools, of the rows ``told``."""
    order = told[np.argsort(reserved.source[told], kind="stable")]
    size = reserved.size[order]
    change = np.append(0, np.diff(size))[: len(size)]
    first = run_starts(reserved.source[order])
    change[first] = size[first] - reserved.before[order[first]]
    return _Changes(reserved.row[order], reserved.time[order], change)


def with_reserved(curve: MemoryCurve, reserved_curve: ReservedCurve) -> MemoryCurve:
    """Add to ``curve`` what was reserved; None of it where more lived than that."""
    last = np.searchsorted(curve.position, reserved_curve.position, "right") - 1
    later = reserved_curve.time > curve.time[last]  # than the event before it: a row of its own
    position = np.concatenate([reserved_curve.position, curve.position])
    time = np.concatenate([reserved_curve.time, curve.time])
    live = np.concatenate([curve.live[last], curve.live])
    rank = np.concatenate([np.where(later, 2, 0), np.ones(len(curve.position), np.int64)])
    order = np.lexsort((time * (rank == 2), rank, position))
    is_told = order < len(reserved_curve.position)
    latest = np.maximum.accumulate(np.where(is_told, np.arange(len(order)), _NONE_YET))
    sizes = np.append(reserved_curve.size, np.zeros(len(curve.position), np.int64))[order]
    reserved = np.where(latest == _NONE_YET, reserved_curve.before, sizes[latest])
    kept = rank[order] > 0
    order, reserved = order[kept], reserved[kept]
    if (reserved < live[order]).any():
        return curve
    return curve._replace(
        position=position[order],
        time=np.maximum.accumulate(time[order]),
        live=live[order],
        reserved=reserved,
    )
