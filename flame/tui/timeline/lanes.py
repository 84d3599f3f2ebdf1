"""Choose the lanes of a timeline that have a row on screen, and the selected one of them."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from flame.core.timeline.busy_time import TimeWindow
from flame.core.timeline.intervals import Lane, Timeline
from flame.tui.timeline.viewport import TimeViewport


@dataclass
class LaneRows:
    """The lanes that ``viewport`` shows as rows; ``lane`` is the number of the selected one."""

    timeline: Timeline
    viewport: TimeViewport
    lane: int = field(init=False)
    _rows: tuple[TimeWindow, list[int]] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
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

    def go_on(self, timeline: Timeline) -> None:
        """Take over a later state of the timeline, in which the same lane is selected."""
        selected, self.timeline, self._rows = self.selected, timeline, None
        self.lane = self._busiest() if selected is None else self._same_lane(selected)

    def _same_lane(self, lane: Lane) -> int:
        """The number of the lane that is called as ``lane`` was."""
        same = [
            number
            for number, other in enumerate(self.timeline.lanes)
            if (other.label, other.level, other.ranges) == (lane.label, lane.level, lane.ranges)
        ]
        return same[0] if same else self._busiest()

    @property
    def selected(self) -> Lane | None:
        """The lane that is selected; None of an empty timeline."""
        return self.timeline.lanes[self.lane] if self.timeline.lanes else None

    @property
    def rows(self) -> list[int]:
        """Numbers of the lanes that have a row: inner ones only where they show anything."""
        window = self.viewport.window
        if self._rows is None or self._rows[0] != window:
            shown = (
                number
                for number, lane in enumerate(self.timeline.lanes)
                if not lane.level or self.timeline.is_visible_in(lane, window)
            )
            self._rows = (window, list(shown))
        return self._rows[1]

    @property
    def row(self) -> int:
        """The row of the selected lane, or that of the next one outside of it which has a row."""
        return max(bisect_right(self.rows, self.lane) - 1, 0)

    def move(self, step: int) -> str:
        """Select the row ``step`` further down; why not where there is none."""
        rows = self.rows
        if not rows:
            return "nothing to show"
        target = min(max(self.row + step, 0), len(rows) - 1)
        if rows[target] == self.lane:
            return "the first row" if step < 0 else "the last row"
        self.lane = rows[target]
        return ""
