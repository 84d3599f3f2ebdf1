"""Move from idle gap to idle gap of a GPU: by time, or by length."""

from __future__ import annotations

from dataclasses import field

import numpy as np

from flame.core.analysis.utilization import DeviceGaps, IdleGap
from flame.core.lazy_dataclass import dataclass
from flame.core.timeline.busy_time import TimeWindow
from flame.core.timeline.intervals import Timeline
from flame.tui.timeline.viewport import TimeViewport

_AROUND = 2.5
"""So many times as long as a gap is the window that shows it at least."""


@dataclass
class GapCursor:
    """The selected idle gap, ``number`` of those of ``of``, if any; ``devices`` have them all."""

    timeline: Timeline
    viewport: TimeViewport
    devices: tuple[DeviceGaps, ...] = ()
    of: DeviceGaps | None = field(init=False, default=None)
    number: int = field(init=False, default=-1)

    def take(self, timeline: Timeline, devices: tuple[DeviceGaps, ...]) -> None:
        """Take over what other filters, or a later state, leave; the same gap stays selected."""
        gap = self.gap
        self.timeline, self.devices = timeline, devices
        if gap is None:
            return
        self.clear()
        own = next((gaps for gaps in devices if gaps.device == gap.device), None)
        number = own.number_of(gap) if own is not None else -1
        if own is not None and number >= 0:
            self._select(own, number)

    @property
    def gap(self) -> IdleGap | None:
        """The selected gap."""
        return self.of.gap(self.number) if self.of is not None else None

    def clear(self) -> None:
        """Select none."""
        self.of, self.number, self.viewport.marked = None, -1, None

    def choose(self, window: TimeWindow) -> None:
        """Select the gap that ``window`` is, of whichever GPU; none where it is no gap."""
        self.clear()
        low, high = window.moved(self.timeline.origin)
        for gaps in self.devices:
            number = int(np.searchsorted(gaps.begin, low))
            if number < len(gaps) and (gaps.begin[number], gaps.end[number]) == (low, high):
                self._select(gaps, number)
                return

    def select(self, device: int, number: int) -> None:
        """Select the gap of ``device`` with this number."""
        gaps = self.gaps_of(device)
        if gaps is not None and number < len(gaps):
            self._select(gaps, number)

    def gaps_of(self, device: int) -> DeviceGaps | None:
        """Find the gaps of ``device``; of an unknown or filtered one those of the first."""
        own = (gaps for gaps in self.devices if gaps.device == device)
        return next(own, self.devices[0] if self.devices else None)

    def longest(self, step: int, device: int) -> str:
        """Select the longest gap, then the next longest (+1) or the one before (-1), and zoom."""
        gaps = self.gaps_of(device)
        if gaps is None or not len(gaps):
            return self._none
        place = int(gaps.rank[self.number]) + step if self._goes_on(gaps) else 0
        if not 0 <= place < len(gaps):
            return "the longest gap" if step < 0 else "the shortest gap"
        window = self._select(gaps, int(gaps.by_length[place]))
        length = window.length * _AROUND
        low = (window.low + window.high - length) / 2
        self.viewport.zoom_to(self.viewport.clamped(low, length))
        return ""

    def next(self, step: int, device: int, time: float) -> str:
        """Select the next (+1) or previous (-1) gap that is as wide as a cell; from ``time``."""
        gaps = self.gaps_of(device)
        if gaps is None or not len(gaps):
            return self._none
        number = self._wide_one(gaps, step, time)
        if number < 0:
            return f"no {'later' if step > 0 else 'earlier'} gap as wide as a cell: + goes closer"
        window, shown = self._select(gaps, number), self.viewport.window
        if window.low < shown.low or window.high > shown.high:
            length = max(shown.length, round(window.length * _AROUND))
            self.viewport.show_from((window.low + window.high - length) / 2, length)
        return ""

    def _wide_one(self, gaps: DeviceGaps, step: int, time: float) -> int:
        """The next wide gap of which the middle is beyond the selected one, or ``time``; -1."""
        middle = (gaps.begin + gaps.end) // 2 - self.timeline.origin
        here = float(middle[self.number]) if self._goes_on(gaps) else time
        wide = (gaps.end - gaps.begin) * self.viewport.grid.scale >= 1
        beyond = np.flatnonzero(wide & (middle > here if step > 0 else middle < here))
        return int(beyond[0 if step > 0 else -1]) if len(beyond) else -1

    @property
    def _none(self) -> str:
        """Why there is no gap."""
        known = self.devices or not self.timeline.devices
        return (
            "no idle gaps here" if known else "no idle gaps of a recording of which rows are gone"
        )

    def _goes_on(self, gaps: DeviceGaps) -> bool:
        return self.of is gaps

    def _select(self, gaps: DeviceGaps, number: int) -> TimeWindow:
        """Select a gap, and return its window."""
        self.of, self.number = gaps, number
        origin = self.timeline.origin
        window = TimeWindow(int(gaps.begin[number]) - origin, int(gaps.end[number]) - origin)
        self.viewport.marked = window
        return window
