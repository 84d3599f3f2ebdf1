"""Draw the rows of the timeline: bars with names, and blocks as high as cells are busy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.message import Message
from textual.strip import Strip

from flame.core.columns import I8
from flame.core.model.calls import CallClass, StateKind
from flame.core.model.frames import Frame, FrameTable
from flame.core.timeline.lanes import STATES, Track
from flame.core.timeline.raster import Bar, Shading, shade
from flame.core.units import format_percent
from flame.tui.timeline.blocks import (
    BLANK,
    CALLS,
    HATCHED,
    STATES_OF_THREADS,
    TINTED,
    block_style,
    blocks_of,
    looks_of,
)
from flame.tui.timeline.hatching import Hatching, hatchings
from flame.tui.timeline.memory_rows import (
    LEAST_LABELS,
    MemoryDrawing,
    ScreenLine,
    draw_memory,
    memory_label,
    memory_segments,
    screen_lines,
)
from flame.tui.timeline.metric_rows import (
    MetricDrawing,
    draw_metric,
    metric_label,
    metric_segments,
)
from flame.tui.timeline.time_view import TimeView
from flame.tui.toolkit.lines import EDGE, RowView
from flame.tui.toolkit.text import cut, fill, printable, take, width_of

CURRENT = "▸"
OPEN, FOLDED = "-", "+"

_WORDS = {
    Track.FUNCTIONS: "Python",
    Track.INNERMOST: "Python, innermost",
    Track.CALLS: "API calls",
    Track.COLLECTION: "GC",
    Track.GIL: "GIL",
    Track.LOADING: "loading",
    Track.PROFILER: "profiler",
}

_LONGEST_LABEL = 30
_SHARE = len(" 99.9 % ")
_ROOM_FOR_SHARE = 90
_LEAST_LABEL = 3
_SIGN = 2

_BARS = 1000


class TimelineRows(RowView):
    """Draw a `TimeView`: ``labels`` cells of labels, ``cells`` of time; tells of the mouse."""

    labels = 0
    cells = 1

    class Pointed(Message):
        """A click on ``cell`` of ``row``, left of the cells -1.

        There is an idle gap of the row's GPU with the number ``gap``, or nothing of one (-1).
        """

        def __init__(self, row: int, cell: int, gap: int, zoom: bool) -> None:
            super().__init__()
            self.row = row
            self.cell = cell
            self.gap = gap
            self.zoom = zoom

    class Switched(Message):
        """A click on the sign of ``row``, which begins a thread."""

        def __init__(self, row: int) -> None:
            super().__init__()
            self.row = row

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
        self._frames: FrameTable | None = None
        self._text: Sequence[str] = ()
        self._shaded: object = None
        self._brushed: object = None
        self._shadings: dict[int, Shading] = {}
        self._hatchings: dict[int, Hatching] = {}
        self._drawings: dict[int, MemoryDrawing] = {}
        self._metrics: dict[int, MetricDrawing] = {}
        self._strips: dict[tuple[int, int, int | None], Strip] = {}
        self._lines: list[ScreenLine] = []
        self._laid_out: tuple[object, ...] = ()
        self._shares = False
        self._pressed = -1
        self._dragging = False

    # Layout

    def show(self, view: TimeView, frames: FrameTable, text: Sequence[str]) -> None:
        """Draw ``view`` of ``frames``, called ``text``, as far as the screen differs."""
        width = self.inner.width
        laid_out = (text, width, bool(view.timeline.metrics))
        if view is not self._view or laid_out != self._laid_out:
            self._view, self._frames, self._text, self._laid_out = view, frames, text, laid_out
            self._lay_out(view, width)
            self._strips.clear()
        if not width:
            return
        view.viewport.width = self.cells
        lines = screen_lines(view, self.size.height)
        if lines != self._lines:
            self._lines, self._shaded = lines, None
        self.reach(len(lines))
        self._reveal(view.lanes.row, above=view.gaps.of is not None)
        self.redraw()

    def _lay_out(self, view: TimeView, width: int) -> None:
        """Divide ``width`` cells between the labels and the time."""
        self._shares = width >= _ROOM_FOR_SHARE
        names = (width_of(printable(lane.label)) for lane in view.timeline.lanes)
        wanted = min(max(names, default=0), _LONGEST_LABEL) + 3 + self._shares * _SHARE
        wanted = max(wanted, LEAST_LABELS) if view.timeline.memory else wanted
        self.labels = min(wanted, width // 3)
        self.cells = max(width - self.labels, 1)

    def on_resize(self) -> None:
        if self._view is not None and self._frames is not None:
            self.show(self._view, self._frames, self._text)

    def _reveal(self, row: int, above: bool) -> None:
        """Bring ``row`` into sight, with as many as can be of the rows ``above`` it."""
        height, top = self.size.height, self.scroll_offset.y
        own = [at for at, line in enumerate(self._lines) if line.row == row] or [0]
        first, last = own[0], own[-1]
        wanted = max(last - height + 1, 0) if above else min(max(top, last - height + 1), first)
        if height:
            self.scroll_to_row(wanted)

    # Drawing

    def strip(self, row: int) -> Strip:
        view, at = self._view, self._lines[row] if row < len(self._lines) else None
        if view is None or at is None or at.row >= len(view.lanes.rows):
            return self.padded([], 0)
        self._shade(view)
        number = view.lanes.rows[at.row]
        if all(number not in each for each in (self._shadings, self._drawings, self._metrics)):
            return self.padded([], 0)
        own = (number, at.line, view.cursor.item if number == view.lanes.lane else None)
        if own not in self._strips:
            if number in self._drawings:
                segments = self._memory(view, number, at)
            elif number in self._metrics:
                segments = self._metric(view, number)
            else:
                segments = [*self._label(view, number), *self._row(view, number)]
            self._strips[own] = self.padded(segments, self.labels + self.cells)
        return self._strips[own]

    def _memory(self, view: TimeView, number: int, at: ScreenLine) -> list[Segment]:
        """One line of a lane of memory."""
        drawing, look, current = self._drawings[number], self.look, number == view.lanes.lane
        name = f"{CURRENT if current else ' '}{_title(view, number)}"
        label = take(memory_label(drawing, at, name, self.labels), self.labels)
        style = look.base + (Style(bold=True) if current and not at.line else Style.null())
        item, grid = view.cursor.item, view.viewport.grid
        cell = int(grid.cell(int(view.timeline.low[item]))) if current and item >= 0 else -1
        brushed = view.viewport.brushed
        return [Segment(label, style), *memory_segments(drawing, at, look, brushed, cell)]

    def _metric(self, view: TimeView, number: int) -> list[Segment]:
        """The line of a metric of a GPU."""
        drawing, look, current = self._metrics[number], self.look, number == view.lanes.lane
        name = f"{CURRENT if current else ' '}{printable(_title(view, number))}"
        label = take(metric_label(drawing, name, self.labels), self.labels)
        style = look.base + (Style(bold=True) if current else Style.null())
        return [Segment(label, style), *metric_segments(drawing, look, view.viewport.brushed)]

    def _shade(self, view: TimeView) -> None:
        """Work out what the lanes on screen show, all of them at once."""
        top, rows = self.scroll_offset.y, view.lanes.rows
        seen = {line.row for line in self._lines[top : top + self.size.height]}
        lanes = [rows[row] for row in sorted(seen) if row < len(rows)]
        shown = (view.viewport.window, view.viewport.width, view.highlight, lanes)
        if self._shaded != shown:
            self._shaded = shown
            tracks = {number: view.timeline.lanes[number].track for number in lanes}
            memory = [number for number in lanes if tracks[number] == Track.MEMORY]
            self._drawings = {number: draw_memory(view, number) for number in memory}
            metrics = [number for number in lanes if tracks[number] == Track.METRIC]
            self._metrics = {number: draw_metric(view, number) for number in metrics}
            others = [number for number in lanes if number not in (*memory, *metrics)]
            chosen = [view.timeline.lanes[number] for number in others]
            shadings = shade(view.timeline, view.highlight, chosen, view.viewport.grid)
            self._shadings = dict(zip(others, shadings, strict=True))
            self._hatchings = hatchings(view, lanes)
            self._strips.clear()
        if self._brushed != view.viewport.brushed:
            self._brushed = view.viewport.brushed
            self._strips.clear()

    def forget(self) -> None:
        self._strips.clear()
        super().forget()

    def _label(self, view: TimeView, number: int) -> list[Segment]:
        base, palette, _ = self.look
        lane, current = view.timeline.lanes[number], number == view.lanes.lane
        width, share = self.labels, ""
        if self._shares:
            part = view.timeline.busy(lane).share(view.viewport.window)
            share = f"{format_percent(part, 1.0)} ".rjust(_SHARE)
        mark = f"{CURRENT if current else ' '}{self._sign(view, number)}"
        name = cut(_title(view, number), max(width - len(share) - width_of(mark) - 1, 0))
        text = fill(mark + name, width - len(share))
        style = base + Style(bold=True) if current else base
        return [Segment(take(text, width), style), Segment(share, base + palette.quiet)]

    def _sign(self, view: TimeView, number: int) -> str:
        """Whether the thread that begins with this lane is open (-) or folded (+)."""
        is_open = view.lanes.is_open(number)
        return "" if is_open is None else OPEN if is_open else FOLDED

    def _row(self, view: TimeView, number: int) -> list[Segment]:
        """The cells of a lane: bars, and between them blocks, those of one style together."""
        shading, segments = self._shadings[number], []
        looks, blocks = self._cells(number)
        looks[slice(*view.viewport.brushed)] += TINTED
        for place, bar in enumerate(shading.bars):
            looks[bar.left : bar.right] = _BARS + place
        edges = [0, *(np.flatnonzero(np.diff(looks)) + 1).tolist(), view.viewport.width]
        for left, right in pairwise(edges):
            look = int(looks[left])
            if look >= _BARS:
                segments.append(self._bar(view, shading.bars[look - _BARS]))
            else:
                searching = view.highlight.matching is not None
                style = block_style(self.look.palette, self.look.base, look, searching)
                segments.append(Segment(blocks[left:right], style))
        return self._marked(view, number, shading, segments)

    def _cells(self, number: int) -> tuple[I8, str]:
        """What decides on the style of each cell of a lane but for bars, and what stands there."""
        shading, hatching = self._shadings[number], self._hatchings.get(number)
        looks, blocks = looks_of(shading), blocks_of(shading)
        if hatching is None:
            return looks, blocks
        hatched = (looks == BLANK) & (hatching.cause >= 0)
        looks[hatched] = HATCHED + hatching.cause[hatched]
        both = zip(hatched.tolist(), hatching.text, blocks, strict=True)
        return looks, "".join(hatch if idle else block for idle, hatch, block in both)

    def _bar(self, view: TimeView, bar: Bar) -> Segment:
        width, item = bar.right - bar.left, bar.item
        assert self._frames is not None
        name = view.timeline.name(item, self._text)
        label = cut(name, width - 1) if width > _LEAST_LABEL else ""
        text = take(EDGE + fill(label, width - 1), width)
        frame = self._frames[int(view.timeline.frame[item])]
        return Segment(text, self._style(view, item, frame, name))

    def _style(self, view: TimeView, item: int, frame: Frame, name: str) -> Style:
        palette, highlight = self.look.palette, view.highlight
        if item == view.cursor.item:
            return palette.cursor
        if highlight.matching is not None and highlight.matching[item]:
            return palette.match
        kind, faded = int(view.timeline.kind[item]), not highlight.bright[item]
        if kind in CALLS:
            return palette.call(CallClass(kind), name, faded)
        if kind in STATES_OF_THREADS:
            return palette.state(StateKind(kind), name, faded)
        return palette.frame(frame, name, faded)

    def _marked(
        self, view: TimeView, number: int, shading: Shading, segments: list[Segment]
    ) -> list[Segment]:
        """``segments`` with the selected interval as one cell, where it has no bar of its own."""
        item = view.cursor.item
        if number != view.lanes.lane or item < 0 or any(bar.item == item for bar in shading.bars):
            return segments
        cell = int(view.viewport.grid.cell(int(view.timeline.low[item])))
        if not 0 <= cell < view.viewport.width:
            return segments
        strip = Strip(segments, view.viewport.width)
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
        if self._dragging:
            return
        at = self.scroll_offset.y + event.y
        row = self._lines[at].row if at < len(self._lines) else len(self._lines)
        if event.x < _SIGN and self._has_sign(row):
            self.post_message(self.Switched(row))
        else:
            cell = self._cell(event)
            self.post_message(self.Pointed(row, cell, self._gap(row, cell), event.chain == 2))

    def _gap(self, row: int, cell: int) -> int:
        """The number of the idle gap that ``cell`` of ``row`` is hatched for, or -1."""
        view = self._view
        if view is None or not 0 <= cell < self.cells or row >= len(view.lanes.rows):
            return -1
        number = view.lanes.rows[row]
        shading, hatching = self._shadings.get(number), self._hatchings.get(number)
        if shading is None or hatching is None or shading.cover[cell] > 0:
            return -1
        return int(hatching.gap[cell])

    def _has_sign(self, row: int) -> bool:
        view = self._view
        shown = view is not None and row < len(view.lanes.rows)
        return view is not None and shown and bool(self._sign(view, view.lanes.rows[row]))

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


def _title(view: TimeView, number: int) -> str:
    """What the label of a lane says: the thread where that begins, else what the lane shows."""
    lane = view.timeline.lanes[number]
    if lane.level:
        return ""
    word = _WORDS.get(lane.track, "")
    if not view.lanes.begins(number):
        return f"  {word}"
    return f"{word} {lane.label}" if lane.track in STATES else lane.label
