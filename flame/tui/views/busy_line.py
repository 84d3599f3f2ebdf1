"""Draw in one line how busy the GPUs were over time; a stretch of it can be brushed."""

from __future__ import annotations

import numpy as np
from rich.segment import Segment
from textual import events
from textual.strip import Strip

from flame.core.analysis.utilization import Utilization, utilizations
from flame.core.lazy_dataclass import dataclass
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.projection.filters import Filter, Time
from flame.core.timeline.busy_time import TimeWindow
from flame.core.units import format_ns, format_shares
from flame.tui.toolkit.lines import RowView
from flame.tui.views.pane import Pane

_LABEL = " GPU busy "
_LABEL_OF_MANY = " GPUs busy "


@dataclass(frozen=True)
class _Brush:
    """A stretch being drawn with the mouse, between two cells, both within it."""

    anchor: int
    end: int

    @property
    def cells(self) -> tuple[int, int]:
        """Cells [left, right)."""
        return min(self.anchor, self.end), max(self.anchor, self.end) + 1


class BusyLine(RowView):
    """Draw which part of the time of each cell the GPUs were busy: of several their mean.

    It shows the time that the filters choose. A drag filters all views by the stretch drawn.
    """

    DEFAULT_CSS = "BusyLine { height: 1; } BusyLine.-unknown { display: none; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._found: tuple[Utilization, ...] = ()
        self._brush: _Brush | None = None

    def show(self, profile: Profile, where: tuple[Filter, ...]) -> None:
        """Draw the GPUs of ``profile`` that ``where`` leaves, in the time that it leaves."""
        found = () if profile.totals else utilizations(profile, where)
        self._found = tuple(each for each in found if each.length)
        self.set_class(not self._found, "-unknown")
        self.redraw()

    @property
    def window(self) -> TimeWindow:
        """The time that is drawn, on the trace's clock."""
        low = min(each.window.low for each in self._found)
        return TimeWindow(low, max(each.window.high for each in self._found))

    # Drawing

    @property
    def _label(self) -> str:
        return _LABEL if len(self._found) < 2 else _LABEL_OF_MANY

    @property
    def _cells(self) -> int:
        """The cells that show time."""
        return max(self.inner.width - len(self._label), 1)

    def strip(self, row: int) -> Strip:
        base, palette, _ = self.look
        if not self._found:
            return self.padded([], 0)
        text, width = self._blocks(self._cells), self.inner.width
        left, right = self._brush.cells if self._brush else (0, 0)
        quiet, ink = base + palette.quiet, base + palette.ink(Kind.KERNEL)
        brushed = ink + palette.tint
        parts = [(text[:left], ink), (text[left:right], brushed), (text[right:], ink)]
        segments = [Segment(part, style) for part, style in parts if part]
        return self.padded([Segment(self._label, quiet), *segments], width)

    def _blocks(self, cells: int) -> str:
        parts = [each.in_cells(self.window, cells) for each in self._found]
        length = np.maximum(parts[0][1], 1)
        return format_shares((sum(busy for busy, _ in parts) / len(parts) / length).tolist())

    # Mouse

    def _cell(self, event: events.MouseEvent) -> int:
        return min(max(event.x - len(self._label), 0), self._cells - 1)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        if self._found and event.button == 1:
            self._brush = _Brush(self._cell(event), self._cell(event))
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._brush is not None and self._cell(event) != self._brush.end:
            self._brush = _Brush(self._brush.anchor, self._cell(event))
            self.redraw()
            self.post_message(
                Pane.Changed(
                    f"{format_ns(self._drawn(self._brush).length)} of time: let go to filter by it"
                )
            )

    def on_mouse_up(self) -> None:
        brush, self._brush = self._brush, None
        self.release_mouse()
        if brush is None or brush.anchor == brush.end:
            return
        self.redraw()
        self.post_message(Pane.Filtered(Time(*self._drawn(brush))))

    def _drawn(self, brush: _Brush) -> TimeWindow:
        """The time of the cells in ``brush``, to the nanosecond that each begins with."""
        window, (left, right) = self.window, brush.cells
        low, high = (window.low + window.length * at // self._cells for at in (left, right))
        return TimeWindow(low, max(high, low + 1))
