"""Draw a part of a timeline in cells: wide intervals one by one, others as busy shares."""

from __future__ import annotations

from math import floor
from typing import NamedTuple

import numpy as np

from flame.core.columns import F8, I8, U1
from flame.core.lazy_dataclass import dataclass
from flame.core.timeline.busy_time import TimeWindow
from flame.core.timeline.highlight import Highlight
from flame.core.timeline.intervals import Timeline
from flame.core.timeline.lanes import Lane, Track

NARROW = 1.5
"""Intervals under this many cells are not drawn by themselves."""


class Bar(NamedTuple):
    """Place an interval that is drawn by itself, in cells [left, right)."""

    left: int
    right: int
    item: int


class Shading(NamedTuple):
    """Hold what a lane shows: bars, and by cell what else there is.

    ``cover`` (f8) is the part of the cell that intervals fill, 0..1, ``lit`` (f8) that of bright
    intervals, ``look`` (u1) the look that most of these have.
    """

    bars: list[Bar]
    cover: F8
    lit: F8
    look: U1


@dataclass(frozen=True)
class Grid:
    """Divide ``window`` into ``width`` cells."""

    window: TimeWindow
    width: int

    @property
    def scale(self) -> float:
        """Cells per nanosecond."""
        return self.width / max(self.window.length, 1)

    def time(self, cell: float) -> float:
        """Get the time at which ``cell`` begins, ns since the beginning of the trace."""
        # Multiplied first: where cells begin at whole nanoseconds, that is what comes out.
        return self.window.low + cell * max(self.window.length, 1) / self.width

    def cell(self, time: float) -> float:
        """Get the place of ``time``, in cells from the left edge."""
        return (time - self.window.low) * self.scale

    def cells(self, window: TimeWindow) -> tuple[int, int]:
        """Find the cells [left, right) that any whole nanosecond of ``window`` is in."""
        left, right = floor(self.cell(window.low)), floor(self.cell(window.high - 1)) + 1
        return min(max(left, 0), self.width), min(max(right, 0), self.width)

    @property
    def edges(self) -> F8:
        """Times at which cells begin and end, f8[width + 1]."""
        return np.linspace(self.window.low, self.window.high, self.width + 1)

    @property
    def middles(self) -> F8:
        """The middles of the cells, f8[width]."""
        return (self.edges[1:] + self.edges[:-1]) / 2


def shade(timeline: Timeline, highlight: Highlight, lanes: list[Lane], grid: Grid) -> list[Shading]:
    """Shade the cells of ``grid`` for each of ``lanes``.

    The work grows with the number of cells and the logarithm of the timeline: only an interval
    under the middle of a cell can be wider than a cell, all others are summed up.
    """
    if not lanes:
        return []
    times = np.concatenate([grid.edges, grid.middles])
    # As integers: searching floats would convert the whole column.
    moments = np.floor(times).astype(np.int64)
    under = np.array([_under(timeline, lane, moments) for lane in lanes])
    first = np.array([lane.first for lane in lanes])[:, None]
    sums = _LengthSums(timeline, highlight, first, lanes)
    layers = np.diff(sums.until(under[:, : grid.width + 1], grid.edges)) * grid.scale
    bars = _bars(timeline, under[:, grid.width + 1 :], first, grid)
    sums.leave_out(layers, bars, grid)
    layers[layers < (0.01 + 2e-15 * abs(grid.window.high)) * grid.scale] = 0.0  # rounding
    looks = sums.looks[np.arange(len(lanes))[:, None], np.argmax(layers[1:], axis=0)]
    lit = layers[1:].sum(axis=0)
    own: list[list[Bar]] = [[] for _ in lanes]
    for lane, left, right, item, *_ in zip(*(column.tolist() for column in bars), strict=True):
        own[lane].append(Bar(left, right, item))
    return [Shading(*row) for row in zip(own, layers[0], lit, looks, strict=True)]


def _under(timeline: Timeline, lane: Lane, moments: I8) -> I8:
    """The last interval of ``lane`` that begins up to each of ``moments``, else the one before."""
    low = timeline.low[lane.first : lane.last]
    last: I8 = lane.first + np.searchsorted(low, moments, "right") - 1
    return last


