"""Draw lines of text with tones, and redraw only those that have changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import zip_longest
from typing import Any, ClassVar, NamedTuple, Protocol, Self

from rich.segment import Segment
from rich.style import Style
from textual.dom import DOMNode
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from flame.tui.toolkit.palette import Palette
from flame.tui.toolkit.text import printable, width_of
from flame.tui.toolkit.themes import palette

EDGE = "▏"
"""Drawn at the left of every frame, so that neighbours of one colour stay apart."""

_KEPT = 500
"""Lines that are kept drawn: a strip of Textual's takes longer to make than to compose."""


class _Piece(NamedTuple):
    text: str
    tone: str | Style = ""
    action: str = ""


class Piece(_Piece):
    """Hold a text, made printable, in one tone, and the action that a click on it runs.

    ``tone`` is "" (plain), "dim", "strong", "accent", "warning", "key", or a style.
    """

    __slots__ = ()

    def __new__(cls, text: str, tone: str | Style = "", action: str = "") -> Self:
        shown = text if text.isprintable() else printable(text)
        return tuple.__new__(cls, (shown, tone, action))  # takes half as long as the base's own

    @classmethod
    def _make(cls, iterable: Iterable[Any]) -> Self:  # type: ignore[override]  # for _replace
        return cls(*iterable)


Line = list[Piece]
"""Pieces side by side."""


class SomeLines(Protocol):
    """Lines of which each is asked for when it is shown."""

    def __len__(self) -> int: ...

    def __getitem__(self, row: int, /) -> Line: ...


def line_width(line: Iterable[Piece]) -> int:
    """Cells that ``line`` takes."""
    return sum(width_of(piece.text) for piece in line)


def side_by_side(left: list[Line], right: list[Line], width: int) -> list[Line]:
    """Two blocks of lines beside one another; ``width`` is that of the left one and the gap."""
    nothing: Line = []
    pairs = zip_longest(left, right, fillvalue=nothing)
    return [[*one, Piece(" " * (width - line_width(one))), *other] for one, other in pairs]


def palette_of(widget: Widget) -> Palette:
    """Frame styles that suit ``widget``'s colours."""
    _, _, background, foreground = widget.colors
    by_category = getattr(widget.app, "by_category", False)
    return palette(widget.app, background.rgb, (background + foreground).rgb, by_category)


def style_within(widget: Widget, css_class: str) -> Style:
    """Return the style that the style sheet gives to ``css_class`` within ``widget``.

    A component class would have the same style, but Textual works out all of these for every widget
    that is mounted, drawn or not: a tenth of the time that the app takes to open.
    """
    component = DOMNode(classes=css_class)
    component._attach(widget)  # As Textual does for its own; it has no public name.
    widget.app.stylesheet.apply(component, animate=False)
    return component.rich_style


class ThemeStyles(NamedTuple):
    """Hold the styles of a theme: of plain text, of frames, and by tone as they are used."""

    base: Style
    palette: Palette
    tones: dict[str, Style]


