"""Colours: hue is the level, lightness a stable hash of the name; frames of no level are warm."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from zlib import crc32

from rich.color import Color
from rich.style import Style

from flame.core.model.frames import Kind
from flame.core.projection.levels import LEVELS
from flame.tui.toolkit.stall_colours import StallClass, class_of_title

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
    Kind.STALL: (212, 130, 140),
    Kind.REST: (148, 148, 154),
    Kind.FRAME: (238, 138, 88),
    Kind.RANK: (190, 182, 164),
}
"""One hue per kind, after Okabe and Ito: told apart with any kind of colour vision."""

LEVEL_KINDS = {level: Kind.FRAME if level == "stack" else Kind[level.upper()] for level in LEVELS}
"""The kind in whose colour a level's name is written; its frames may be of several."""

WARM = (
    HUES[Kind.FRAME],
    (242, 178, 84),
    (236, 200, 104),
    (228, 134, 118),
    (246, 158, 72),
    (222, 176, 120),
    (240, 164, 124),
)
"""Hues of frames of no known kind, by name: whole flame graphs are made of nothing else."""

STALLS: dict[StallClass, RGB] = {
    StallClass.MEMORY: (96, 164, 238),
    StallClass.COMPUTE: (232, 112, 52),
    StallClass.SYNC: (206, 126, 192),
    StallClass.ISSUE: (226, 208, 88),
    StallClass.OTHER: (140, 140, 144),
}
"""Hues of stall reasons: a scale of their own, told apart with any kind of colour vision."""

ON_DARK = (-0.10, -0.03, 0.05, 0.16, 0.28)
ON_LIGHT = (-0.10, -0.06, -0.01, 0.05, 0.11)
STRONG = (0.12, 0.19, 0.27, 0.35, 0.44)
"""How far each shade of a hue goes towards black (negative) or white, by theme."""

SHADES = len(ON_DARK)

_INK: RGB = (16, 16, 16)
_BLACK: RGB = (0, 0, 0)
_WHITE: RGB = (255, 255, 255)
_MATCH: RGB = (255, 241, 118)
_MATCH_ON_LIGHT: RGB = (160, 70, 0)
_FADED = 0.74
_FADED_INK = 0.78
_INKED = 0.38
_STALL_INKED = 0.16
_TINT = 0.19


def mix(one: RGB, other: RGB, part: float) -> RGB:
    """``part`` (0..1) of the way from ``one`` to ``other``."""
    red, green, blue = (round(a + (b - a) * part) for a, b in zip(one, other, strict=True))
    return red, green, blue


def shade_of(name: str) -> int:
    """The shade that frames called ``name`` have, the same in every run."""
    return _hash(name) % SHADES


def hue_of(kind: Kind, name: str) -> int:
    """Which of the hues of ``kind`` frames called ``name`` have; most kinds have but one, 0."""
    if kind == Kind.STALL:
        return class_of_title(name)
    return _hash(name) // SHADES % len(WARM) if kind == Kind.FRAME else 0


def _hash(name: str) -> int:
    return crc32(name.encode("utf-8", "surrogatepass"))


@lru_cache(1024)
def colour(kind: Kind, shade: int, shades: tuple[float, ...] = ON_DARK, hue: int = 0) -> RGB:
    """The colour of frames of ``kind`` in ``shade`` of ``shades``, and in one of its hues."""
    part, own = shades[shade], HUES[kind]
    if kind == Kind.FRAME:
        own = WARM[hue]
    elif kind == Kind.STALL:
        own = STALLS[StallClass(hue)]
    return mix(own, _WHITE if part > 0 else _BLACK, abs(part))


@dataclass(frozen=True)
class Palette:
    """Styles for a widget whose ``background`` and ``foreground`` are these.

    ``strong`` asks for as much contrast as there can be.
    """

    background: RGB
    foreground: RGB
    strong: bool = False

    def frame(self, kind: Kind, name: str, faded: bool = False) -> Style:
        """A frame; ``faded`` while a search marks others."""
        return _frame(self, kind, shade_of(name), faded, hue_of(kind, name))

    def kind(self, kind: Kind) -> Style:
        """A word that stands for a kind, such as a level's name."""
        return _frame(self, kind, 2, False)

    def run(self, cover: float, matching: bool, faded: bool) -> Style:
        """Frames too narrow to tell apart: quiet, and the fuller the lighter."""
        return _run(self, round(cover, 1), matching, faded)

    def ink(self, kind: Kind) -> Style:
        """Bars and blocks that stand for ``kind`` on the bare background."""
        own = colour(kind, 2, self.shades)
        return _ink(own if self.dark else mix(own, _BLACK, _INKED))

    def stall(self, one: StallClass) -> Style:
        """Bars and blocks that stand for reasons of a class."""
        return _ink(STALLS[one] if self.dark else mix(STALLS[one], _BLACK, _STALL_INKED))

    @property
    def match_ink(self) -> Style:
        """Bars and blocks that stand for what the search matches."""
        return _ink(_MATCH if self.dark else _MATCH_ON_LIGHT) + Style(bold=True)

    @property
    def cursor(self) -> Style:
        """The selected frame."""
        return _style(self.background, self.foreground) + Style(bold=True)

    @property
    def match(self) -> Style:
        """A frame that the search matches."""
        return _style(_BLACK, _MATCH) + Style(bold=True, underline=True)

    @property
    def tint(self) -> Style:
        """The background of a stretch that is marked."""
        return Style(bgcolor=Color.from_rgb(*mix(self.background, self.foreground, _TINT)))

    @property
    def quiet(self) -> Style:
        """Text and lines on the bare background that are not to be looked at first."""
        strength = 0.75 if self.strong else 0.65
        return _ink(mix(self.background, self.foreground, strength))

    @property
    def dark(self) -> bool:
        """Whether what is drawn is lighter than the background."""
        return sum(self.background) < sum(self.foreground)

    @property
    def shades(self) -> tuple[float, ...]:
        """The shades of a hue that suit the background."""
        if self.strong:
            return STRONG
        return ON_DARK if self.dark else ON_LIGHT


