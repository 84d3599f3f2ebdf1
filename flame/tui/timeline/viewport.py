"""Show a window of a trace in cells: zoom and pan it, go back to windows before, brush a part."""

from __future__ import annotations

from dataclasses import field
from math import ceil
from typing import NamedTuple

from flame.core.lazy_dataclass import dataclass
from flame.core.timeline.busy_time import TimeWindow
from flame.core.timeline.raster import Grid
from flame.tui.toolkit.back_stack import BackStack

SHORTEST = 64
"""Nanoseconds that a window has at least."""

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


@dataclass
class TimeViewport:
    """The ``window`` of the ``whole`` trace that fills ``width`` cells, and the brush.

    ``home`` is the part of it that filters choose; a ``marked`` window is tinted.
    """

    whole: TimeWindow
    width: int = 1
    window: TimeWindow = field(init=False)
    home: TimeWindow = field(init=False)
    marked: TimeWindow | None = field(init=False, default=None)
    brush: Brush | None = field(init=False, default=None)
    _trail: BackStack[TimeWindow] = field(init=False, default_factory=BackStack)
    _left: dict[TimeWindow, TimeWindow] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.window = self.home = self.whole

    @property
    def grid(self) -> Grid:
        """The cells that show the window."""
        return Grid(self.window, max(self.width, 1))

    @property
    def middle(self) -> float:
        """The time in the middle of the window."""
        return (self.window.low + self.window.high) / 2

    def holds(self, window: TimeWindow) -> bool:
        """Tell whether any of ``window``, which may be empty, is in sight."""
        low, high = window
        return low < self.window.high and max(high, low + 1) > self.window.low

    def go_on(self, whole: TimeWindow, shift: int) -> None:
        """Take over a later state of the trace: a window at its end moves on with it."""
        before, self.whole = self.whole, whole
        self.home = whole if self.home == before else self.home.moved(shift)
        self.marked = self.marked and self.marked.moved(shift)
        self._left.clear()
        self._trail = self._trail.changed(lambda window: window.moved(shift))
        if self.window == before:
            self.window = whole
            return
        length, follows = self.window.length, self.window.high >= before.high
        self.show_from(whole.high - length if follows else self.window.low + shift, length)

    # Zooming

    def clamped(self, low: float, length: float) -> TimeWindow:
        """Return a window of about ``length`` from about ``low``, within the trace."""
        size = min(max(round(length), SHORTEST), self.whole.length)
        left = min(max(round(low), self.whole.low), self.whole.high - size)
        return TimeWindow(left, left + size)

    def show_from(self, low: float, length: float) -> None:
        """Show what is `clamped`, and remember nothing."""
        self.window = self.clamped(low, length)

    def zoom_to(self, window: TimeWindow) -> None:
        """Show ``window``, and remember what was shown before."""
        if window != self.window:
            self._trail.leave(self.window)
            self.window = window

    def zoom_at(self, time: float, factor: float) -> str:
        """Show a window ``factor`` times as long, in which ``time`` stays where it is."""
        before, length = self.window, self.window.length * factor
        low = time - (time - before.low) * factor
        self.zoom_to(self.clamped(low, length))
        if before == self.window:
            return "this is all of it" if factor > 1 else "no closer than this"
        return ""

    def out(self) -> str:
        """Show twice as much."""
        return self.zoom_at(self.middle, 2.0)

    def pan(self, step: float) -> str:
        """Move the window by ``step`` quarters of its length."""
        before = self.window
        by = step * max(before.length / 4, 1)
        self.show_from(before.low + by, before.length)
        if before == self.window:
            return "the end of the trace" if step > 0 else "the beginning of the trace"
        return ""

    def settle(self, home: TimeWindow) -> None:
        """Show ``home``, or what was last shown of it, unless filters chose it before too."""
        if home != self.home:
            self._left[self.home] = self.window
            self.home, self.window = home, self._left.pop(home, home)
            self._trail = BackStack()

    def reset(self) -> bool:
        """Show what filters choose, then the whole trace; False where that was shown already."""
        before = self.window
        self.zoom_to(self.whole if before in (self.home, self.whole) else self.home)
        return before != self.window

    def undo(self, forward: bool) -> bool:
        """Go back to the window before the last zoom, or forward again; False without any."""
        window = self._trail.go(1 if forward else -1, self.window)
        if window is None:
            return False
        self.show_from(window.low, window.length)
        return True

    # The brush

    def begin_brush(self, selected: TimeWindow | None) -> None:
        """Begin a brush over what is ``selected`` in sight, or else in the middle."""
        low, high = self.window
        if selected is not None:
            low, high = selected
        else:
            middle, part = (low + high) // 2, self.window.length // 20
            low, high = middle - part, middle + part
        self.brush = Brush(low, max(high, low + 1), moving=True)

    @property
    def brushed(self) -> tuple[int, int]:
        """Cells [left, right) that lie in the brush, or else in the marked window."""
        window = self.brush.window if self.brush else self.marked
        return self.grid.cells(window) if window else (0, 0)

    def move_brush(self, brush: Brush, step: int) -> None:
        """Move the end of ``brush``, and the window where that leaves it."""
        by = step * max(self.window.length // _BRUSH_STEPS, 1)
        end = min(max(brush.end + by, self.whole.low), self.whole.high)
        self.brush = brush._replace(end=end)
        if not self.window.low <= end <= self.window.high:
            self.show_from(self.window.low + by, self.window.length)

    def brush_cells(self, left: int, right: int) -> None:
        """Brush what starts in cells [left, right), as the mouse draws it."""
        low = min(max(ceil(self.grid.time(left)), 0), self.whole.high - 1)
        high = min(ceil(self.grid.time(right)), self.whole.high)
        self.brush = Brush(low, max(high, low + 1), moving=False)
