"""Explain a picture whose colours tell of changes or differences: how to read it, and a legend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from flame.tui.toolkit.lines import Line, Piece
from flame.tui.toolkit.palette import Palette
from flame.tui.toolkit.text import wrap

_LINES = 40


class LegendColour(NamedTuple):
    """A colour and its meaning; ``strength`` and ``one_sided`` as `Palette.change` takes them."""

    meaning: str
    strength: float
    one_sided: bool = False


class Legend(NamedTuple):
    """The colours of a picture, and what is to be known of it, a text per paragraph."""

    colours: Sequence[LegendColour]
    texts: Sequence[str]


def legend_lines(legend: Legend, palette: Palette, width: int) -> list[Line]:
    """Compose the lines that say how to read the picture."""
    return [[Piece("Reading the picture", "strong")], *legend_body(legend, palette, width)]


def legend_body(legend: Legend, palette: Palette, width: int) -> list[Line]:
    """Compose the same lines without their title."""
    colours: Line = []
    for meaning, strength, one_sided in legend.colours:
        colours += [Piece(" "), Piece(f" {meaning} ", palette.change(strength, one_sided))]
    texts = [
        [Piece(f"  {part}")] for text in legend.texts for part in wrap(text, width - 2, _LINES)
    ]
    return [colours, *texts]
