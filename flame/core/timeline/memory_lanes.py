"""Lay out over time how much memory lived on each GPU: a lane of stretches, from event to event."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from flame.core.columns import F8, I8, Column
from flame.core.model.activities import NONE
from flame.core.model.allocator.recorded import MemoryCurve, OutOfMemory
from flame.core.model.profile import Profile
from flame.core.timeline.devices import device_label
from flame.core.timeline.lanes import Lane, LaneColumns, Track


class MemoryLane(NamedTuple):
    """Hold how much lived on the GPU at the place ``device``, by time.

    All i8[n], one for each time at which anything happened. ``low`` is that time, ns since the
    timeline begins. Of its events ``row`` is that after which most lived, a row of ``curve``, and
    ``top`` how much; ``rest`` is what lives from then until the next time. ``reserved_top`` and
    ``reserved_rest`` are the same of reserved memory, None where that is not known.

    ``peak`` is the place of the most memory in these; ``failures`` are the requests that failed,
    each with its place.
    """

    device: int
    curve: MemoryCurve
    low: I8
    row: I8
    top: I8
    rest: I8
    reserved_top: I8 | None
    reserved_rest: I8 | None
    peak: int
    failures: tuple[tuple[int, OutOfMemory], ...]

    @property
    def most(self) -> int:
        """The most that lived, or was reserved, bytes."""
        sizes = (self.top, self.reserved_top)
        return max(int(size.max()) for size in sizes if size is not None)

    def heights(self, edges: F8) -> tuple[I8, I8 | None]:
        """The most that lived, and was reserved, between ``edges`` f8[n+1] of cells, i8[n] each.

        Never the mean: a peak must not vanish.
        """
        at = np.searchsorted(self.low, np.ceil(edges).astype(np.int64))
        curve = self.curve
        live = _highest(self.top, np.append(curve.live[0], self.rest), at)
        if curve.reserved is None or self.reserved_top is None or self.reserved_rest is None:
            return live, None
        rest = np.append(curve.reserved[0], self.reserved_rest)
        return live, _highest(self.reserved_top, rest, at)


def _highest(top: I8, rest: I8, at: I8) -> I8:
    """The most of what goes on into each cell, and of what begins in it, from ``at`` to the next.

    ``rest`` begins with what was there before all.
    """
    first, last = at[:-1], at[1:]
    before = rest[first]
    bounds = np.stack([first, last], axis=1).ravel()
    inside = np.maximum.reduceat(np.append(top, 0), np.minimum(bounds, len(top)))[::2]
    found: I8 = np.maximum(before, np.where(last > first, inside, 0))
    return found


def memory_lanes(profile: Profile) -> tuple[MemoryLane, ...]:
    """Lay out the memory of each GPU of ``profile`` of which anything is known over time."""
    memory = profile.memory
    if memory is None:
        return ()
    failures = {each.device: each.out_of_memory for each in memory.devices}
    return tuple(
        lane_of_curve(curve, profile.rows_begin, failures.get(curve.device, ()))
        for curve in memory.curves
    )


def lane_of_curve(curve: MemoryCurve, origin: int, failed: Sequence[OutOfMemory]) -> MemoryLane:
    """Lay out ``curve`` on a timeline that begins at ``origin``, with requests that ``failed``."""
    first = np.flatnonzero(np.append(True, curve.time[1:] != curve.time[:-1]))
    last = np.append(first[1:], len(curve.time)) - 1
    top = np.maximum.reduceat(curve.live, first)
    reserved, reserved_top, reserved_rest = curve.reserved, None, None
    if reserved is not None:
        reserved_top, reserved_rest = np.maximum.reduceat(reserved, first), reserved[last]
    of_time = np.repeat(np.arange(len(first)), last - first + 1)
    highest = np.flatnonzero(curve.live == top[of_time])
    row = highest[np.searchsorted(of_time[highest], np.arange(len(first)))]
    places = [int(of_time[np.searchsorted(curve.position, one.position)]) for one in failed]
    return MemoryLane(
        curve.device,
        curve,
        curve.time[first] - origin,
        row,
        top,
        curve.live[last],
        reserved_top,
        reserved_rest,
        int(np.argmax(top)),
        tuple(zip(places, failed, strict=True)),
    )


def memory_columns(
    profile: Profile, lanes: Sequence[MemoryLane], end: int, offset: int
) -> LaneColumns:
    """Make the intervals of ``lanes``, which go on until ``end``; they begin at ``offset``."""
    none: I8 = np.zeros(0, np.int64)
    low = np.concatenate([none, *(lane.low for lane in lanes)])
    high = np.concatenate([none, *(np.append(lane.low[1:], end) for lane in lanes)])
    source = np.concatenate([none, *(np.arange(len(lane.low)) for lane in lanes)])
    frame: Column = np.full(len(low), NONE, np.int32)
    bounds = list(_lanes(profile, lanes, offset))
    return LaneColumns(source, frame, np.zeros(len(low), np.uint8), low, high, bounds)


def _lanes(profile: Profile, lanes: Sequence[MemoryLane], offset: int) -> Iterator[Lane]:
    for lane in lanes:
        last = offset + len(lane.low)
        label = device_label(profile, lane.device)
        yield Lane(label, 0, offset, last, Track.MEMORY, lane.device)
        offset = last
