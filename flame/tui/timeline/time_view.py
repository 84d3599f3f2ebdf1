"""Hold what is shown of a timeline and what is selected and brushed in it."""

from __future__ import annotations

from dataclasses import field

from flame.core.analysis.utilization import Utilization
from flame.core.lazy_dataclass import dataclass
from flame.core.timeline.busy_time import TimeWindow
from flame.core.timeline.gap_causes import GapCauses
from flame.core.timeline.highlight import Highlight
from flame.core.timeline.intervals import Timeline
from flame.core.timeline.lanes import Track
from flame.tui.timeline.cursor import TimeCursor
from flame.tui.timeline.gap_cursor import GapCursor
from flame.tui.timeline.lanes import VisibleLanes
from flame.tui.timeline.prepare import LaidOut
from flame.tui.timeline.viewport import SHORTEST, Brush, TimeViewport

_MARGIN = 0.25


@dataclass
class TimeView:
    """A timeline, and what is bright in it, with its viewport, rows, cursor and selected gap.

    ``busy`` says how busy the GPUs were that filters leave, in the time that these leave;
    ``causes`` why they were idle, once that is known.
    """

    timeline: Timeline
    highlight: Highlight
    busy: tuple[Utilization, ...] = field(init=False, default=())
    causes: tuple[GapCauses, ...] = field(init=False, default=())
    viewport: TimeViewport = field(init=False)
    lanes: VisibleLanes = field(init=False)
    cursor: TimeCursor = field(init=False)
    gaps: GapCursor = field(init=False)
    _given: Brush | None = field(init=False, default=None)
    _zoomed: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.viewport = TimeViewport(self.timeline.whole)
        self.lanes = VisibleLanes(self.timeline, self.viewport)
        self.cursor = TimeCursor(self.timeline, self.highlight, self.viewport, self.lanes)
        self.gaps = GapCursor(self.timeline, self.viewport)

    def take(self, laid_out: LaidOut) -> None:
        """Take over other filters, another search, or a later state of the timeline."""
        if laid_out.timeline is self.timeline:
            self.highlight = laid_out.highlight
            self.cursor.relight(laid_out.highlight)
        else:
            self._go_on(laid_out.timeline, laid_out.highlight)
        self.busy, self.causes = laid_out.busy, laid_out.causes
        self.gaps.take(laid_out.timeline, laid_out.gaps)
        self.viewport.settle(laid_out.home)

    def _go_on(self, timeline: Timeline, highlight: Highlight) -> None:
        """Take over a later state of the timeline; what is selected stays."""
        shift = self.timeline.origin - timeline.origin
        self.timeline, self.highlight = timeline, highlight
        self.viewport.go_on(timeline.whole, shift)
        self.lanes.go_on(timeline)
        self.cursor.go_on(timeline, highlight, shift)

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
        """Zoom to the selected interval, or else gap, with some room around it."""
        window = self.viewport.marked
        if self.cursor.item >= 0:
            window = self.timeline.window(self.cursor.item)
        if window is None:
            return "nothing selected: ← → select"
        low, high = window
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

    def brush(self, window: TimeWindow) -> None:
        """Brush ``window``, select the idle gap that it is, if any, and show what is around."""
        self.cursor.item = -1
        self.gaps.choose(window)
        low, high = window.low, max(window.high, window.low + 1)
        self.viewport.brush = self._given = Brush(low, high, moving=False)
        room, before = max(window.length, SHORTEST), self.viewport.window
        self.viewport.zoom_to(self.viewport.clamped(low - room, high - low + 2 * room))
        self._zoomed = self.viewport.window != before
        self.cursor.focus = (low + high) / 2

    def unbrush(self) -> bool:
        """Take back what `brush` has done, where that is still there; False where it is not."""
        given, self._given = self._given, None
        if given is None or self.viewport.brush != given:
            return False
        self.viewport.brush = None
        self.gaps.clear()
        if self._zoomed:
            self.viewport.undo(forward=False)
        return True

    def undo(self, forward: bool) -> bool:
        """Take back the last brush from outside or zoom, or undo that; False if there is none."""
        return (not forward and self.unbrush()) or self.viewport.undo(forward)

    # Idle gaps and folded rows

    @property
    def _device(self) -> int:
        """The GPU of the selected row, or that of the gap selected before; -1 of neither."""
        lane = self.lanes.selected
        if lane is not None and lane.track == Track.WORK:
            return lane.owner
        return self.gaps.of.device if self.gaps.of is not None else -1

    @property
    def selects_memory(self) -> bool:
        """Whether the selected row is of memory."""
        return self.lanes.selected is not None and self.lanes.selected.track == Track.MEMORY

    @property
    def selects_metric(self) -> bool:
        """Whether the selected row is of a metric of a GPU."""
        return self.lanes.selected is not None and self.lanes.selected.track == Track.METRIC

    def _next_failure(self, step: int) -> str:
        """Select the next (+1) or previous (-1) request for memory that failed."""
        assert self.lanes.selected is not None
        first, memory = self.lanes.selected.first, self.timeline.memory_of(self.lanes.selected)
        places = [first + place for place, _ in memory.failures]
        here = self.cursor.item
        beyond = [place for place in places if here < 0 or (place - here) * step > 0]
        if not beyond:
            return "no other failed request that way" if places else "no request failed here"
        self.cursor.select(beyond[0] if step > 0 else beyond[-1])
        return ""

    def _peak(self) -> str:
        """Select the moment of most memory."""
        assert self.lanes.selected is not None
        memory = self.timeline.memory_of(self.lanes.selected)
        self.cursor.select(self.lanes.selected.first + memory.peak)
        return ""

    def next_gap(self, step: int) -> str:
        """Select the next (+1) or previous (-1) idle gap that is wide enough to see.

        From the selected gap, or from what was selected after that. In a row of memory: the next
        request that failed.
        """
        if self.selects_memory:
            return self._next_failure(step)
        if self.cursor.item >= 0:
            self.gaps.clear()
        self.cursor.item = -1
        return self.gaps.next(step, self._device, self.cursor.time)

    def longest_gap(self, step: int) -> str:
        """Select the longest idle gap, then the next longest (+1), or the one before (-1).

        In a row of memory: its peak.
        """
        if self.selects_memory:
            return self._peak()
        self.cursor.item = -1
        return self.gaps.longest(step, self._device)

    def switch_rows(self) -> str:
        """Show more of what the selected thread did, or fold it away."""
        note = self.lanes.switch()
        self.cursor.item = -1
        return note

    def causes_of(self, device: int) -> GapCauses | None:
        """Find why ``device`` was idle; None where that is not known, or not yet."""
        return next((causes for causes in self.causes if causes.device == device), None)

    def point(self, row: int, cell: int, gap: int = -1) -> None:
        """Select ``row`` and what ``cell`` of it shows; left of the cells (-1) the row alone.

        That is the ``gap`` of its GPU with this number where it is not -1.
        """
        number = self.lanes.lane = self.lanes.rows[row]
        self.cursor.item = -1
        if cell < 0:
            return
        self.cursor.focus = self.viewport.grid.time(cell + 0.5)
        if gap >= 0:
            self.gaps.select(self.timeline.lanes[number].owner, gap)
        else:
            self.cursor.select_near(self.cursor.focus)
