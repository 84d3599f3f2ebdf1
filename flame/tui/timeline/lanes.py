"""Choose the lanes of a timeline that have a row on screen, and the selected one of them."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import field
from enum import IntEnum

from flame.core.lazy_dataclass import dataclass
from flame.core.timeline.busy_time import TimeWindow
from flame.core.timeline.intervals import Timeline
from flame.core.timeline.lanes import OF_GPUS, STATES, Lane, Track
from flame.tui.timeline.viewport import TimeViewport

MOST_OPEN = 3
"""Threads that are open at first: those that launched most."""


class Extent(IntEnum):
    """Name how much of a thread has rows.

    Its outermost ranges alone; all ranges, the innermost functions, the API calls and what held it
    up; all nested functions too.
    """

    FOLDED = 0
    OPEN = 1
    FUNCTIONS = 2


_ROWS = {
    Extent.FOLDED: (Track.RANGES,),
    Extent.OPEN: (Track.INNERMOST, Track.RANGES, Track.CALLS, *STATES),
    Extent.FUNCTIONS: (Track.FUNCTIONS, Track.RANGES, Track.CALLS, *STATES),
}


@dataclass
class VisibleLanes:
    """The lanes that ``viewport`` shows as rows; ``lane`` is the number of the selected one.

    Of threads that have more than one lane as much has rows as was last asked for.
    """

    timeline: Timeline
    viewport: TimeViewport
    lane: int = field(init=False)
    _extents: dict[int, Extent] = field(init=False, default_factory=dict)
    _rows: tuple[TimeWindow, list[int]] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.lane = self._busiest()
        self._meet_threads()

    def _meet_threads(self) -> None:
        """Open the first threads that there are, and fold later ones."""
        for thread in self._tracks:
            first = len(self._extents) < MOST_OPEN
            self._extents.setdefault(thread, Extent.OPEN if first else Extent.FOLDED)

    @property
    def _tracks(self) -> dict[int, list[Track]]:
        """The tracks of the lanes of the threads that can be folded."""
        tracks: dict[int, list[Track]] = {}
        for lane in self.timeline.lanes:
            if lane.track not in OF_GPUS:
                tracks.setdefault(lane.owner, []).append(lane.track)
        return {thread: have for thread, have in tracks.items() if have != [Track.RANGES]}

    def _busiest(self) -> int:
        """The lane with the most work on a GPU; without any the first."""
        before = self.timeline.before
        work = [
            (int(before[lane.last] - before[lane.first]), -number)
            for number, lane in enumerate(self.timeline.lanes)
            if lane.track == Track.WORK
        ]
        return -max(work)[1] if work else 0

    def go_on(self, timeline: Timeline) -> None:
        """Take over a later state of the timeline, in which the same lane is selected."""
        selected, self.timeline, self._rows = self.selected, timeline, None
        self.lane = self._busiest() if selected is None else self._same_lane(selected)
        self._meet_threads()

    def _same_lane(self, lane: Lane) -> int:
        """The number of the lane that is called as ``lane`` was."""
        same = [
            number
            for number, other in enumerate(self.timeline.lanes)
            if other._replace(first=lane.first, last=lane.last) == lane
        ]
        return same[0] if same else self._busiest()

    @property
    def selected(self) -> Lane | None:
        """The lane that is selected; None of an empty timeline."""
        return self.timeline.lanes[self.lane] if self.timeline.lanes else None

    @property
    def rows(self) -> list[int]:
        """Numbers of the lanes that have a row: inner ones, and states, where they show anything.

        Of folded threads only the outermost ranges.
        """
        window = self.viewport.window
        if self._rows is None or self._rows[0] != window:
            shown = (
                number
                for number, lane in enumerate(self.timeline.lanes)
                if self.has_row(lane)
                and (self._stays(lane) or self.timeline.is_visible_in(lane, window))
            )
            self._rows = (window, list(shown))
        return self._rows[1]

    def _stays(self, lane: Lane) -> bool:
        """Whether ``lane`` has a row where it shows nothing, too."""
        return not lane.level and lane.track not in STATES

    def has_row(self, lane: Lane) -> bool:
        """Tell whether ``lane`` is not folded away."""
        if lane.track in OF_GPUS:
            return True
        extent = self._extents.get(lane.owner, Extent.OPEN)
        return lane.track in _ROWS[extent] and not (lane.level and extent == Extent.FOLDED)

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

    # Folding

    def begins(self, number: int) -> bool:
        """Tell whether the lane with this number has the first row of its thread or stream."""
        row = bisect_right(self.rows, number) - 1
        if not row:
            return True
        lane, outer = (self.timeline.lanes[self.rows[at]] for at in (row, row - 1))
        apart = (Track.MEMORY, Track.METRIC)
        if lane.track != outer.track and (lane.track in apart or outer.track in apart):
            return True
        on_gpu = Track.WORK in (lane.track, outer.track)
        return outer.label != lane.label if on_gpu else outer.owner != lane.owner

    def is_open(self, number: int) -> bool | None:
        """Tell whether the thread that begins in a lane is open; None where nothing can fold."""
        lane = self.timeline.lanes[number]
        if lane.track in OF_GPUS or lane.owner not in self._extents or not self.begins(number):
            return None
        return self._extents[lane.owner] > Extent.FOLDED

    @property
    def folded(self) -> int:
        """Number of threads that are folded."""
        return list(self._extents.values()).count(Extent.FOLDED)

    def unfold(self) -> None:
        """Show as much of the thread of the selected lane as that needs."""
        lane = self.selected
        if lane is not None and not self.has_row(lane):
            functions = lane.track == Track.FUNCTIONS
            self._extents[lane.owner] = Extent.FUNCTIONS if functions else Extent.OPEN
            self._rows = None

    def switch(self) -> str:
        """Show more of the selected thread, or fold it; from a row of a GPU all threads."""
        lane = self.selected
        if lane is None or not self._extents:
            return "no rows of threads that could be folded"
        if lane.track not in OF_GPUS and lane.owner in self._extents:
            extent = self._extents[lane.owner] = self._next(lane.owner)
        else:
            extent = Extent.OPEN if self.folded else Extent.FOLDED
            self._extents = dict.fromkeys(self._extents, extent)
        self._rows = None
        if self.rows:
            self.lane = self.rows[self.row]
        return _NOTES[extent]

    def _next(self, thread: int) -> Extent:
        extent = self._extents[thread]
        most = Extent.FUNCTIONS if Track.FUNCTIONS in self._tracks[thread] else Extent.OPEN
        return Extent.FOLDED if extent == most else Extent(extent + 1)


_NOTES = {
    Extent.FOLDED: "folded: only the outermost ranges",
    Extent.OPEN: "",
    Extent.FUNCTIONS: "all functions, as they called each other",
}
