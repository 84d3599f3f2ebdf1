"""Compose the help of the instruction screen: its keys, and what the reasons mean."""

from __future__ import annotations

from collections.abc import Sequence

from flame.core.model.stalls import STALLS
from flame.tui.sampling.bars import swatch
from flame.tui.shell.command import Command
from flame.tui.shell.sass_commands import SASS_GROUPS
from flame.tui.toolkit.colours import StallClass, class_of
from flame.tui.toolkit.dialog.page import indented
from flame.tui.toolkit.lines import Line, Piece
from flame.tui.toolkit.palette import Palette
from flame.tui.toolkit.text import wrap
from flame.tui.widgets.pages import sections_of

_TITLE = 22
_LINES = 40
_TEXTS = (
    "A sample is a warp found at an instruction at a moment, and what it waited for. Bars are "
    "samples, all on one scale, the hottest instruction's full; colours are classes of reasons.",
    "What waits is often not what is slow: a load that takes long shows at the instruction that "
    "needs its result.",
    "A source line's numbers are those of the instructions right below it; the compiler may have "
    "put others of the line elsewhere.",
)


def sass_help(commands: Sequence[Command], palette: Palette, width: int) -> list[Line]:
    """Return all keys of the view, how to read it, and every reason by class."""
    return [
        *sections_of(commands, width, SASS_GROUPS),
        [Piece("Reading the listing", "strong")],
        *([Piece(f"  {part}")] for text in _TEXTS for part in wrap(text, width - 2, _LINES)),
        [],
        [Piece("What a warp waited for", "strong")],
        *(line for stall_class in StallClass for line in _class(stall_class, palette, width)),
    ]


def _class(stall_class: StallClass, palette: Palette, width: int) -> list[Line]:
    glyph, style = swatch(stall_class, palette)
    lines: list[Line] = [[Piece(f"  {glyph}", style), Piece(f" {stall_class.title}", "strong")]]
    for stall in STALLS:
        if class_of(stall.key) == stall_class:
            lines += indented(f"    {stall.title}".ljust(_TITLE + 4), "key", stall.meaning, width)
    return lines