class _Bars(NamedTuple):
    """Bars of several lanes: lane, cells, interval, its edges within the window (i8[n] each)."""

    lane: I8
    left: I8
    right: I8
    item: I8
    low: I8
    high: I8


def _bars(timeline: Timeline, under: I8, first: I8, grid: Grid) -> _Bars:
    """Intervals of at least `NARROW` cells; edges are rounded, so that neighbours share theirs."""
    fresh = np.concatenate([np.ones((len(under), 1), bool), np.diff(under) != 0], axis=1)
    lane, column = np.nonzero(fresh & (under >= first))
    item = under[lane, column]
    low, high = timeline.low[item], timeline.low[item] + _length(timeline, item)
    low, high = np.maximum(low, grid.window.low), np.minimum(high, grid.window.high)
    left, right = (np.rint((edge - grid.window.low) * grid.scale) for edge in (low, high))
    wide = (high - low) * grid.scale >= NARROW
    columns = (lane, left.astype(np.int64), right.astype(np.int64), item, low, high)
    return _Bars(*(part[wide] for part in columns))


def _length(timeline: Timeline, item: I8) -> I8:
    length: I8 = timeline.before[item + 1] - timeline.before[item]
    return length


class _LengthSums:
    """Visible lengths of lanes added up from the left: of all, then of bright ones by look."""

    def __init__(
        self, timeline: Timeline, highlight: Highlight, first: I8, lanes: list[Lane]
    ) -> None:
        self._timeline = timeline
        self._highlight = highlight
        self._first = first
        rows = [_looks(lane.track, highlight) for lane in lanes]
        self.looks: U1 = np.array(rows, np.uint8)

    def until(self, under: I8, edges: F8) -> F8:
        """Sum lengths left of ``edges``, f8[1 + looks, lanes, edges]; ``under`` as in `_under`."""
        timeline, highlight = self._timeline, self._highlight
        there = under >= self._first
        item = np.maximum(under, self._first)
        part = np.clip(edges - timeline.low[item], 0, _length(timeline, item))
        lit, slot = np.where(highlight.bright[item], part, 0), highlight.slots[item]
        others = [
            self._sum_until(sums, item, np.where(slot == other, lit, 0))
            for other, sums in highlight.sums_by_slot.items()
        ]
        bright = self._sum_until(highlight.sums, item, lit)
        rest = bright - sum(others) if others else bright
        layers = [self._sum_until(timeline.before, item, part), rest, *others]
        return np.where(there, np.array(layers), 0.0)

    def _sum_until(self, sums: I8, item: I8, part: F8) -> F8:
        total: F8 = sums[item] - sums[self._first] + part
        return total

    def leave_out(self, layers: F8, bars: _Bars, grid: Grid) -> None:
        """Take from the cells beside bars what reaches into them by less than half a cell."""
        edges = grid.edges
        before = np.maximum(edges[bars.left] - bars.low, 0) * grid.scale
        after = np.maximum(bars.high - edges[bars.right], 0) * grid.scale
        bright = self._highlight.bright[bars.item]
        layer = 1 + np.argmax(
            self.looks[bars.lane] == self._highlight.looks[bars.item][:, None], axis=1
        )
        for cell, part in ((bars.left - 1, before), (bars.right, after)):
            inside = (part > 0) & (cell >= 0) & (cell < grid.width)
            rows, cells = bars.lane[inside], cell[inside]
            np.subtract.at(layers[0], (rows, cells), part[inside])
            lit = np.where(bright[inside], part[inside], 0)
            np.subtract.at(layers, (layer[inside], rows, cells), lit)


def _looks(track: Track, highlight: Highlight) -> list[int]:
    """The looks of which lengths are summed: the usual one, then those of other places."""
    looks = highlight.looks_of(track)
    others = (looks[slot] if slot < len(looks) else looks[0] for slot in highlight.sums_by_slot)
    return [looks[0], *others]
