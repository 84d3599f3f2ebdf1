"""The rows of the timeline, cell by cell: bars with names, and blocks as high as cells are busy."""

from __future__ import annotations

from itertools import pairwise
from math import ceil
from typing import NamedTuple

import numpy as np
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.message import Message
from textual.strip import Strip

from flame.core.frames import Kind
from flame.core.shading import Bar, Shading, shade
from flame.core.units import format_percent
from flame.tui.icicle import EDGE
from flame.tui.lines import Rows
from flame.tui.palette import Palette
from flame.tui.text import cut, fill, printable, take, width_of
from flame.tui.timeline_view import TimeView

BLOCKS = "▁▂▃▄▅▆▇█"
"""By how many eighths of a cell are busy; any work at all leaves a mark."""

CURRENT = "▸"

_LONGEST_LABEL = 30
_SHARE = len(" 99.9 % ")
_ROOM_FOR_SHARE = 90
_QUIET = -1
_BLANK = -2


class TimelineRows(Rows):
    """Draws a `TimeView`; says which cell of which row the mouse means."""

    class Pointed(Message):
        """A click on ``cell`` of ``row``; left of the cells it is -1."""

        def __init__(self, row: int, cell: int, zoom: bool) -> None:
            super().__init__()
            self.row = row
            self.cell = cell
            self.zoom = zoom

    class Dragged(Message):
        """The mouse was drawn over cells [left, right)."""

        def __init__(self, left: int, right: int) -> None:
            super().__init__()
            self.left = left
            self.right = right

    class Wheeled(Message):
        """The wheel was turned over ``cell`` to zoom (in: +1, out: -1) or to ``pan``."""

        def __init__(self, cell: int, step: int, pan: bool) -> None:
            super().__init__()
            self.cell = cell
            self.step = step
            self.pan = pan

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._view: TimeView | None = None
        self._text: tuple[str, ...] = ()
        self._drawn: object = None
        self._shadings: dict[int, Shading] = {}
        self._pressed = -1
        self._dragging = False

    # Layout

    @property
    def labels(self) -> int:
        """Cells that the labels take."""
        view, width = self._view, self.inner.width
        if view is None:
            return 0
        longest = max((width_of(printable(lane.label)) for lane in view.timeline.lanes), default=0)
        share = _SHARE if width >= _ROOM_FOR_SHARE else 0
        return min(min(longest, _LONGEST_LABEL) + 2 + share, width // 3)

    @property
    def cells(self) -> int:
        """Cells that show the window."""
        return max(self.inner.width - self.labels, 1)

    def show(self, view: TimeView, text: tuple[str, ...]) -> None:
        """Draw ``view``, whose frames are called ``text``, as far as the screen differs."""
        self._view, self._text = view, text
        if not self.inner.width:
            return
        view.width = self.cells
        self.reach(len(view.rows))
        self._reveal(view.row)
        self.redraw()

    def on_resize(self) -> None:
        if self._view is not None:
            self.show(self._view, self._text)

    def _reveal(self, row: int) -> None:
        height, top = self.size.height, self.scroll_offset.y
        wanted = min(max(top, row - height + 1), row)
        self.scroll_to(y=wanted, animate=False)
        if self.scroll_offset.y != wanted:  # there is no room to scroll before the next layout
            self.call_after_refresh(self.scroll_to, y=wanted, animate=False)

    # Drawing

    def strip(self, row: int) -> Strip:
        view = self._view
        if view is None or row >= len(view.rows):
            return self.padded([], 0)
        number = view.rows[row]
        if number not in self._shade():
            return self.padded([], 0)
        segments = [*self._label(view, number), *self._cells(view, number)]
        return Strip(segments, self.labels + self.cells).crop(0, self.size.width)

    def _shade(self) -> dict[int, Shading]:
        """What the lanes on screen show, worked out for all of them at once."""
        view = self._view
        assert view is not None
        top = self.scroll_offset.y
        lanes = view.rows[top : top + self.size.height]
        picture = (view.window, view.width, view.light, lanes)
        if self._drawn != picture:
            self._drawn = picture
            chosen = [view.timeline.lanes[number] for number in lanes]
            shadings = shade(view.timeline, view.light, chosen, view.grid)
            self._shadings = dict(zip(lanes, shadings, strict=True))
        return self._shadings

    def _label(self, view: TimeView, number: int) -> list[Segment]:
        base, palette, _ = self.look
        lane, current = view.timeline.lanes[number], number == view.lane
        width, share = self.labels, ""
        if self.inner.width >= _ROOM_FOR_SHARE:
            part = view.timeline.busy(lane).share(view.window)
            share = f"{format_percent(part, 1.0)} ".rjust(_SHARE)
        name = "" if lane.level else lane.label
        mark = CURRENT if current else " "
        text = fill(mark + cut(name, max(width - len(share) - 2, 0)), width - len(share))
        style = base + Style(bold=True) if current else base
        return [Segment(take(text, width), style), Segment(share, base + palette.quiet)]

    def _cells(self, view: TimeView, number: int) -> list[Segment]:
        shading, segments, at = self._shadings[number], [], 0
        dense = _Dense(shading, view.light.matching is not None, self._tint(view))
        for bar in shading.bars:
            segments += dense.between(at, bar.left, self.look.palette, self.look.base)
            segments.append(self._bar(view, bar))
            at = bar.right
        segments += dense.between(at, view.width, self.look.palette, self.look.base)
        return self._marked(view, number, shading, segments)

    def _tint(self, view: TimeView) -> tuple[int, int]:
        """Cells [left, right) that lie in the brush."""
        if view.brush is None:
            return 0, 0
        low, high = view.brush.window
        left, right = view.grid.cell(low), view.grid.cell(high)
        return max(int(left), 0), min(ceil(right), view.width)

    def _bar(self, view: TimeView, bar: Bar) -> Segment:
        width, item = bar.right - bar.left, bar.item
        name = self._text[int(view.timeline.frame[item])]
        label = cut(name, width - 1) if width > 3 else ""
        text = take(EDGE + fill(label, width - 1), width)
        return Segment(text, self._style(view, item, name))

    def _style(self, view: TimeView, item: int, name: str) -> Style:
        palette, light = self.look.palette, view.light
        if item == view.item:
            return palette.cursor
        if light.matching is not None and light.matching[item]:
            return palette.match
        kind = Kind(int(view.timeline.kind[item]))
        return palette.frame(kind, name, not light.bright[item])

    def _marked(
        self, view: TimeView, number: int, shading: Shading, segments: list[Segment]
    ) -> list[Segment]:
        """``segments`` with the selected interval as one cell, where it has no bar of its own."""
        item = view.item
        if number != view.lane or item < 0 or any(bar.item == item for bar in shading.bars):
            return segments
        cell = int(view.grid.cell(int(view.timeline.low[item])))
        if not 0 <= cell < view.width:
            return segments
        strip = Strip(segments, view.width)
        mark = Strip([Segment(EDGE, self.look.palette.cursor)], 1)
        return list(Strip.join([strip.crop(0, cell), mark, strip.crop(cell + 1)]))

    # Mouse

    def _cell(self, event: events.MouseEvent) -> int:
        return max(event.x - self.labels, -1)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self._pressed, self._dragging = self._cell(event), False
        if self._pressed >= 0 and event.button == 1:
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self.app.mouse_captured is self and self._cell(event) != self._pressed:
            self._dragging = True
        if self.app.mouse_captured is self and self._dragging:
            cell = min(max(self._cell(event), 0), self.cells - 1)
            self.post_message(self.Dragged(min(cell, self._pressed), max(cell, self._pressed) + 1))

    def on_mouse_up(self) -> None:
        self.release_mouse()

    def on_click(self, event: events.Click) -> None:
        if not self._dragging:
            row = self.scroll_offset.y + event.y
            self.post_message(self.Pointed(row, self._cell(event), event.chain == 2))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, 1)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, -1)

    def _wheel(self, event: events.MouseEvent, step: int) -> None:
        """Zoom with ctrl, pan with shift; else the rows scroll."""
        if event.ctrl or event.shift:
            event.stop()
            event.prevent_default()
            self.post_message(self.Wheeled(self._cell(event), step, event.shift))


