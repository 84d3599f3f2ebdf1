"""Tell how much memory lived at each moment, and when it was the most."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, order_by
from flame.core.model.allocator.allocations import ALIVE, BEFORE, Allocations


class LiveCurve(NamedTuple):
    """Hold how many bytes live from each event of a device on, until the next.

    ``position`` i8[n] are places among the events of the device, ascending, from `BEFORE` on;
    ``size`` i8[n] is in bytes.
    """

    position: I8
    size: I8

    def at(self, position: int) -> int:
        """Return the bytes that live right after the event at ``position``."""
        return int(self.size[np.searchsorted(self.position, position, "right") - 1])


class Peak(NamedTuple):
    """Say when most bytes lived, the earliest of equals: right after the event at ``position``."""

    position: int
    size: int


def live_curve(table: Allocations) -> LiveCurve:
    """Work out how much lives at each event, of a ``table`` of one device."""
    ended = np.flatnonzero(table.end != ALIVE)
    position = np.concatenate([[BEFORE], table.begin, table.end[ended]])
    change = np.concatenate([[0], table.size, -table.size[ended]])
    order = order_by([position - BEFORE])
    sums = np.cumsum(change[order])
    position = position[order]
    last = np.append(position[1:] != position[:-1], True)
    return LiveCurve(position[last], sums[last])


def find_peak(curve: LiveCurve, first: int = BEFORE, last: int | None = None) -> Peak:
    """Find the peak from right after the event ``first`` to right after ``last``."""
    begin = int(np.searchsorted(curve.position, first, "right")) - 1
    end = (
        len(curve.position) if last is None else int(np.searchsorted(curve.position, last, "right"))
    )
    at = begin + int(curve.size[begin : max(end, begin + 1)].argmax())
    return Peak(max(int(curve.position[at]), first), int(curve.size[at]))
