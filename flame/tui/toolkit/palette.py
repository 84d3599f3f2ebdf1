"""Style frames, bars and marks on a background of any colour."""

from __future__ import annotations

from functools import lru_cache

from rich.color import Color
from rich.style import Style

from flame.core.frame import Frame, Kind
from flame.core.lazy_dataclass import dataclass
from flame.core.model.calls import CallClass, IdleCause, StateKind
from flame.tui.toolkit.colours import (
    BLACK,
    GONE,
    GREW,
    NEW,
    ON_DARK,
    ON_LIGHT,
    RGB,
    SHRANK,
    STALLS,
    STRONG,
    StallClass,
    category_hue,
    colour,
    look_of,
    mix,
    shade_of,
)

_INK: RGB = (16, 16, 16)
_MATCH: RGB = (255, 241, 118)
_MATCH_ON_LIGHT: RGB = (160, 70, 0)
_FADED = 0.74
_FADED_INK = 0.78
_INKED = 0.38
_STALL_INKED = 0.16
_TINT = 0.19
_UNCHANGED = {True: 0.55, False: 0.25}
"""How far the grey of what has not changed is from a dark background, or from a light one."""
_LEAST_CHANGE = 0.3


@dataclass(frozen=True)
class Palette:
    """Style frames and marks of a widget whose ``background`` and ``foreground`` are these.

    ``strong`` asks for as much contrast as there can be. ``by_category``: what ran on a GPU has the
    colour of its category, not of its level.
    """

    background: RGB
    foreground: RGB
    strong: bool = False
    by_category: bool = False

    def frame(self, frame: Frame, name: str, faded: bool = False) -> Style:
        """Return ``frame``, which is called ``name``; ``faded`` while a search marks others."""
        kind, hue = look_of(frame, name, self.by_category)
        return _frame(self, kind, shade_of(name), faded, hue)

    def change(self, strength: float, one_sided: bool, faded: bool = False) -> Style:
        """Return a frame that has grown (``strength`` up to 1), or shrunk (down to -1).

        ``one_sided``: it is new, or gone.
        """
        return _change(self, round(strength, 1), one_sided, faded)

    def category(self, category: str) -> Style:
        """Return the name of a category of kernels, as in a legend."""
        return _frame(self, Kind.CATEGORY, 2, False, category_hue(category))

    def kind(self, kind: Kind) -> Style:
        """Return a word that stands for a kind, such as a level's name."""
        return _frame(self, kind, 2, False)

    def run(self, cover: float, matching: bool, faded: bool) -> Style:
        """Frames too narrow to tell apart: quiet, and the fuller the lighter."""
        return _run(self, round(cover, 1), matching, faded)

    def ink(self, kind: Kind) -> Style:
        """Bars and blocks that stand for ``kind`` on the bare background."""
        own = colour(kind, 2, self.shades)
        return _ink(own if self.dark else mix(own, BLACK, _INKED))

    def category_ink(self, category: str) -> Style:
        """Bars and blocks that stand for what is of ``category``."""
        own = colour(Kind.CATEGORY, 2, self.shades, category_hue(category))
        return _ink(own if self.dark else mix(own, BLACK, _INKED))

    def call(self, call_class: CallClass, name: str, faded: bool = False) -> Style:
        """Return an API call in the colour of its class."""
        return _frame(self, Kind.LAUNCH, shade_of(name), faded, int(call_class))

    def call_ink(self, call_class: CallClass) -> Style:
        """Bars and blocks that stand for API calls of a class."""
        own = colour(Kind.LAUNCH, 2, self.shades, int(call_class))
        return _ink(own if self.dark else mix(own, BLACK, _INKED))

    def state(self, state_kind: StateKind, name: str, faded: bool = False) -> Style:
        """Return what held a thread up in the colour of its kind."""
        return _frame(self, Kind.THREAD, shade_of(name), faded, int(state_kind))

    def state_ink(self, state_kind: StateKind) -> Style:
        """Bars and blocks that stand for what held a thread up."""
        own = colour(Kind.THREAD, 2, self.shades, int(state_kind))
        return _ink(own if self.dark else mix(own, BLACK, _INKED))

    def cause_ink(self, cause: IdleCause) -> Style:
        """What hatches the idle time of a cause."""
        own = colour(Kind.CAUSE, 2, self.shades, int(cause))
        return _ink(own if self.dark else mix(own, BLACK, _INKED))

    def stall(self, stall_class: StallClass) -> Style:
        """Bars and blocks that stand for reasons of a class."""
        return _ink(
            STALLS[stall_class] if self.dark else mix(STALLS[stall_class], BLACK, _STALL_INKED)
        )

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
        return _style(BLACK, _MATCH) + Style(bold=True, underline=True)

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
        return _style(BLACK if palette.strong else _INK, own)
    dull = mix(own, palette.background, _FADED)
    return _style(mix(dull, palette.foreground, _FADED_INK), dull)


@lru_cache(256)
def _change(palette: Palette, strength: float, one_sided: bool, faded: bool) -> Style:
    grey = mix(palette.background, palette.foreground, _UNCHANGED[palette.dark])
    hue = (NEW if strength > 0 else GONE) if one_sided else (GREW if strength > 0 else SHRANK)
    own = mix(grey, hue, abs(strength) and max(abs(strength), _LEAST_CHANGE))
    if not faded:
        return _style(BLACK if palette.strong else _INK, own)
    dull = mix(own, palette.background, _FADED)
    return _style(mix(dull, palette.foreground, _FADED_INK), dull)


@lru_cache(256)
def _run(palette: Palette, cover: float, matching: bool, faded: bool) -> Style:
    if matching:
        return _style(BLACK, mix(palette.background, _MATCH, 0.75))
    strength = (0.12 + 0.14 * cover) * (0.5 if faded else 1.0)
    quiet = mix(palette.background, palette.foreground, strength)
    return _style(mix(quiet, palette.foreground, 0.5 if faded else 0.6), quiet)


def _ink(ink: RGB) -> Style:
    return Style(color=Color.from_rgb(*ink))


def _style(ink: RGB, paper: RGB) -> Style:
    return Style(color=Color.from_rgb(*ink), bgcolor=Color.from_rgb(*paper))
