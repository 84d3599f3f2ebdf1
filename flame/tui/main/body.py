"""Share the room between a view and the details: beside it, or below a shallow tree."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Container
from textual.geometry import Size
from textual.reactive import Reactive
from textual.widget import Widget

from flame.tui.details.compact import LINES
from flame.tui.details.details_pane import DetailsPane
from flame.tui.views.icicle_pane import IciclePane
from flame.tui.views.pane import Pane

_OVERVIEW = 1
_LEAST_BELOW = 12
"""Lines of details that are worth the full width of a wide screen."""
_LEAST_BELOW_TALL = 9


class _Views(Container):
    """Holds the views."""

    # As Widget has it, but for a second layout after each that has changed its size: it never
    # scrolls.
    virtual_size: Reactive[Size] = Reactive(Size(0, 0))


class Body(Container):
    """Hold the views ``panes``, the ``details`` and what is shown where there is ``nothing``.

    Where an icicle has so few rows that the details fit below it, both are as wide as the screen,
    unless it grows: whoever looks at it (``adapts`` is False) wants things to stay where they are.
    """

    def __init__(
        self, panes: tuple[Pane, ...], details: DetailsPane, nothing: Widget, adapts: bool
    ) -> None:
        super().__init__(id="body")
        self._adapts = adapts
        self.details = details
        self._views = _Views(*panes, id="views")
        self._nothing = nothing
        self._pane = panes[0]
        self._height = 0

    def compose(self) -> ComposeResult:
        yield self._views
        yield self.details
        yield self._nothing

    def fit(self, pane: Pane) -> None:
        """Share the room for ``pane`` as it is now."""
        self._pane = pane
        rows = self._rows_of_icicle()
        shallow = rows > 0 and rows + self._least_below <= self.size.height
        height = rows if shallow else 0
        if height != self._height:
            self._height = height
            self._put_details_below(shallow)
            self._views.styles.height = height or "1fr"

    def _put_details_below(self, below: bool) -> None:
        """Put the details below the view, or where the screen has room for them.

        Not by a class: for that Textual looks at the styles of all that is in the body.
        """
        details, body = self.details.styles, self.styles
        if below:
            body.layout = "vertical"
            details.width, details.max_width, details.height = "1fr", "100%", "1fr"
        else:
            for rule in ("width", "max_width", "height"):
                details.clear_rule(rule)
            body.clear_rule("layout")

    def _rows_of_icicle(self) -> int:
        """Lines of the whole icicle and its overview; 0 of other views, or without details."""
        if not (self._adapts and isinstance(self._pane, IciclePane) and self.details.display):
            return 0
        return len(self._pane.view.layout.joined.rows) + _OVERVIEW

    @property
    def _least_below(self) -> int:
        screen = self.screen
        if screen.has_class("-wide"):
            return _LEAST_BELOW
        return LINES if screen.has_class("-medium") else _LEAST_BELOW_TALL

    def on_resize(self) -> None:
        self.fit(self._pane)
