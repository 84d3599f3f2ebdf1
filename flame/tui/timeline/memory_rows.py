"""Draw how much memory lived on a GPU over time, several lines high where there is room."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from rich.segment import Segment
from rich.style import Style

from flame.core.columns import I8
from flame.core.lazy_dataclass import dataclass
from flame.core.model.frames import Kind
from flame.core.timeline.lanes import Track
from flame.core.timeline.memory_lanes import MemoryLane
from flame.core.units import BLOCKS, format_bytes
from flame.tui.timeline.blocks import TINTED
from flame.tui.timeline.time_view import TimeView
from flame.tui.toolkit.lines import ThemeStyles
from flame.tui.toolkit.text import fill

PEAK, FAILED = "▾", "!"
LEAST_LABELS = len("999 MB") + 3
"""Cells that the labels of memory take."""

_RESERVED = "░"
_FULL = len(BLOCKS) - 1
_MOST_LINES = 12
_FEW_LINES = 3
_LINES_OF_MARKS = 3
"""From so many lines on the first one names the peak and the requests that failed."""
_BESIDE_OTHERS = 16
"""From so many lines on the screen memory has `_FEW_LINES` beside other rows that fill it."""

_LIVE, _BEHIND, _BLANK, _MARK = 0, 1, 2, 3


class ScreenLine(NamedTuple):
    """Say which ``line`` of a ``row``, which is ``height`` lines high, a line of the screen is."""

    row: int
    line: int
    height: int


def screen_lines(view: TimeView, room: int) -> list[ScreenLine]:
    """Divide ``room`` lines between the rows: those of memory have what the others leave."""
    tracks = [view.timeline.lanes[number].track for number in view.lanes.rows]
    memory = tracks.count(Track.MEMORY)
    spare = room - len(tracks)
    least = _FEW_LINES if room >= _BESIDE_OTHERS and memory < len(tracks) else 1
    high = min(max(1 + spare // memory, least), _MOST_LINES) if memory else 1
    heights = [high if track == Track.MEMORY else 1 for track in tracks]
    return [
        ScreenLine(row, line, height)
        for row, height in enumerate(heights)
        for line in range(height)
    ]


class Marked(NamedTuple):
    """Place a ``text`` whose ``sign`` stands in ``cell``, to be seen at once if ``is_bad``."""

    cell: int
    sign: str
    text: str
    is_bad: bool


@dataclass(frozen=True, eq=False)
class MemoryDrawing:
    """Hold what the cells of a lane of memory show, in parts of ``most`` bytes.

    ``live`` and ``reserved`` (None where that is not known) are i8[cells]; ``marks`` are in order
    of cells, those that matter most last.
    """

    most: int
    live: I8
    reserved: I8 | None
    marks: tuple[Marked, ...]


def draw_memory(view: TimeView, number: int) -> MemoryDrawing:
    """Work out what lane ``number`` shows in the cells of ``view``."""
    lane, grid = view.timeline.memory_of(view.timeline.lanes[number]), view.viewport.grid
    live, reserved = lane.heights(grid.edges)
    marks = (
        mark
        for place, mark in _marks(lane)
        if 0 <= (cell := int(np.floor(grid.cell(int(lane.low[place]))))) < grid.width
        for mark in (mark._replace(cell=cell),)
    )
    return MemoryDrawing(max(lane.most, 1), live, reserved, tuple(marks))


def _marks(lane: MemoryLane) -> list[tuple[int, Marked]]:
    failed = [
        (place, Marked(0, FAILED, f"{format_bytes(one.size)} failed", True))
        for place, one in lane.failures
    ]
    peak = Marked(0, PEAK, f"peak {format_bytes(int(lane.top[lane.peak]))}", False)
    return [(lane.peak, peak), *failed]


def memory_label(drawing: MemoryDrawing, line: ScreenLine, name: str, width: int) -> str:
    """Write what stands left of a line: the name first, then what the top and bottom mean."""
    top = line.height >= _LINES_OF_MARKS
    if line.line == top and width:
        size = format_bytes(drawing.most)
        name = fill(name, width) if not line.line else ""
        return fill(f"{name.rstrip()} {size.rjust(width - len(name.rstrip()) - 2)}", width)
    if line.line and line.line == line.height - 1:
        return fill("0 B".rjust(width - 1), width)
    return fill(name if not line.line else "", width)


def memory_segments(
    drawing: MemoryDrawing,
    line: ScreenLine,
    look: ThemeStyles,
    brushed: tuple[int, int],
    cursor: int,
) -> list[Segment]:
    """Draw one line of a lane; ``cursor`` is the selected cell, -1 for none."""
    chars, looks = _cells(drawing, line)
    looks[slice(*brushed)] += TINTED
    edges = [0, *(np.flatnonzero(np.diff(looks)) + 1).tolist(), len(chars)]
    segments = []
    for left, right in pairwise(edges):
        style = _style(look, int(looks[left]))
        cuts = sorted({left, right, *(at for at in (cursor, cursor + 1) if left < at < right)})
        for first, last in pairwise(cuts):
            own = look.palette.cursor if first == cursor else style
            segments.append(Segment(chars[first:last], own))
    return segments


def _cells(drawing: MemoryDrawing, line: ScreenLine) -> tuple[str, I8]:
    """What stands in each cell, and its look."""
    has_marks = line.height >= _LINES_OF_MARKS
    if has_marks and not line.line:
        return _mark_line(drawing)
    curve = ScreenLine(line.row, line.line - has_marks, line.height - has_marks)
    chars, looks = _curve(drawing, curve)
    if not line.line:
        for mark in drawing.marks:
            chars[mark.cell], looks[mark.cell] = mark.sign, _MARK + mark.is_bad
    return "".join(chars), looks


def _curve(drawing: MemoryDrawing, line: ScreenLine) -> tuple[list[str], I8]:
    below = (line.height - 1 - line.line) * _FULL

    def eighths(size: I8) -> I8:
        whole = -(-size.astype(object) * line.height * _FULL // drawing.most)
        return np.clip(whole.astype(np.int64) - below, 0, _FULL)

    live = eighths(drawing.live)
    behind = np.zeros_like(live) if drawing.reserved is None else eighths(drawing.reserved)
    looks = np.where(live > 0, _LIVE, np.where(behind > 0, _BEHIND, _BLANK))
    chars = [
        BLOCKS[high] if high else _RESERVED if there else " "
        for high, there in zip(live.tolist(), behind.tolist(), strict=True)
    ]
    return chars, looks


def _mark_line(drawing: MemoryDrawing) -> tuple[str, I8]:
    """The signs where they belong, each with its text beside it where there is room."""
    width = len(drawing.live)
    chars, looks = [" "] * width, np.full(width, _BLANK)
    for mark in drawing.marks:
        chars[mark.cell], looks[mark.cell] = mark.sign, _MARK + mark.is_bad
    for mark in reversed(drawing.marks):
        for text in (mark.text, "OOM") if mark.is_bad else (mark.text,):
            first = _room_beside(chars, mark.cell, len(text) + 1)
            if first is not None:
                padded = f" {text}" if first > mark.cell else f"{text} "
                chars[first : first + len(padded)] = padded
                looks[first : first + len(padded)] = _MARK + mark.is_bad
                break
    return "".join(chars), looks


def _room_beside(chars: list[str], cell: int, size: int) -> int | None:
    """Where ``size`` free cells begin, right or else left of ``cell``; None without them."""
    for first in (cell + 1, cell - size):
        free = "".join(chars[max(first, 0) : first + size])
        if first >= 0 and len(free) == size and not free.strip():
            return first
    return None


def _style(look: ThemeStyles, kind: int) -> Style:
    base, palette = look.base, look.palette
    if kind >= TINTED:
        base, kind = base + palette.tint, kind - TINTED
    if kind == _LIVE:
        return base + palette.ink(Kind.KERNEL)
    if kind == _BEHIND:
        return base + palette.quiet
    if kind == _BLANK:
        return base
    return base + (palette.match_ink if kind > _MARK else Style(bold=True))
