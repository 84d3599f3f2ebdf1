"""Draw the lines above the timeline, with the axis, and write its status line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, floor
from typing import NamedTuple

from flame.core.model.calls import CallClass, StateKind
from flame.core.timeline.busy_time import TimeWindow
from flame.core.timeline.lanes import STATES, Track
from flame.core.timeline.raster import Grid
from flame.core.units import format_bytes, format_count, format_ns, format_percent
from flame.tui.timeline.metric_rows import metric_hint
from flame.tui.timeline.time_view import TimeView
from flame.tui.toolkit.lines import Line, Piece
from flame.tui.toolkit.text import cut, cut_start, fill, printable, width_of

TICK = "╵"
CLOSEST = 14
"""Cells from one tick to the next, at least: room for a label."""

_SECOND = 1_000_000_000
_UNITS = ((_SECOND, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))
_NAME = 48
_CLASSES = {
    CallClass.SYNC: "waits for the GPU",
    CallClass.COPY: "copies or sets memory",
    CallClass.ALLOC: "allocates or frees memory",
    CallClass.LAUNCH: "launches",
}

_STATES = {
    StateKind.COLLECTION: "garbage collection",
    StateKind.GIL_HELD: "holds the GIL",
    StateKind.GIL_WAITING: "waits for the GIL",
    StateKind.LOADING: "loading",
    StateKind.PROFILER: "the profiler holds up",
}


def head(time: TimeView, labels: int, note: str, width: int) -> list[Line]:
    """Compose the two lines; ``labels`` cells are left of the axis."""
    return [_summary(time, note, width), _axis(time, labels, width)]


def _summary(time: TimeView, note: str, width: int) -> Line:
    timeline, window = time.timeline, time.viewport.window
    length = format_ns(window.length)
    if window != timeline.whole:
        length += f" of {format_ns(timeline.whole.length)}"
    busy = "".join(f" · {name} busy {share}" for name, share in _busy(time))
    span = f" {period(window, timeline.origin)}"
    brush = f"  {_brush(time)} " if time.viewport.brush else ""
    room = max(width - width_of(span) - width_of(brush) - width_of(note), 0)
    return [
        Piece(cut_start(span, width), "strong"),
        Piece(cut_start(f" · {length}{busy}", room)),
        Piece(cut_start(brush, width - width_of(span)), "accent"),
        Piece(note, "dim"),
    ]


def _busy(time: TimeView) -> Iterator[tuple[str, str]]:
    """How busy each GPU was in the window, or in the part of it that filters choose."""
    timeline, viewport = time.timeline, time.viewport
    if not time.busy:  # of a recording that goes on all that there are rows of counts
        for name, device in timeline.devices:
            yield name, format_percent(device.share(viewport.window), 1.0)
    for each in time.busy:
        window = viewport.window.moved(timeline.origin)
        chosen = viewport.home != viewport.whole
        part, length = each.within(window) if chosen else (each.ran(window), window.length)
        if length:
            yield each.label, format_percent(part, length)


def _brush(time: TimeView) -> str:
    assert time.viewport.brush is not None
    window = time.viewport.brush.window
    return f"brush {format_ns(window.length)}: {period(window, time.timeline.origin)}"


def _axis(time: TimeView, labels: int, width: int) -> Line:
    cells = max(width - labels, 0)
    ruler = axis(time.viewport.grid, time.timeline.origin)
    base = cut_start(f"{ruler.base} ".rjust(labels) if ruler.base else " " * labels, width)
    line = base[labels:]  # where it reaches into the axis no tick is drawn
    for cell, label in ruler.ticks:
        mark = f"{TICK}{label}"
        if cell >= len(line) and cell + width_of(mark) <= cells:
            line = fill(line, cell) + mark
    left, right = time.viewport.brushed
    line = fill(line, cells)
    return [
        Piece(base[:labels], "dim"),
        Piece(line[:left], "dim"),
        Piece(line[left:right], "accent"),
        Piece(line[right:], "dim"),
    ]


def hint(time: TimeView, text: Sequence[str]) -> str:
    """Say what is selected, or what can be done."""
    if time.viewport.brush is not None:
        moving = "← → move its end, " if time.viewport.brush.moving else ""
        return f"brush: {moving}enter filters all views by it, esc leaves it"
    if time.cursor.item < 0 and time.selects_metric:
        return metric_hint(time)
    if time.cursor.item < 0 and time.selects_memory:
        return "← → moments  T peak  ( ) failed requests  b brush  + - closer, farther"
    if time.cursor.item < 0:
        return "↑ ↓ rows  ← → next  + - closer, farther  T idle gap  V rows"
    timeline, item = time.timeline, time.cursor.item
    if timeline.track[item] == Track.MEMORY:
        return _moment(time)
    window = timeline.window(item)
    name = cut(timeline.name(item, text), _NAME)
    start = clock(timeline.origin + window.low, 1000)
    facts = [name, f"{format_ns(window.length)} from {start}"]
    if timeline.track[item] == Track.CALLS:
        facts += [_CLASSES[cls]] if (cls := CallClass(int(timeline.kind[item]))) in _CLASSES else []
    if timeline.track[item] in STATES:
        state = _STATES[StateKind(int(timeline.kind[item]))]
        facts.append(f"{state}: {printable(timeline.lanes[time.lanes.lane].label)}")
    if timeline.devices and timeline.track[item] == Track.WORK:
        idle = int(timeline.table.idle[timeline.source[item]])
        facts.append(f"GPU idle {format_ns(idle)} before" if idle else "no idle time before")
    if not time.highlight.passing[item]:
        facts.append("filtered out")
    return " · ".join(facts)


def _moment(time: TimeView) -> str:
    """How much lived at the selected moment, and when that was."""
    timeline, lane = time.timeline, time.timeline.lanes[time.lanes.lane]
    memory, place = timeline.memory_of(lane), time.cursor.item - lane.first
    row = int(memory.row[place])
    reserved = memory.curve.reserved
    size = format_bytes(int(memory.top[place]))
    of = f" of {format_bytes(int(reserved[row]))} reserved" if reserved is not None else ""
    position = int(memory.curve.position[row])
    event = f"event {format_count(position + 1)}" if position >= 0 else "before the first event"
    facts = [f"{size} live{of}", f"{format_ns(int(memory.low[place]))}, {event}"]
    facts += ["the peak"] if place == memory.peak else []
    failed = (one for at, one in memory.failures if at == place)
    facts += [f"{format_bytes(one.size)} could not be had" for one in failed]
    return " · ".join([*facts, "enter: who held it"])


# The axis


class Axis(NamedTuple):
    """Ticks as (cell, label), left to right.

    Labels with a plus, all of one unit, count from ``base``; without any it is empty, and they are
    times of the trace.
    """

    base: str
    ticks: list[tuple[int, str]]


def axis(grid: Grid, origin: int) -> Axis:
    """Place ticks at round times of the trace's clock, at ``origin`` where ``grid`` has 0."""
    step = _step(ceil(CLOSEST / grid.scale))
    scale, unit = next((scale, unit) for scale, unit in _UNITS if step >= scale)
    low, high = origin + grid.window.low, origin + grid.window.high
    full = 1000 * scale if scale < _SECOND else 0
    base = low // full * full if full and low > 0 else 0
    sign = "+" if base else ""
    ticks = [
        (floor(grid.cell(time - origin)), f"{sign}{(time - base) // scale} {unit}")
        for time in range(-(-low // step) * step, high, step)
    ]
    return Axis(clock(base, full) if base else "", ticks)


def _step(least: int) -> int:
    """The first of 1, 2, 5, 10, … ns that is not below ``least``."""
    power: int = 10 ** (len(str(max(least, 1))) - 1)
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least)


def clock(time: int, exact: int) -> str:
    """Write ``time`` (ns) in seconds, with digits that tell times ``exact`` ns apart: 155.357 s."""
    places = max(10 - len(str(max(exact, 1))), 0)
    places = min(-(-places // 3) * 3, 9)  # whole groups of digits, as units are
    sign, time = ("-", -time) if time < 0 else ("", time)
    fraction = f"{time % _SECOND:09}"[:places]
    groups = " ".join(fraction[at : at + 3] for at in range(0, places, 3))
    whole = f"{sign}{time // _SECOND}"
    return f"{whole}.{groups} s" if groups else f"{whole} s"


def period(window: TimeWindow, origin: int) -> str:
    """Write from when to when ``window`` reaches: ``155.357 – 155.412 s``."""
    exact = max(window.length // 100, 1)
    first, last = (clock(origin + time, exact) for time in window)
    return f"{first.removesuffix(' s')} – {last}"
