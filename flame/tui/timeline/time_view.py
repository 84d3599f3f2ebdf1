"""Hold what is shown of a timeline and what is selected and brushed in it."""

from __future__ import annotations

from dataclasses import dataclass, field

from flame.core.timeline.highlight import Highlight
from flame.core.timeline.intervals import Timeline
from flame.tui.timeline.cursor import TimeCursor
from flame.tui.timeline.lanes import LaneRows
from flame.tui.timeline.viewport import SHORTEST, TimeViewport

_MARGIN = 0.25


@dataclass
class TimeView:
    """A timeline, and what is bright in it, with its viewport, rows and cursor."""

    timeline: Timeline
    light: Highlight
    viewport: TimeViewport = field(init=False)
    lanes: LaneRows = field(init=False)
    cursor: TimeCursor = field(init=False)

    def __post_init__(self) -> None:
        self.viewport = TimeViewport(self.timeline.whole)
        self.lanes = LaneRows(self.timeline, self.viewport)
        self.cursor = TimeCursor(self.timeline, self.light, self.viewport, self.lanes)

    def relight(self, light: Highlight) -> None:
        """Take over other filters or another search."""
        self.light = light
        self.cursor.relight(light)

    def go_on(self, timeline: Timeline, light: Highlight) -> None:
        """Take over a later state of the timeline; what is selected stays."""
        shift = self.timeline.origin - timeline.origin
        self.timeline, self.light = timeline, light
        self.viewport.go_on(timeline.whole, shift)
        self.lanes.go_on(timeline)
        self.cursor.go_on(timeline, light, shift)

    def move_row(self, step: int) -> str:
        """Select the row ``step`` further down, at the time that is in focus."""
        note = self.lanes.move(step)
        if not note:
            self.cursor.select_near(self.cursor.time)
        return note

    def move_across(self, step: int) -> str:
        """Select the next (+1) or previous (-1) interval, or move the end of the brush."""
        brush = self.viewport.brush
        if brush is None or not brush.moving:
            return self.cursor.move_across(step)
        self.viewport.move_brush(brush, step)
        return ""

    def closer(self, step: int) -> str:
        """Zoom in (+1) or out (-1) around what is selected."""
        return self.viewport.zoom_at(self.cursor.time, 0.5 if step > 0 else 2.0)

    def zoom_in(self) -> str:
        """Zoom to the selected interval, with some room around it."""
        if self.cursor.item < 0:
            return "nothing selected: ← → select"
        low, high = self.timeline.window(self.cursor.item)
        room = max((high - low) * _MARGIN, SHORTEST * _MARGIN)
        self.viewport.zoom_to(self.viewport.clamped(low - room, high - low + 2 * room))
        self.cursor.focus = (low + high) / 2
        return ""

    def mark(self) -> str:
        """Begin a brush at what is selected, or end it."""
        brush = self.viewport.brush
        if brush is not None and brush.moving:
            self.viewport.brush = brush._replace(moving=False)
            return ""
        self.viewport.begin_brush(self.cursor.window)
        return "← → move its end, b ends it"

    def point(self, row: int, cell: int) -> None:
        """Select ``row`` and what ``cell`` of it shows; left of the cells (-1) the row alone."""
        self.lanes.lane = self.lanes.rows[row]
        self.cursor.item = -1
        if cell >= 0:
            self.cursor.focus = self.viewport.grid.time(cell + 0.5)
            self.cursor.select_near(self.cursor.focus)
