"""Say why a GPU was idle, gap by gap and cell by cell of the screen."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.columns import I8
from flame.core.lazy_dataclass import dataclass
from flame.core.model.calls import IdleCause
from flame.core.model.profile import Profile
from flame.core.timeline.busy_time import BusyTime, TimeWindow
from flame.core.timeline.idle_parts import IdleParts, idle_parts
from flame.core.timeline.raster import Grid

WIDE = 3
"""So many cells a gap fills at least to show its causes."""


class CauseTime(NamedTuple):
    """Say for how long (ns) of a gap a GPU waited for ``cause``."""

    cause: IdleCause
    length: int


@dataclass(frozen=True, eq=False)
class GapCauses:
    """Hold when each cause kept a GPU waiting, in ns on the trace's clock: disjoint stretches.

    Together they are all of its idle time, from the first recorded event to the last.
    """

    device: int
    times: dict[IdleCause, BusyTime]

    @property
    def unknown(self) -> bool:
        """Whether nothing is known of any of it: no launch was recorded."""
        return self.times.keys() <= {IdleCause.UNKNOWN}

    def within(self, window: TimeWindow) -> tuple[CauseTime, ...]:
        """Measure what of ``window`` (trace's clock) passed with each cause, longest first."""
        lengths = ((cause, time.within(window)) for cause, time in self.times.items())
        found = [CauseTime(cause, length) for cause, length in lengths if length]
        return tuple(sorted(found, key=lambda one: (-one.length, one.cause)))

    def most(self, low: I8, high: I8) -> I8:
        """Find the cause that most of each stretch from ``low`` to ``high`` passed with, i8[n].

        -1 where none did.
        """
        if not self.times:
            return np.full(len(low), -1, np.int64)
        lengths = np.array(
            [time.sums_until(high) - time.sums_until(low) for time in self.times.values()]
        )
        causes = np.array(list(self.times), np.int64)[np.argmax(lengths, axis=0)]
        return np.where(lengths.any(axis=0), causes, -1)


def causes_of_gaps(profile: Profile) -> tuple[GapCauses, ...]:
    """Sort the idle time of each GPU of ``profile`` by cause."""
    return tuple(_by_cause(parts) for parts in idle_parts(profile))


def _by_cause(parts: IdleParts) -> GapCauses:
    times = {}
    for cause in IdleCause:
        rows = np.flatnonzero(parts.cause == cause)
        if len(rows):
            times[cause] = BusyTime.between(parts.low[rows], parts.high[rows])
    return GapCauses(parts.device, times)


class GapCells(NamedTuple):
    """Say what cells show of gaps: the ``cause`` and the number of the ``gap``, i8[width] each.

    Both are -1 where a cell shows none.
    """

    cause: I8
    gap: I8


def gap_cells(begin: I8, end: I8, causes: GapCauses, grid: Grid, origin: int) -> GapCells:
    """Find what each cell of ``grid`` shows of the gaps from ``begin`` to ``end``, i8[n] each.

    They are in order of time, on the trace's clock, on which ``origin`` is where the grid has 0.
    The work grows with the number of cells, and with the logarithm of that of the gaps: only one
    that is under the middle of a cell can be `WIDE`.
    """
    none = np.full(grid.width, -1, np.int64)
    if not len(begin):
        return GapCells(none, none)
    edges, middles = (np.floor(at).astype(np.int64) + origin for at in (grid.edges, grid.middles))
    gap = np.maximum(np.searchsorted(begin, middles, "right") - 1, 0)
    low, high = begin[gap], end[gap]
    # Rounded as the edges of bars are.
    window, scale = grid.window.low + origin, grid.scale
    left, right = (np.rint((edge - window) * scale) for edge in (low, high))
    cell = np.arange(grid.width)
    shown = (left <= cell) & (cell < right) & (right - left >= WIDE)
    low = np.maximum(edges[:-1], low)
    high = np.minimum(np.maximum(edges[1:], low + 1), high)  # a cell may be less than 1 ns
    cause = np.where(shown, causes.most(low, high), -1)
    return GapCells(cause, np.where(shown, gap, -1))