@lru_cache(2048)
def _frame(palette: Palette, kind: Kind, shade: int, faded: bool, hue: int = 0) -> Style:
    own = colour(kind, shade, palette.shades, hue)
    if not faded:
        return _style(_BLACK if palette.strong else _INK, own)
    dull = mix(own, palette.background, _FADED)
    return _style(mix(dull, palette.foreground, _FADED_INK), dull)


@lru_cache(256)
def _run(palette: Palette, cover: float, matching: bool, faded: bool) -> Style:
    if matching:
        return _style(_BLACK, mix(palette.background, _MATCH, 0.75))
    strength = (0.12 + 0.14 * cover) * (0.5 if faded else 1.0)
    quiet = mix(palette.background, palette.foreground, strength)
    return _style(mix(quiet, palette.foreground, 0.5 if faded else 0.6), quiet)


def _ink(ink: RGB) -> Style:
    return Style(color=Color.from_rgb(*ink))


def _style(ink: RGB, paper: RGB) -> Style:
    return Style(color=Color.from_rgb(*ink), bgcolor=Color.from_rgb(*paper))


# Sixteen colours, of which only the names are known: dark ones take white ink, all others black

_WHITE_INK = ("blue", "magenta", "red", "bright_black")
_NAMED: dict[Kind, tuple[str, ...]] = {
    Kind.PYTHON: ("blue", "bright_blue"),
    Kind.NATIVE: ("cyan", "bright_cyan"),
    Kind.LAUNCH: ("magenta", "bright_magenta"),
    Kind.NVTX: ("green", "bright_green"),
    Kind.SHAPES: ("bright_green", "green"),
    Kind.KERNEL: ("yellow", "bright_yellow"),
    Kind.MEMCPY: ("white",),
    Kind.MEMSET: ("white",),
    Kind.GRAPH: ("red", "bright_red"),
    Kind.SASS: ("bright_red", "red"),
    Kind.STALL: ("bright_magenta", "magenta"),
    Kind.FRAME: ("yellow", "bright_yellow", "bright_red", "red"),
}
"""The colours of a kind, the first also for its name; grey where there is none."""
_NAMED_STALLS = {
    StallClass.MEMORY: "blue",
    StallClass.COMPUTE: "red",
    StallClass.SYNC: "magenta",
    StallClass.ISSUE: "yellow",
    StallClass.OTHER: "bright_black",
}

_GREY = ("bright_black",)


class SixteenColours(Palette):
    """Styles of nothing but the terminal's own sixteen colours."""

    def __init__(self) -> None:
        super().__init__(_BLACK, _WHITE)

    def frame(self, kind: Kind, name: str, faded: bool = False) -> Style:
        if kind == Kind.STALL:
            return _named(_NAMED_STALLS[class_of_title(name)], faded)
        names = _NAMED.get(kind, _GREY)
        return _named(names[shade_of(name) % len(names)], faded)

    def kind(self, kind: Kind) -> Style:
        return _named(_NAMED.get(kind, _GREY)[0], False)

    def run(self, cover: float, matching: bool, faded: bool) -> Style:
        if matching:
            return Style(color="black", bgcolor="bright_yellow")
        return Style(dim=True)

    def ink(self, kind: Kind) -> Style:
        return Style(color=_NAMED[kind][0]) if kind in _NAMED else Style(dim=True)

    def stall(self, one: StallClass) -> Style:
        return Style(color=_NAMED_STALLS[one])

    @property
    def match_ink(self) -> Style:
        return Style(color="red", bold=True)

    @property
    def cursor(self) -> Style:
        return Style(reverse=True, bold=True, underline=True)

    @property
    def match(self) -> Style:
        return Style(color="black", bgcolor="bright_yellow", bold=True, underline=True)

    @property
    def tint(self) -> Style:
        return Style(bgcolor="bright_black")

    @property
    def quiet(self) -> Style:
        return Style(dim=True)


@lru_cache(64)
def _named(paper: str, faded: bool) -> Style:
    if faded:  # Grey, and dimmed, is no colour at all on some terminals.
        return Style(color=None if paper in _GREY else paper, dim=True, underline=True)
    return Style(color="bright_white" if paper in _WHITE_INK else "black", bgcolor=paper)


class NoColours(SixteenColours):
    """Styles without any colour: frames are underlined, matches bold, what is selected reversed."""

    def frame(self, kind: Kind, name: str, faded: bool = False) -> Style:
        return Style(underline=True, dim=faded or None)

    def kind(self, kind: Kind) -> Style:
        return Style(underline=True)

    def run(self, cover: float, matching: bool, faded: bool) -> Style:
        return Style(bold=True) if matching else Style(dim=True)

    def ink(self, kind: Kind) -> Style:
        return Style()

    def stall(self, one: StallClass) -> Style:
        return Style()

    @property
    def match_ink(self) -> Style:
        return Style(bold=True)

    @property
    def cursor(self) -> Style:
        return Style(reverse=True, bold=True)

    @property
    def match(self) -> Style:
        return Style(bold=True, underline=True)

    @property
    def tint(self) -> Style:
        return Style(underline=True)
