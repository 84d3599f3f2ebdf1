"""Move the selected interval of a timeline along its lane, and to matches of a search."""

from __future__ import annotations

from dataclasses import field
from math import ceil, floor
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8
from flame.core.lazy_dataclass import dataclass
from flame.core.timeline.busy_time import TimeWindow
from flame.core.timeline.highlight import Highlight
from flame.core.timeline.intervals import Timeline
from flame.core.timeline.lanes import Track
from flame.core.timeline.raster import NARROW
from flame.core.units import format_count
from flame.tui.timeline.lanes import VisibleLanes
from flame.tui.timeline.viewport import TimeViewport


class Stops(NamedTuple):
    """The intervals of a lane at which arrow keys stop, and where they begin (i8[n] each)."""

    items: I8
    low: I8


@dataclass
class TimeCursor:
    """The selected interval, ``item``, -1 if there is none.

    ``focus`` is the time that moves from row to row stay at.
    """

    timeline: Timeline
    highlight: Highlight
    viewport: TimeViewport
    lanes: VisibleLanes
    item: int = field(init=False, default=-1)
    focus: float = field(init=False)
    _stops: dict[int, Stops] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.focus = self.viewport.middle

    def relight(self, highlight: Highlight) -> None:
        """Take over other filters or another search."""
        self.highlight = highlight
        self._stops = {}

    def go_on(self, timeline: Timeline, highlight: Highlight, shift: int) -> None:
        """Take over a later state of the timeline, in which the same interval is selected."""
        before, item = self.timeline, self.item
        self.timeline = timeline
        self.relight(highlight)
        self.focus += shift
        if item >= 0:
            low = int(before.low[item]) + shift
            self.item = self._same_item(int(before.frame[item]), low)

    def _same_item(self, frame: int, low: int) -> int:
        """What begins at ``low`` on the selected lane, if it is the same as before."""
        lane = self.lanes.selected
        if lane is None:
            return -1
        at = lane.first + int(np.searchsorted(self.timeline.low[lane.first : lane.last], low))
        same = at < lane.last and self.timeline.low[at] == low and self.timeline.frame[at] == frame
        return at if same else -1

    @property
    def window(self) -> TimeWindow | None:
        """When the selected interval runs, if it is in sight."""
        return self.timeline.window(self.item) if self._in_sight(self.item) else None

    @property
    def time(self) -> float:
        """The time in focus, where it is in sight, else the middle."""
        low, high = self.viewport.window
        return self.focus if low <= self.focus <= high else self.viewport.middle

    # Selecting

    def stops(self, lane: int) -> Stops:
        """Tell where moves on ``lane`` stop: at what passes the filters."""
        if lane not in self._stops:
            first, last = self.timeline.lanes[lane].first, self.timeline.lanes[lane].last
            items = first + np.flatnonzero(self.highlight.passing[first:last])
            self._stops[lane] = Stops(items, self.timeline.low[items])
        return self._stops[lane]

    def select(self, item: int) -> None:
        """Select ``item``, and bring it into sight."""
        self.item = item
        if item < 0:
            return
        self.lanes.lane = self.timeline.lane_of(item)
        self.lanes.unfold()
        low, high = self.timeline.window(item)
        window = self.viewport.window
        if not self._in_sight(item):
            self.viewport.show_from(low - window.length / 2, window.length)
        window = self.viewport.window
        self.focus = (max(low, window.low) + min(high, window.high)) / 2

    def select_in_sight(self, item: int) -> None:
        """Select ``item`` where the window shows it, else nothing."""
        self.select(item if self._in_sight(item) else -1)

    def select_near(self, time: float) -> None:
        """Select what is at ``time`` on the selected lane, without moving the window."""
        self.item = self.near(self.lanes.lane, time)

    def near(self, lane: int, time: float) -> int:
        """Find what to select at ``time``: what is there, else the cell's longest; -1: nothing."""
        stops, cell = self.stops(lane), self._cell(time)
        at = int(np.searchsorted(stops.low, floor(time), "right")) - 1
        under = int(stops.items[at]) if at >= 0 else -1
        if under >= 0 and self._wide(under) and self.timeline.high(under) > time:
            return under
        first, last = self._begin(stops, cell), self._begin(stops, cell + 1)
        if first < last:
            return self._longest(stops, first, last)
        return under if self._in_sight(under) else -1

    # Moving

    def move_across(self, step: int) -> str:
        """Select the next (+1) or previous (-1) interval; where they are dense, cell by cell."""
        if self.lanes.selected is None:
            return "nothing to show"
        stops = self.stops(self.lanes.lane)
        item = self._after(stops) if step > 0 else self._before(stops)
        if item < 0:
            return "the last on this row" if step > 0 else "the first on this row"
        self.select(item)
        return ""

    def _after(self, stops: Stops) -> int:
        if self.item < 0:
            first = int(np.searchsorted(stops.low, self.viewport.window.low))
        else:
            first = int(np.searchsorted(stops.low, self.timeline.low[self.item], "right"))
            if not self._wide(self.item):
                first = self._beyond(stops, first)
        if first >= len(stops.low):
            return -1
        last = self._begin(stops, self._cell(int(stops.low[first])) + 1)
        return self._longest(stops, first, max(last, first + 1))

    def _beyond(self, stops: Stops, first: int) -> int:
        """The first stop in the next cell, or a wide one that begins in that of the selection."""
        beyond = self._begin(stops, self._cell(int(self.timeline.low[self.item])) + 1)
        if beyond > first and self._wide(int(stops.items[beyond - 1])):
            return beyond - 1
        return max(first, beyond)

    def _before(self, stops: Stops) -> int:
        if self.item < 0:
            last = int(np.searchsorted(stops.low, self.viewport.window.high))
        else:
            low = int(self.timeline.low[self.item])
            last = int(np.searchsorted(stops.low, low))
            if not self._wide(self.item):
                last = min(last, self._begin(stops, self._cell(low)))
        if last <= 0:
            return -1
        first = self._begin(stops, self._cell(int(stops.low[last - 1])))
        return self._longest(stops, min(first, last - 1), last)

    def _cell(self, time: float) -> int:
        return floor(self.viewport.grid.cell(time))

    def _begin(self, stops: Stops, cell: int) -> int:
        """The place of the first stop that begins in ``cell`` or later."""
        return int(np.searchsorted(stops.low, ceil(self.viewport.grid.time(cell))))

    def _longest(self, stops: Stops, first: int, last: int) -> int:
        """The longest of some intervals; of memory that of most, which is what the cell shows."""
        items = stops.items[first:last]
        if self.timeline.track[items[0]] == Track.MEMORY:
            lane = self.timeline.lanes[self.timeline.lane_of(int(items[0]))]
            top = self.timeline.memory_of(lane).top
            return int(items[int(np.argmax(top[self.timeline.source[items]]))])
        length = self.timeline.before[items + 1] - self.timeline.before[items]
        return int(items[int(np.argmax(length))])

    def _wide(self, item: int) -> bool:
        """Whether ``item`` is drawn by itself."""
        length = int(self.timeline.before[item + 1] - self.timeline.before[item])
        return length * self.viewport.grid.scale >= NARROW

    def _in_sight(self, item: int) -> bool:
        return item >= 0 and self.viewport.holds(self.timeline.window(item))

    def move_home(self, end: bool) -> str:
        """Select the first interval of the row, or the last."""
        if self.lanes.selected is None or not len(self.stops(self.lanes.lane).items):
            return "nothing on this row"
        self.select(int(self.stops(self.lanes.lane).items[-1 if end else 0]))
        return ""

    def match(self, step: int) -> str:
        """Select the next (+1) or previous (-1) match, along the row, then in the next ones."""
        hits = self._shown(np.flatnonzero(self.highlight.bright))
        if self.highlight.matching is None or not len(hits):
            return "no match in this view"
        lane = self.lanes.selected
        here = self.item if self.item >= 0 or lane is None else lane.first - (step > 0)
        after = int(np.searchsorted(hits, here, "right" if step > 0 else "left"))
        place = (after if step > 0 else after - 1) % len(hits)
        self.select(int(hits[place]))
        return f"match {format_count(place + 1)} of {format_count(len(hits))} over time"

    def _shown(self, items: I8) -> I8:
        """Those of ``items`` that are in lanes which are not folded away."""
        lanes = self.timeline.lanes
        shown = np.array([self.lanes.has_row(lane) for lane in lanes], bool)
        first = np.array([lane.first for lane in lanes], np.int64)
        return items[shown[np.searchsorted(first, items, "right") - 1]] if len(items) else items
