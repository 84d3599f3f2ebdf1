"""Draw a cell for each rank: how far it is from the median, in colours and in signs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from rich.style import Style

from flame.core.columns import F8, I8
from flame.tui.ranks.imbalance import LEAST, LESS, MORE, ONLY, strength_of
from flame.tui.shell.actions import Action
from flame.tui.toolkit.lines import Line, Piece
from flame.tui.toolkit.palette import Palette

PER_LINE = 64
_NODE = 8
"""Ranks of a machine, usually: a line holds a multiple of these, so that they stand in columns."""

_MOST_LINES = 8
_NEAR, _NOTHING, _UPPER = "·", " ", "▀"


def deviations(values: I8, median: int) -> F8:
    """Tell how far each of ``values`` is above ``median``, as a part of it.

    Of a median of 0 those that have anything are infinitely far.
    """
    if median:
        found: F8 = (values - median) / median
        return found
    return np.where(values > 0, np.inf, 0.0)


class Strip(NamedTuple):
    """Hold the lines of a strip, on which a cell is ``ranks`` wide: of these the farthest off."""

    lines: list[Line]
    ranks: int
    halves: bool


def draw_strip(values: I8, median: int, palette: Palette, width: int, halves: bool) -> Strip:
    """Draw ``values``, i8[ranks], a cell each, at most 64 on a line; a click goes to the rank.

    Where there are more than fit, ``halves`` of cells may stand for one each, which can be told
    apart by their colours alone. Of more still one is drawn for several.
    """
    per_line = line_cells(width)
    halves = halves and len(values) > per_line * _MOST_LINES
    size = -(-len(values) // (per_line * _MOST_LINES * (1 + halves)))
    deviation = deviations(values, median)
    far = farthest_of_each(deviation, size)
    rows = [far[at : at + per_line].tolist() for at in range(0, len(far), per_line)]
    styles = _styles(deviation, values, median, palette)
    if halves:
        lines = [_half_cells(styles, *rows[at : at + 2]) for at in range(0, len(rows), 2)]
    else:
        lines = [[_cell(styles, deviation, values, at) for at in row] for row in rows]
    return Strip(lines, size, halves)


def _styles(deviation: F8, values: I8, median: int, palette: Palette) -> Callable[[int], Style]:
    """How a rank is drawn; of a frame that most lack those that have it alone have a colour."""
    strength = strength_of(deviation)
    unlike = palette.change(0.0, False)

    def style(rank: int) -> Style:
        if not median and not values[rank]:
            return unlike
        return palette.change(float(strength[rank]), not median)

    return style


def _half_cells(
    styles: Callable[[int], Style], upper: list[int], lower: Sequence[int] = ()
) -> Line:
    """Two lines of ranks in one; the last may be shorter."""
    line = []
    for place, rank in enumerate(upper):
        style = Style(color=styles(rank).bgcolor)
        below = lower[place] if place < len(lower) else -1
        if below >= 0:
            style += Style(bgcolor=styles(below).bgcolor)
        line.append(Piece(_UPPER, style, Action.ONE_RANK.click(rank)))
    return line


def line_cells(width: int) -> int:
    """Tell how many cells a line has where there are ``width``."""
    return max(min(PER_LINE, width) // _NODE * _NODE, _NODE)


def farthest_of_each(deviation: F8, size: int) -> I8:
    """Find the place of the value farthest from 0 in each stretch of ``size`` of them."""
    stretches = np.arange(0, len(deviation), size)
    padded = np.full(len(stretches) * size, -1.0)
    padded[: len(deviation)] = np.abs(deviation)
    found: I8 = stretches + padded.reshape(-1, size).argmax(axis=1)
    return found


def _cell(styles: Callable[[int], Style], deviation: F8, values: I8, rank: int) -> Piece:
    sign = glyph(float(deviation[rank]), bool(values[rank]))
    return Piece(sign, styles(rank), Action.ONE_RANK.click(rank))


def glyph(deviation: float, there: bool = True) -> str:
    """Return the sign of a cell: more, less, near the median, nothing there."""
    if not there:
        return _NOTHING if deviation > -1 else LESS
    if np.isposinf(deviation):
        return ONLY
    if abs(deviation) < LEAST:
        return _NEAR
    return MORE if deviation > 0 else LESS