class RowView(ScrollView, can_focus=False):
    """Show rows that scroll; `redraw` repaints those that differ from what is on screen."""

    ALLOW_SELECT = False
    _shown: dict[int, Strip]
    _shown_at: tuple[int, Size] | None = None
    _look: ThemeStyles | None = None

    def strip(self, row: int) -> Strip:
        """Draw ``row`` (0 is the top of the content, not of the screen), `padded`."""
        raise NotImplementedError

    @property
    def inner(self) -> Size:
        """The size of what is visible, beside the scrollbar."""
        return self.scrollable_content_region.size

    def render_line(self, y: int) -> Strip:
        shown = self._current()
        if y not in shown:
            shown[y] = self.strip(self.scroll_offset.y + y)
        return shown[y]

    def padded(self, segments: list[Segment], width: int) -> Strip:
        """Return a strip of ``segments``, which take ``width`` cells, as wide as the widget."""
        whole = self.size.width
        if width < whole:
            segments = [*segments, Segment(" " * (whole - width), self.look.base)]
        strip = Strip(segments, max(whole, width))
        return strip if width <= whole else strip.crop(0, whole)

    @property
    def look(self) -> ThemeStyles:
        """The widget's styles; Textual takes a quarter of a millisecond to work out each one."""
        if self._look is None:
            self._look = ThemeStyles(self.rich_style, palette_of(self), {})
        return self._look

    def reach(self, rows: int) -> None:
        """Make ``rows`` rows scrollable.

        While all of them are in sight nothing is set: it would have the whole screen laid out anew.
        """
        hidden = rows > self.inner.height
        self.virtual_size = Size(self.inner.width, rows) if hidden else Size(0, 0)

    def scroll_to_row(self, row: int) -> None:
        """Have ``row`` on top, as far as there are rows below it.

        By force: Textual scrolls only what has a scrollbar, and in less room that comes later.
        """
        self.scroll_to(y=row, animate=False, force=True)

    def reveal_rows(self, first: int, last: int) -> None:
        """Scroll so that the rows from ``first`` to ``last`` are in sight, or else the last."""
        height, top = self.inner.height, self.scroll_offset.y
        first = max(first, last - height + 1)
        if height and first < top:
            self.scroll_to_row(first)
        elif height and last >= top + height:
            self.scroll_to_row(last - height + 1)

    def redraw(self) -> None:
        """Repaint the rows that have changed."""
        shown, top = self._current(), self.scroll_offset.y
        fresh = {y: self.strip(top + y) for y in range(self.size.height)}
        differing = (y for y, strip in fresh.items() if shown.get(y) != strip)
        changed = [Region(0, y, self.size.width, 1) for y in differing]
        self._shown = fresh
        if changed:
            self.refresh(*changed)

    def forget(self) -> None:
        """Repaint everything: colours have changed."""
        self._shown_at = None
        self.refresh()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self.restyle()

    def restyle(self) -> None:
        """Repaint everything if the styles are others now."""
        before, self._look = self._look, None
        if before and (before.base, before.palette) != (self.look.base, self.look.palette):
            self.forget()

    def _current(self) -> dict[int, Strip]:
        """Strips by screen row, as long as neither scrolling nor a resize has made them wrong."""
        at = (self.scroll_offset.y, self.size)
        if self._shown_at != at:
            self._shown, self._shown_at = {}, at
        return self._shown


class Lines(RowView):
    """Show lines of text that ``source(width, height)`` composes for the widget's width."""

    TONES: ClassVar[tuple[str, ...]] = ("dim", "strong", "accent", "warning", "key")
    CSS_CLASSES: ClassVar[dict[str, str]] = {tone: f"lines--{tone}" for tone in TONES}

    def __init__(
        self,
        source: Callable[[int, int], SomeLines],
        *,
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self._source = source
        self._composed: SomeLines = []
        self._strips: dict[tuple[Piece, ...], Strip] = {}

    def update(self) -> None:
        """Compose the lines anew and repaint those that have changed."""
        width, height = self.inner
        if not width:
            return
        self._composed = self._source(width, height)
        if len(self._strips) > _KEPT:
            self._strips.clear()
        self.reach(len(self._composed))
        self.redraw()

    def on_resize(self) -> None:
        self.update()

    def forget(self) -> None:
        # Pieces may have styles of the old palette, and the screen's own colours come later.
        self.call_later(self.update)
        super().forget()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the number of lines, where the height is ``auto``."""
        return len(self._source(width, 0))

    @property
    def wanted(self) -> int:
        """The number of lines that there are to show."""
        return len(self._source(max(self.inner.width, 1), 0))

    def strip(self, row: int) -> Strip:
        return self.drawn(self._composed[row] if row < len(self._composed) else ())

    def drawn(self, pieces: Iterable[Piece]) -> Strip:
        """Draw a line, unless it has been drawn before."""
        line = tuple(pieces)
        if line not in self._strips:
            segments = [Segment(piece.text, self._style(piece)) for piece in line]
            self._strips[line] = self.padded(segments, line_width(line))
        return self._strips[line]

    def _current(self) -> dict[int, Strip]:
        shown = super()._current()
        if not shown:  # other colours or another width, or scrolled
            self._strips.clear()
        return shown

    def _style(self, piece: Piece) -> Style:
        style = piece.tone if isinstance(piece.tone, Style) else self._toned(piece.tone)
        return style + Style(meta={"@click": piece.action}) if piece.action else style

    def _toned(self, tone: str) -> Style:
        base, _, tones = self.look
        if tone not in tones:
            tones[tone] = base + style_within(self, self.CSS_CLASSES[tone]) if tone else base
        return tones[tone]
