"""Draw bars of samples, stacked by class of reason, exact to an eighth of a cell."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from rich.segment import Segment
from rich.style import Style

from flame.core.columns import I8
from flame.tui.toolkit.ansi_palette import NoColours
from flame.tui.toolkit.colours import StallClass, class_of
from flame.tui.toolkit.palette import Palette

_EIGHTHS = " ▏▎▍▌▋▊▉"
_FULL = "█"
_SHADES = "█▓▒░▄"
"""What stands for each class where there are no colours: they differ in ASCII too."""


def by_class(reasons: Sequence[str], samples: I8) -> list[int]:
    """Sum ``samples`` of each of ``reasons`` by `StallClass`."""
    classes = [class_of(reason) for reason in reasons]
    sums = np.bincount(classes, samples, len(StallClass)) if len(classes) else np.zeros(5)
    return [round(number) for number in sums.tolist()]


def bar(sums: Sequence[int], most: int, width: int, palette: Palette, base: Style) -> list[Segment]:
    """Draw ``sums`` by class, in ``width`` cells of which all are taken by ``most``.

    What has any samples shows at least an eighth of a cell.
    """
    if isinstance(palette, NoColours):
        return _shaded(sums, most, width, base)
    ends = _ends(sums, most, 8 * width)
    styles = [palette.stall(stall_class) for stall_class in StallClass]
    cells = [_cell(ends, place, styles, base) for place in range(width)]
    return _joined(cells)


def _ends(sums: Sequence[int], most: int, whole: int) -> list[int]:
    """Where the bar of each class ends, of a ``whole`` for ``most``."""
    total = sum(sums)
    length = max(round(total * whole / max(most, 1)), 1) if total else 0
    return [round(end * length / max(total, 1)) for end in accumulate(sums)]


def _cell(ends: list[int], place: int, styles: list[Style], base: Style) -> Segment:
    """The cell at ``place``: one class in front, and the next one, or nothing, behind it."""
    low, high = 8 * place, 8 * place + 8
    inside = [
        (min(end, high) - max(begin, low), one)
        for one, (begin, end) in enumerate(zip([0, *ends], ends, strict=False))
        if min(end, high) > max(begin, low)
    ]
    if not inside:
        return Segment(" ", base)
    # Two colours are all that a cell has: the two classes with the most of it.
    kept = sorted(sorted(inside, reverse=True)[:2], key=lambda part: part[1])
    first, front = kept[0]
    filled = sum(part for part, _ in inside)
    if len(kept) == 1:
        glyph = _FULL if first == 8 else _EIGHTHS[first]
        return Segment(glyph, base + styles[front])
    if filled < 8:  # the end of the bar matters more than where the classes meet
        largest = max(kept)[1]
        return Segment(_EIGHTHS[filled], base + styles[largest])
    behind = Style(bgcolor=styles[kept[1][1]].color)
    return Segment(_EIGHTHS[min(first, 7)], base + styles[front] + behind)


def _shaded(sums: Sequence[int], most: int, width: int, base: Style) -> list[Segment]:
    """The same of whole cells, each class in a shade of its own."""
    ends = [round(end / 8) for end in _ends(sums, most, 8 * width)]
    cells = "".join(
        _SHADES[one] * (end - begin)
        for one, (begin, end) in enumerate(zip([0, *ends], ends, strict=False))
    )
    return [Segment((cells or (_EIGHTHS[1] if sum(sums) else "")).ljust(width), base)]


def _joined(cells: list[Segment]) -> list[Segment]:
    """Neighbours of one style as one segment."""
    joined: list[Segment] = []
    for cell in cells:
        if joined and joined[-1].style == cell.style:
            joined[-1] = Segment(joined[-1].text + cell.text, cell.style)
        else:
            joined.append(cell)
    return joined


def swatch(stall_class: StallClass, palette: Palette) -> tuple[str, Style]:
    """Return a mark in the colour, or the shade, of a class."""
    glyph = _SHADES[stall_class] if isinstance(palette, NoColours) else "■"
    return glyph, palette.stall(stall_class)