class _Dense(NamedTuple):
    """The cells of a row between its bars."""

    shading: Shading
    searching: bool
    tint: tuple[int, int]

    def between(self, left: int, right: int, palette: Palette, base: Style) -> list[Segment]:
        """Cells [left, right), those of one style as one segment."""
        if left >= right:
            return []
        cover, lit = self.shading.cover[left:right], self.shading.lit[left:right]
        look = np.where(lit > 0, self.shading.kind[left:right].astype(np.int64), _QUIET)
        look[cover <= 0] = _BLANK
        cells = np.arange(left, right)
        tinted = (cells >= self.tint[0]) & (cells < self.tint[1])
        height = np.where(lit > 0, lit, cover)
        eighths = np.clip(np.ceil(height * 8 - 1e-9), 1, 8).astype(np.int64).tolist()
        changes = (np.diff(look) != 0) | (np.diff(tinted) != 0)
        edges = [0, *(np.flatnonzero(changes) + 1).tolist(), right - left]
        segments = []
        for first, last in pairwise(edges):
            kind = int(look[first])
            blocks = (BLOCKS[eighth - 1] for eighth in eighths[first:last])
            text = " " * (last - first) if kind == _BLANK else "".join(blocks)
            segments.append(Segment(text, self._style(kind, bool(tinted[first]), palette, base)))
        return segments

    def _style(self, look: int, tinted: bool, palette: Palette, base: Style) -> Style:
        paper = palette.run(0.5, False, False) if tinted else base
        paper = base + Style(bgcolor=paper.bgcolor)
        if look == _BLANK:
            return paper
        if look == _QUIET:
            return paper + palette.quiet
        if self.searching:
            return paper + Style(color=palette.match.bgcolor)
        return paper + _ink(palette, Kind(look))


def _ink(palette: Palette, kind: Kind) -> Style:
    """The colour of frames of ``kind`` as ink."""
    _, style = palette.density(kind, 1.0)
    return Style(color=style.bgcolor or style.color)
