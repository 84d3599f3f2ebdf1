"""Define themes for dark, light and sixteen-colour terminals, and turn from one to the next."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from rich.segment import Segment
from rich.style import Style
from textual.app import App
from textual.color import Color
from textual.filter import LineFilter
from textual.theme import BUILTIN_THEMES, Theme

from flame.tui.toolkit.ansi_palette import NoColours, SixteenColours
from flame.tui.toolkit.ascii import Ascii, is_needed
from flame.tui.toolkit.colours import RGB
from flame.tui.toolkit.palette import Palette

DARK = Theme(
    "flame-dark",
    primary="#f0a830",
    secondary="#7fb8e0",
    accent="#f5c26b",
    warning="#f5c26b",
    error="#ff7a70",
    success="#62c98f",
    foreground="#e4e4e4",
    background="#121212",
    surface="#1a1a1b",
    panel="#26272b",
    variables={"text-accent": "#f5c26b", "text-warning": "#ffb454"},
)
LIGHT = Theme(
    "flame-light",
    primary="#8f4700",
    secondary="#0b5c94",
    accent="#8f4700",
    warning="#8a4b00",
    error="#b3261e",
    success="#1b6b3a",
    foreground="#1c1c1c",
    background="#fafafa",
    surface="#f1f1f1",
    panel="#e2e3e6",
    dark=False,
    variables={"text-accent": "#8f4700", "text-warning": "#8a3b00"},
)
CONTRAST = Theme(
    "flame-contrast",
    primary="#ffd75f",
    secondary="#9fdcff",
    accent="#ffd75f",
    warning="#ffd75f",
    error="#ff9a94",
    success="#8fffb8",
    foreground="#ffffff",
    background="#000000",
    surface="#000000",
    panel="#1c1c1c",
    text_alpha=1.0,
    variables={"text-accent": "#ffe27f", "text-warning": "#ffd75f"},
)
_ANSI = BUILTIN_THEMES["ansi-dark"]
SIXTEEN = replace(
    _ANSI,
    name="flame-ansi",
    primary="ansi_yellow",
    accent="ansi_cyan",
    variables=_ANSI.variables
    | {
        # Textual has the terminal's black for it, on a background that may be black.
        "input-cursor-foreground": "ansi_default",
        "input-cursor-background": "ansi_default",
        "input-cursor-text-style": "reverse",
        "scrollbar": "ansi_white",
        "scrollbar-hover": "ansi_white",
        "scrollbar-active": "ansi_white",
        "scrollbar-background": "ansi_default",
        "scrollbar-background-hover": "ansi_default",
        "scrollbar-background-active": "ansi_default",
    },
)
THEMES = (DARK, LIGHT, CONTRAST, SIXTEEN)
"""In the order in which a key turns to the next."""

NAMES = tuple(theme.name for theme in THEMES)

AUTO = "auto"
"""What the configuration calls the theme that goes with the terminal's background."""


def theme_for(light: bool) -> str:
    """Name the theme that goes with a ``light`` background, or with a dark one."""
    return LIGHT.name if light else DARK.name


def set_up(app: App[Any], wanted: str) -> None:
    """Give ``app``, which does not run yet, the themes; ``wanted`` is shown if the terminal can."""
    for theme in THEMES:
        app.register_theme(theme)
    # Set as a reactive, it would have the stylesheet, not read yet, read twice.
    app.set_reactive(App.theme, SIXTEEN.name if _limited(app) else wanted)
    app.stylesheet.set_variables(app.get_css_variables())


def _limited(app: App[Any]) -> bool:
    """Whether the terminal has no more than sixteen colours, or shall show none."""
    return app.no_color or app.console.color_system == "standard"


def cycle(app: App[Any], step: int) -> str:
    """Turn ``app`` to the next theme (-1: the previous one); what the user may be told about it."""
    if _limited(app):
        return f"{app.theme}: all that this terminal shows"
    here = NAMES.index(app.theme) if app.theme in NAMES else -max(step, 0)
    app.theme = NAMES[(here + step) % len(NAMES)]
    return app.theme


def filters_of(app: App[Any], ascii_only: bool) -> list[LineFilter]:
    """Return what has to be done to everything that ``app`` draws."""
    filters: list[LineFilter] = [WithoutColours()] if app.no_color else []
    if is_needed(ascii_only):
        filters.append(Ascii())
    return filters


def palette(app: App[Any], background: RGB, foreground: RGB, by_category: bool = False) -> Palette:
    """Styles for what stands on ``background`` in ``app``."""
    if app.no_color:
        return NoColours(by_category)
    if app.native_ansi_color:
        return SixteenColours(by_category)
    strong = app.theme == CONTRAST.name
    return Palette(background, foreground, strong, by_category)


class WithoutColours(LineFilter):
    """Take all colours away, and reverse what stood on a colour of its own.

    What a click does stays.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(text, style and _plain(style), mark) for text, style, mark in segments]


@lru_cache(1024)
def _plain(style: Style) -> Style:
    coloured = style.bgcolor is not None and not style.bgcolor.is_default
    reverse = Style(reverse=True if coloured else None, meta=style.meta or None)
    return style.without_color + reverse
