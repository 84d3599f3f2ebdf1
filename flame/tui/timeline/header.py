"""Above the timeline: the window, how busy GPUs are in it, and the axis; and its status line."""

from __future__ import annotations

from flame.core.model.frames import Kind
from flame.core.units import format_ns, format_percent
from flame.tui.timeline.axis import TICK, axis, clock, period
from flame.tui.timeline.cursor import TimeView
from flame.tui.toolkit.lines import Line, Piece
from flame.tui.toolkit.text import cut, cut_start, fill, width_of

_NAME = 48


def head(time: TimeView, labels: int, note: str, width: int) -> list[Line]:
    """The two lines; ``labels`` cells are left of the axis."""
    return [_summary(time, note, width), _axis(time, labels, width)]


def _summary(time: TimeView, note: str, width: int) -> Line:
    timeline, window = time.timeline, time.window
    length = format_ns(window.length)
    if window != timeline.whole:
        length += f" of {format_ns(timeline.whole.length)}"
    busy = "".join(
        f" · {name} busy {format_percent(device.share(window), 1.0)}"
        for name, device in timeline.devices
    )
    span = f" {period(window, timeline.origin)}"
    brush = f"  {_brush(time)} " if time.brush else ""
    room = max(width - width_of(span) - width_of(brush) - width_of(note), 0)
    return [
        Piece(cut_start(span, width), "strong"),
        Piece(cut_start(f" · {length}{busy}", room)),
        Piece(cut_start(brush, width - width_of(span)), "accent"),
        Piece(note, "dim"),
    ]


def _brush(time: TimeView) -> str:
    assert time.brush is not None
    window = time.brush.window
    return f"brush {format_ns(window.length)}: {period(window, time.timeline.origin)}"


def _axis(time: TimeView, labels: int, width: int) -> Line:
    cells = max(width - labels, 0)
    ruler = axis(time.grid, time.timeline.origin)
    line = ""
    for cell, label in ruler.ticks:
        mark = f"{TICK}{label}"
        if cell >= len(line) and cell + width_of(mark) <= cells:
            line = fill(line, cell) + mark
    base = cut_start(f"{ruler.base} " if ruler.base else "", labels).rjust(labels)
    left, right = time.grid.cells(time.brush.window) if time.brush else (0, 0)
    line = fill(line, cells)
    return [
        Piece(base, "dim"),
        Piece(line[:left], "dim"),
        Piece(line[left:right], "accent"),
        Piece(line[right:], "dim"),
    ]


def hint(time: TimeView, text: tuple[str, ...]) -> str:
    """What is selected, or what can be done."""
    if time.brush is not None:
        moving = "← → move its end, " if time.brush.moving else ""
        return f"brush: {moving}enter filters all views by it, esc leaves it"
    if time.item < 0:
        return "↑ ↓ rows   ← → next on the row   + - closer, farther   , . pan   b brush a window"
    timeline, item = time.timeline, time.item
    window = timeline.window(item)
    name = cut(text[int(timeline.frame[item])], _NAME)
    start = clock(timeline.origin + window.low, 1000)
    facts = [name, f"{format_ns(window.length)} from {start}"]
    if timeline.devices and timeline.kind[item] != Kind.NVTX:
        idle = int(timeline.table.idle[timeline.source[item]])
        facts.append(f"GPU idle {format_ns(idle)} before" if idle else "no idle time before")
    if not time.light.passing[item]:
        facts.append("filtered out")
    return " · ".join(facts)
