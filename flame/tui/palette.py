"""Colours: hue is the level, lightness a stable hash of the name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from zlib import crc32

from rich.color import Color
from rich.style import Style

from flame.core.frames import Kind

RGB = tuple[int, int, int]

HUES: dict[Kind, RGB] = {
    Kind.ROOT: (158, 158, 158),
    Kind.PROCESS: (178, 178, 178),
    Kind.THREAD: (170, 170, 160),
    Kind.DEVICE: (184, 170, 184),
    Kind.STREAM: (150, 166, 166),
    Kind.PYTHON: (86, 180, 233),
    Kind.NATIVE: (176, 196, 222),
    Kind.LAUNCH: (208, 132, 178),
    Kind.NVTX: (46, 176, 110),
    Kind.SHAPES: (150, 194, 128),
    Kind.KERNEL: (236, 164, 20),
    Kind.MEMCPY: (240, 228, 86),
    Kind.MEMSET: (204, 194, 124),
    Kind.GRAPH: (226, 116, 62),
    Kind.SASS: (214, 140, 110),
    Kind.STALL: (200, 120, 130),
}
"""One hue per kind, after Okabe and Ito: told apart with any kind of colour vision."""

SHADES = (-0.10, -0.03, 0.05, 0.16, 0.28)
"""How far each shade of a hue goes towards black (negative) or white."""

_INK: RGB = (16, 16, 16)
_FADED = 0.74
_BLACK: RGB = (0, 0, 0)
_WHITE: RGB = (255, 255, 255)
_MATCH: RGB = (255, 241, 118)


def mix(one: RGB, other: RGB, part: float) -> RGB:
    """``part`` (0..1) of the way from ``one`` to ``other``."""
    red, green, blue = (round(a + (b - a) * part) for a, b in zip(one, other, strict=True))
    return red, green, blue


def shade_of(name: str) -> int:
    """The shade that frames called ``name`` have, the same in every run."""
    return crc32(name.encode("utf-8", "surrogatepass")) % len(SHADES)


@lru_cache(512)
def colour(kind: Kind, shade: int) -> RGB:
    """The colour of frames of ``kind`` in ``shade``."""
    part = SHADES[shade]
    return mix(HUES[kind], _WHITE if part > 0 else _BLACK, abs(part))


@dataclass(frozen=True)
class Palette:
    """Styles on a terminal whose ``background`` and ``foreground`` are these."""

    background: RGB
    foreground: RGB

    def frame(self, kind: Kind, name: str, faded: bool = False) -> Style:
        """A frame; ``faded`` while a search marks others."""
        return _frame(self, kind, shade_of(name), faded)

    def kind(self, kind: Kind) -> Style:
        """A word that stands for a kind, such as a level's name."""
        return _frame(self, kind, 2, False)

    def run(self, cover: float, matching: bool, faded: bool) -> Style:
        """Frames too narrow to tell apart: quiet, and the fuller the lighter."""
        return _run(self, round(cover, 1), matching, faded)

    @property
    def cursor(self) -> Style:
        """The selected frame."""
        return _style(self.background, self.foreground) + Style(bold=True)

    @property
    def match(self) -> Style:
        """A frame that the search matches."""
        return _style(_BLACK, _MATCH) + Style(bold=True, underline=True)


@lru_cache(1024)
def _frame(palette: Palette, kind: Kind, shade: int, faded: bool) -> Style:
    own = colour(kind, shade)
    if not faded:
        return _style(_INK, own)
    dull = mix(own, palette.background, _FADED)
    return _style(mix(dull, palette.foreground, 0.55), dull)


@lru_cache(256)
def _run(palette: Palette, cover: float, matching: bool, faded: bool) -> Style:
    if matching:
        return _style(_BLACK, mix(palette.background, _MATCH, 0.75))
    strength = (0.12 + 0.14 * cover) * (0.5 if faded else 1.0)
    quiet = mix(palette.background, palette.foreground, strength)
    return _style(mix(quiet, palette.foreground, 0.15 if faded else 0.45), quiet)


def _style(ink: RGB, paper: RGB) -> Style:
    return Style(color=Color.from_rgb(*ink), bgcolor=Color.from_rgb(*paper))
