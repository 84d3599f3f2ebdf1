"""Where one is in a timeline: window, row, selected interval, brush; the moves behind the keys."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from math import ceil, floor
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8
from flame.core.timeline.highlight import Highlight
from flame.core.timeline.intervals import Lane, Timeline, TimeWindow
from flame.core.timeline.raster import NARROW, Grid
from flame.core.units import format_count
from flame.tui.toolkit.back_stack import Trail

SHORTEST = 64
"""Nanoseconds that a window has at least."""

_MARGIN = 0.25
_BRUSH_STEPS = 64


class Brush(NamedTuple):
    """A window being chosen, from ``anchor`` to ``end``, which arrows move while ``moving``."""

    anchor: int
    end: int
    moving: bool

    @property
    def window(self) -> TimeWindow:
        """What is chosen, however it was drawn."""
        return TimeWindow(min(self.anchor, self.end), max(self.anchor, self.end))


class Stops(NamedTuple):
    """The intervals of a lane at which arrow keys stop, and where they begin (i8[n] each)."""

    items: I8
    low: I8


@dataclass
class TimeView:
    """A timeline, the part of it on screen (``width`` cells), and what is selected in it.

    ``item`` is the selected interval, -1 if there is none; ``focus`` the time that moves from row
    to row stay at.
    """

    timeline: Timeline
    light: Highlight
    width: int = 1
    window: TimeWindow = field(init=False)
    lane: int = field(init=False)
    item: int = field(init=False, default=-1)
    brush: Brush | None = field(init=False, default=None)
    focus: float = field(init=False)
    _trail: Trail[TimeWindow] = field(init=False, default_factory=Trail)
    _rows: tuple[TimeWindow, list[int]] | None = field(init=False, default=None)
    _stops: dict[int, Stops] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.window = self.timeline.whole
        self.focus = (self.window.low + self.window.high) / 2
        self.lane = self._busiest()

    def _busiest(self) -> int:
        """The lane with the most work on a GPU; without any the first."""
        before = self.timeline.before
        work = [
            (int(before[lane.last] - before[lane.first]), -number)
            for number, lane in enumerate(self.timeline.lanes)
            if not lane.ranges
        ]
        return -max(work)[1] if work else 0

    def relight(self, light: Highlight) -> None:
        """Other filters or another search."""
        self.light = light
        self._stops.clear()

    def go_on(self, timeline: Timeline, light: Highlight) -> None:
        """A later state of the timeline: what is selected stays, a window at its end moves on."""
        before, self.timeline, self.light = self.timeline, timeline, light
        shift = before.origin - timeline.origin
        shown, lane, item = self.window, before.lanes[self.lane : self.lane + 1], self.item
        self._rows, self._stops = None, {}
        self._trail = self._trail.changed(lambda one: TimeWindow(one.low + shift, one.high + shift))
        self.focus += shift
        if shown == before.whole:
            self.window = timeline.whole
        else:
            follows = shown.high >= before.whole.high
            low = timeline.whole.high - shown.length if follows else shown.low + shift
            self.window = self._clamped(low, shown.length)
        self.lane = self._same_lane(lane[0]) if lane else self._busiest()
        low = before.low[item] + shift if item >= 0 else 0
        self.item = self._same_item(int(before.frame[item]), int(low)) if item >= 0 else -1

    def _same_lane(self, lane: Lane) -> int:
        """The number of the row that is called as ``lane`` was."""
        same = [
            number
            for number, one in enumerate(self.timeline.lanes)
            if (one.label, one.level, one.ranges) == (lane.label, lane.level, lane.ranges)
        ]
        return same[0] if same else self._busiest()

    def _same_item(self, frame: int, low: int) -> int:
        """What begins at ``low`` on the selected row, if it is the same as before."""
        lane = self.current
        if lane is None:
            return -1
        at = lane.first + int(np.searchsorted(self.timeline.low[lane.first : lane.last], low))
        same = at < lane.last and self.timeline.low[at] == low and self.timeline.frame[at] == frame
        return at if same else -1

    @property
    def grid(self) -> Grid:
        """The cells that show the window."""
        return Grid(self.window, max(self.width, 1))

    @property
    def current(self) -> Lane | None:
        """The lane that is selected; None of an empty timeline."""
        return self.timeline.lanes[self.lane] if self.timeline.lanes else None

    @property
    def _time(self) -> float:
        """The time in focus, where it is in sight, else the middle."""
        low, high = self.window
        return self.focus if low <= self.focus <= high else (low + high) / 2

    # Rows

    @property
    def rows(self) -> list[int]:
        """Numbers of the lanes that have a row: inner ones only where they show anything."""
        if self._rows is None or self._rows[0] != self.window:
            lanes = enumerate(self.timeline.lanes)
            shown = (
                number
                for number, lane in lanes
                if not lane.level or self.timeline.is_visible_in(lane, self.window)
            )
            self._rows = (self.window, list(shown))
        return self._rows[1]

    @property
    def row(self) -> int:
        """The row of the selected lane, or that of the next one outside of it which has a row."""
        return max(bisect_right(self.rows, self.lane) - 1, 0)

    def move_row(self, step: int) -> str:
        """Select the row ``step`` further down, at the time that is in focus."""
        rows = self.rows
        if not rows:
            return "nothing to show"
        target = min(max(self.row + step, 0), len(rows) - 1)
        if rows[target] == self.lane:
            return "the first row" if step < 0 else "the last row"
        self.lane = rows[target]
        self.item = self.near(self.lane, self._time)
        return ""

    # Intervals

    def stops(self, lane: int) -> Stops:
        """Where moves on ``lane`` stop: at what passes the filters."""
        if lane not in self._stops:
            first, last = self.timeline.lanes[lane].first, self.timeline.lanes[lane].last
            items = first + np.flatnonzero(self.light.passing[first:last])
            self._stops[lane] = Stops(items, self.timeline.low[items])
        return self._stops[lane]

    def near(self, lane: int, time: float) -> int:
        """What to select at ``time``: what is there, else the longest in the cell; -1: nothing."""
        stops, cell = self.stops(lane), self._cell(time)
        at = int(np.searchsorted(stops.low, floor(time), "right")) - 1
        under = int(stops.items[at]) if at >= 0 else -1
        if under >= 0 and self._wide(under) and self.timeline.high(under) > time:
            return under
        first, last = self._begin(stops, cell), self._begin(stops, cell + 1)
        if first < last:
            return self._longest(stops, first, last)
        return under if under >= 0 and self._in_sight(under) else -1

    def select(self, item: int) -> None:
        """Select ``item``, and bring it into sight."""
        self.item = item
        if item < 0:
            return
        self.lane = self.timeline.lane_of(item)
        low, high = self.timeline.window(item)
        if not self._in_sight(item):
            self.window = self._clamped(low - self.window.length / 2, self.window.length)
        self.focus = (max(low, self.window.low) + min(high, self.window.high)) / 2

    def select_in_sight(self, item: int) -> None:
        """Select ``item`` where the window shows it, else nothing."""
        self.select(item if item >= 0 and self._in_sight(item) else -1)

    def move_across(self, step: int) -> str:
        """Select the next (+1) or previous (-1) interval; where they are dense, cell by cell."""
        if self.brush and self.brush.moving:
            return self._stretch(step)
        if self.current is None:
            return "nothing to show"
        stops = self.stops(self.lane)
        found = self._after(stops) if step > 0 else self._before(stops)
        if found < 0:
            return "the last on this row" if step > 0 else "the first on this row"
        self.select(found)
        return ""

    def _after(self, stops: Stops) -> int:
        if self.item < 0:
            first = int(np.searchsorted(stops.low, self.window.low))
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
            last = int(np.searchsorted(stops.low, self.window.high))
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
        return floor(self.grid.cell(time))

    def _begin(self, stops: Stops, cell: int) -> int:
        """The place of the first stop that begins in ``cell`` or later."""
        return int(np.searchsorted(stops.low, ceil(self.grid.time(cell))))

    def _longest(self, stops: Stops, first: int, last: int) -> int:
        items = stops.items[first:last]
        length = self.timeline.before[items + 1] - self.timeline.before[items]
        return int(items[int(np.argmax(length))])

    def _wide(self, item: int) -> bool:
        """Whether ``item`` is drawn by itself."""
        length = int(self.timeline.before[item + 1] - self.timeline.before[item])
        return length * self.grid.scale >= NARROW

    def _in_sight(self, item: int) -> bool:
        low, high = self.timeline.window(item)
        return low < self.window.high and max(high, low + 1) > self.window.low

    def move_home(self, end: bool) -> str:
        """Select the first interval of the row, or the last."""
        if self.current is None or not len(self.stops(self.lane).items):
            return "nothing on this row"
        self.select(int(self.stops(self.lane).items[-1 if end else 0]))
        return ""

    def match(self, step: int) -> str:
        """Select the next (+1) or previous (-1) match, along the row, then in the next ones."""
        hits = np.flatnonzero(self.light.bright)
        if self.light.matching is None or not len(hits):
            return "no match in this view"
        lane = self.current
        here = self.item if self.item >= 0 or lane is None else lane.first - (step > 0)
        after = int(np.searchsorted(hits, here, "right" if step > 0 else "left"))
        place = (after if step > 0 else after - 1) % len(hits)
        self.select(int(hits[place]))
        return f"match {format_count(place + 1)} of {format_count(len(hits))} over time"

    # The window

    def _clamped(self, low: float, length: float) -> TimeWindow:
        """A window of about ``length`` from about ``low``, within the trace."""
        whole = self.timeline.whole
        size = min(max(round(length), SHORTEST), whole.length)
        left = min(max(round(low), whole.low), whole.high - size)
        return TimeWindow(left, left + size)

    def zoom_to(self, window: TimeWindow) -> None:
        """Show ``window``, and remember what was shown before."""
        if window != self.window:
            self._trail.leave(self.window)
            self.window = window

    def zoom_at(self, time: float, factor: float) -> str:
        """Show a window ``factor`` times as long, in which ``time`` stays where it is."""
        before, length = self.window, self.window.length * factor
        low = time - (time - before.low) * factor
        self.zoom_to(self._clamped(low, length))
        if before == self.window:
            return "this is all of it" if factor > 1 else "no closer than this"
        return ""

    def closer(self, step: int) -> str:
        """Zoom in (+1) or out (-1) around what is selected."""
        return self.zoom_at(self._time, 0.5 if step > 0 else 2.0)

    def zoom_in(self) -> str:
        """Zoom to the selected interval, with some room around it."""
        if self.item < 0:
            return "nothing selected: ← → select"
        low, high = self.timeline.window(self.item)
        room = max((high - low) * _MARGIN, SHORTEST * _MARGIN)
        self.zoom_to(self._clamped(low - room, high - low + 2 * room))
        self.focus = (low + high) / 2
        return ""

    def out(self) -> str:
        """Show twice as much."""
        return self.zoom_at((self.window.low + self.window.high) / 2, 2.0)

    def pan(self, step: float) -> str:
        """Move the window by ``step`` quarters of its length."""
        before = self.window
        by = step * max(before.length / 4, 1)
        self.window = self._clamped(before.low + by, before.length)
        if before == self.window:
            return "the end of the trace" if step > 0 else "the beginning of the trace"
        return ""

    def reset(self) -> bool:
        """Show the whole trace; False where it was shown already."""
        before = self.window
        self.zoom_to(self.timeline.whole)
        return before != self.window

    def undo(self, forward: bool) -> bool:
        """Go back to the window before the last zoom, or forward again; False without any."""
        window = self._trail.go(1 if forward else -1, self.window)
        if window is None:
            return False
        self.window = self._clamped(window.low, window.length)
        return True

    # The brush

    def mark(self) -> str:
        """Begin a brush at what is selected, or end it."""
        if self.brush and self.brush.moving:
            self.brush = self.brush._replace(moving=False)
            return ""
        low, high = self.window
        if self.item >= 0 and self._in_sight(self.item):
            low, high = self.timeline.window(self.item)
        else:
            middle, part = (low + high) // 2, self.window.length // 20
            low, high = middle - part, middle + part
        self.brush = Brush(low, max(high, low + 1), moving=True)
        return "← → move its end, b ends it"

    def _stretch(self, step: int) -> str:
        assert self.brush is not None
        by = step * max(self.window.length // _BRUSH_STEPS, 1)
        whole = self.timeline.whole
        end = min(max(self.brush.end + by, whole.low), whole.high)
        self.brush = self.brush._replace(end=end)
        if not self.window.low <= end <= self.window.high:
            self.window = self._clamped(self.window.low + by, self.window.length)
        return ""

    def brushed(self, left: int, right: int) -> None:
        """A brush over what starts in cells [left, right), as the mouse draws it."""
        low = min(max(ceil(self.grid.time(left)), 0), self.timeline.whole.high - 1)
        high = min(ceil(self.grid.time(right)), self.timeline.whole.high)
        self.brush = Brush(low, max(high, low + 1), moving=False)

    # The mouse

    def point(self, row: int, cell: int) -> None:
        """Select ``row`` and what ``cell`` of it shows; left of the cells (-1) the row alone."""
        self.lane = self.rows[row]
        self.item = -1
        if cell >= 0:
            self.focus = self.grid.time(cell + 0.5)
            self.item = self.near(self.lane, self.focus)
