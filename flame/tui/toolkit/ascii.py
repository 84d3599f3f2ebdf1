"""Draw everything in ASCII, in as many cells, on terminals whose encoding is not UTF-8."""

from __future__ import annotations

import codecs
import os
import sys
import unicodedata
from functools import lru_cache

from rich.cells import cell_len, get_character_cell_size
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from flame.options.config import is_in_browser

_SIGNS = {
    "…": "~",
    "·": "-",
    "•": "*",
    "×": "x",
    "µ": "u",
    "μ": "u",
    "°": "o",
    "±": "+",
    "≈": "~",
    "≤": "<",
    "≥": ">",
    "–": "-",
    "—": "-",
    "−": "-",
    "Δ": "d",
    "‘": "'",
    "’": "'",
    "“": '"',
    "”": '"',
    "‹": "<",
    "›": ">",
    "«": "<",
    "»": ">",
    "✓": "x",
    "✗": "-",
    "↻": "@",
    "⋯": "~",
}
_ARROWS = {
    "←◀◂◁◃⟵": "<",
    "→▶▸▷▹⟶": ">",
    "↑▲▴△▵": "^",
    "↓▼▾▽▿": "v",
    "↔": "-",
    "↕": "|",
    "●◆■▪": "*",
    "○◇□▫◌": "o",
}
# Blocks by how much of the cell they fill: a bar of them still grows from left to right.
_BLOCKS = {
    "▏▎▕│┃║╎╏┆┇┊┋╵╷╹╻": "|",
    "─━═╌╍╴╶╸╺▔": "-",
    "┄┅┈┉░": ".",
    "▁": "_",
    "▂": ".",
    "▃▒": ":",
    "▄▀▋▌▍▐": "=",
    "▅▊": "+",
    "▆▓": "*",
    "▇█▉": "#",
}
_GLYPHS = {glyph: sign for many, sign in (_ARROWS | _BLOCKS).items() for glyph in many} | _SIGNS


class _InAscii(dict[int, str]):
    """For `str.translate`: characters as ASCII of the same width, worked out when first met."""

    def __missing__(self, code: int) -> str:
        self[code] = text = _in_ascii(chr(code))
        return text


def _in_ascii(char: str) -> str:
    width = get_character_cell_size(char)
    if char.isascii() or not width:
        return char if char.isascii() else ""
    if char in _GLYPHS:
        return _GLYPHS[char]
    if "\u2500" <= char <= "\u257f":  # what is left of box drawing: corners and crossings
        return "+"
    letter = unicodedata.normalize("NFKD", char)[0]
    return letter if letter.isascii() and letter.isprintable() and width == 1 else "?" * width


_TABLE = _InAscii()


@lru_cache(4096)
def in_ascii(text: str) -> str:
    """``text`` in ASCII, in exactly as many cells."""
    if text.isascii():
        return text
    width = cell_len(text)
    return text.translate(_TABLE)[:width].ljust(width, "?")


class Ascii(LineFilter):
    """Draw everything in ASCII."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(in_ascii(text), style, control) for text, style, control in segments]


def is_needed(wanted: bool) -> bool:
    """Tell whether only ASCII may be drawn.

    So it is where it is ``wanted`` or FLAME_ASCII is set (0 says no, against all), and where the
    locale's encoding is not UTF-8; a browser's always is.
    """
    forced = os.environ.get("FLAME_ASCII", "")
    if forced:
        return forced != "0"
    if wanted or is_in_browser():
        return wanted
    return codecs.lookup(sys.__stderr__.encoding if sys.__stderr__ else "utf-8").name != "utf-8"
