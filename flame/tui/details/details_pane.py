"""Show what is known of the selected frame, as it is worked out."""

from __future__ import annotations

from textual import on

from flame.core.analysis.wording import Terms, terms_of
from flame.core.model.profile import Profile
from flame.tui.details.collector import Collected, Collector
from flame.tui.details.compact import LINES, compact
from flame.tui.details.pane import details
from flame.tui.session.session import Projection
from flame.tui.session.tree_view import TreeView
from flame.tui.toolkit.lines import Line, palette_of
from flame.tui.toolkit.scroll_pane import ScrollPane, with_more


class DetailsPane(ScrollPane):
    """Shows the details of a frame, from their beginning if they are of another one."""

    def __init__(self) -> None:
        super().__init__(self._details, id="details")
        self.collector = Collector(self.post_message)
        self._subject: tuple[Projection, TreeView, Terms] | None = None
        self._frame: tuple[object, ...] = ()

    def show(self, profile: Profile, shown: Projection, view: TreeView, pane: str) -> None:
        """Draw what is known of the frame selected in ``view``, of the view called ``pane``."""
        self._subject = (shown, view, terms_of(profile))
        frame = (shown.selection, pane, view.stack(view.cursor.node))
        if frame != self._frame:
            self._frame = frame
            self.scroll_to(y=0, animate=False)
        self.update()

    def _details(self, width: int, height: int) -> list[Line]:
        if self._subject is None:
            return []
        shown, view, terms = self._subject
        facts, projected = self.collector.ask(shown, view), view is shown.view
        palette = palette_of(self)
        lines = details(view, palette, width, facts, clicks=projected, terms=terms)
        if height <= LINES:
            lines = [*compact(view, palette, width, facts, terms, projected), *lines]
        return with_more(lines, width, height)

    @on(Collected)
    def _collected(self, message: Collected) -> None:
        if self.collector.take(message):
            self.update()
