"""The time axis: round ticks, their labels, and how times and windows are written."""

from __future__ import annotations

from math import ceil, floor
from typing import NamedTuple

from flame.core.timeline.intervals import TimeWindow
from flame.core.timeline.raster import Grid

TICK = "╵"
CLOSEST = 14
"""Cells from one tick to the next, at least: room for a label."""

_SECOND = 1_000_000_000
_UNITS = ((_SECOND, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))


class Axis(NamedTuple):
    """Ticks as (cell, label), left to right.

    What a label adds with a plus counts from the last full one, or from ``base``, which is empty
    where nothing does.
    """

    base: str
    ticks: list[tuple[int, str]]


def axis(grid: Grid, origin: int) -> Axis:
    """Ticks at round times of the trace's clock, on which ``origin`` is where ``grid`` has 0."""
    step = _step(ceil(CLOSEST / grid.scale))
    scale, unit = next((scale, unit) for scale, unit in _UNITS if step >= scale)
    low, high = origin + grid.window.low, origin + grid.window.high
    full = 1000 * scale if scale < _SECOND else 0
    base = low // full * full if full else 0
    ticks = [
        (floor(grid.cell(time - origin)), _label(time, full, scale, unit))
        for time in range(-(-low // step) * step, high, step)
    ]
    counted = not ticks or ticks[0][1].startswith("+")
    return Axis(clock(base, full) if base and counted else "", ticks)


def _label(time: int, full: int, scale: int, unit: str) -> str:
    """``time`` in its unit, below a second from the last ``full`` unit on: 156 s, then +200 ms."""
    rest = time % full if full else time
    if full and time and not rest:
        return clock(time, full)
    return f"{'+' if rest != time else ''}{rest // scale} {unit}"


def _step(least: int) -> int:
    """The first of 1, 2, 5, 10, … ns that is not below ``least``."""
    power: int = 10 ** (len(str(max(least, 1))) - 1)
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least)


def clock(time: int, exact: int) -> str:
    """``time`` (ns) in seconds, with the digits that tell times ``exact`` ns apart: 155.357 s."""
    places = max(10 - len(str(max(exact, 1))), 0)
    places = min(-(-places // 3) * 3, 9)  # whole groups of digits, as units are
    sign, time = ("-", -time) if time < 0 else ("", time)
    fraction = f"{time % _SECOND:09}"[:places]
    groups = " ".join(fraction[at : at + 3] for at in range(0, places, 3))
    whole = f"{sign}{time // _SECOND}"
    return f"{whole}.{groups} s" if groups else f"{whole} s"


def period(window: TimeWindow, origin: int) -> str:
    """From when to when ``window`` reaches: ``155.357 – 155.412 s``."""
    exact = max(window.length // 100, 1)
    first, last = (clock(origin + time, exact) for time in window)
    return f"{first.removesuffix(' s')} – {last}"
