"""Lie over another screen, which is seen beside as it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from rich.segment import Segment
from rich.style import Style as RichStyle
from textual.css.styles import RulesMap
from textual.renderables.background_screen import BackgroundScreen
from textual.screen import ModalScreen, Screen
from textual.strip import Strip
from textual.style import Style
from textual.visual import RenderOptions, Visual

T = TypeVar("T")


class Modal(ModalScreen[T]):
    """Show a screen over another, which it does not dim."""

    def render(self) -> Any:  # Textual takes a Visual, too
        drawn = super().render()
        if isinstance(drawn, BackgroundScreen) and not drawn.color.a:
            return ScreenBelow(drawn.screen)
        return drawn


class ScreenBelow(Visual):
    """The picture of a ``screen`` that lies below, in which nothing can be clicked.

    As Textual's own, which makes all segments anew three times over.
    """

    def __init__(self, screen: Screen[object]) -> None:
        self._screen = screen

    def render_strips(
        self, width: int, height: int | None, style: Style, options: RenderOptions
    ) -> list[Strip]:
        """Return the lines of the picture."""
        strips, base = self._screen._compositor.render_strips()[:height], style.rich_style
        return [Strip(_without_actions(strip, base), strip.cell_length) for strip in strips]

    def get_optimal_width(self, rules: RulesMap, container_width: int) -> int:
        """Return the width of the screen."""
        return self._screen.size.width

    def get_height(self, rules: RulesMap, width: int) -> int:
        """Return the height of the screen."""
        return self._screen.size.height


def _without_actions(segments: Iterable[Segment], base: RichStyle) -> Iterator[Segment]:
    """``segments`` on ``base``; neighbours of one style are one."""
    segments = Segment.simplify(
        Segment(text, base + style.clear_meta_and_links() if style else base)
        for text, style, _ in segments
    )
    return iter(segments)
