"""Draw a cell for each rank: how far it is from the median, in colours and in signs."""

from __future__ import annotations

import numpy as np

from flame.core.columns import F8, I8
from flame.tui.ranks.imbalance import LEAST, LESS, MORE, ONLY, strength_of
from flame.tui.shell.actions import Action
from flame.tui.toolkit.lines import Line, Piece
from flame.tui.toolkit.palette import Palette

PER_LINE = 64
_NODE = 8
"""Ranks of a machine, usually: a line holds a multiple of these, so that they stand in columns."""

_MOST_LINES = 8
_NEAR, _NOTHING = "·", " "


def deviations(values: I8, median: int) -> F8:
    """Tell how far each of ``values`` is above ``median``, as a part of it.

    Of a median of 0 those that have anything are infinitely far.
    """
    if median:
        found: F8 = (values - median) / median
        return found
    return np.where(values > 0, np.inf, 0.0)


def strip_lines(values: I8, median: int, palette: Palette, width: int) -> list[Line]:
    """Draw ``values``, i8[ranks], a cell each, at most 64 on a line; a click goes to the rank.

    Where there are more than fit, a cell stands for several of which the farthest one is drawn.
    """
    per_line = line_cells(width)
    size = -(-len(values) // (per_line * _MOST_LINES))
    far = farthest_of_each(deviations(values, median), size)
    cells = [_cell(values, median, int(at), palette) for at in far]
    return [cells[at : at + per_line] for at in range(0, len(cells), per_line)]


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


def _cell(values: I8, median: int, at: int, palette: Palette) -> Piece:
    deviation = float(deviations(values[at : at + 1], median)[0])
    click = Action.ONE_RANK.click(at)
    if not median and not values[at]:
        return Piece(_NEAR, "dim", click)
    strength = float(strength_of(np.array([deviation]))[0])
    return Piece(glyph(deviation, bool(values[at])), palette.change(strength, not median), click)


def glyph(deviation: float, there: bool = True) -> str:
    """Return the sign of a cell: more, less, near the median, nothing there."""
    if not there:
        return _NOTHING if deviation > -1 else LESS
    if np.isposinf(deviation):
        return ONLY
    if abs(deviation) < LEAST:
        return _NEAR
    return MORE if deviation > 0 else LESS
