"""Show what is known of the selected frame, once the cursor rests on it."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from time import monotonic
from typing import NamedTuple

from textual import on
from textual.timer import Timer

from flame.core.analysis.words.formats import Terms, terms_of
from flame.core.model.profile import Profile
from flame.tui.details.collector import Collected, Collector
from flame.tui.details.compact import LINES, compact
from flame.tui.details.labels import Label
from flame.tui.details.pane import LineColumns, details, header
from flame.tui.session.session import Projection
from flame.tui.session.tree_view import TreeView
from flame.tui.shell.base_app import BaseApp
from flame.tui.toolkit.background import call_once
from flame.tui.toolkit.lines import Line, Piece, palette_of
from flame.tui.toolkit.scroll_pane import ScrollPane, with_more

REST = 0.08
"""Seconds that the cursor must stay on a frame: a key that is held repeats sooner."""

TIMEOUT = 0.03
"""Seconds that the picture then waits for the facts: those of most frames are there by then."""


class _Phase(Enum):
    """What is shown of the selected frame: all, its first lines, or nothing while keys repeat."""

    WHOLE = auto()
    BEGUN = auto()
    MOVING = auto()


class DetailsLines(NamedTuple):
    """What is shown: on the lines of a low screen, and below them."""

    width: int
    short: list[Line]
    columns: LineColumns


class DetailsPane(ScrollPane):
    """Shows the details of a frame, from their beginning if they are of another one.

    When another frame is selected, the first lines say at once what it is and weighs. The rest,
    with the facts, is drawn in one go when the cursor has rested; until then what was there stays
    below. If it moves on before, all goes: nothing is left of a frame passed on the way.
    ``remarks`` tells what else is known of the frame selected in a view.
    """

    def __init__(self) -> None:
        super().__init__(self._details, id="details")
        self.collector = Collector(self.post_message)
        self.remarks: Callable[[TreeView], list[tuple[Label, str]]] | None = None
        self._subject: tuple[Projection, TreeView, Terms] | None = None
        self._frame: tuple[object, ...] = ()
        self._phase = _Phase.WHOLE
        self._drawn: DetailsLines | None = None
        self._timer: Timer | None = None
        self._due = 0.0
        self._asked = False

    @property
    def waits(self) -> bool:
        """Whether the rest is still to be drawn."""
        return self._timer is not None

    @property
    def busy(self) -> bool:
        """Whether there is more to come of the selected frame."""
        return self.waits or self.collector.busy

    def show(self, profile: Profile, shown: Projection, view: TreeView, pane: str) -> None:
        """Draw what is known of the frame selected in ``view``, of the view called ``pane``."""
        self._subject = (shown, view, terms_of(profile))
        frame = (shown.selection, pane, view.stack(view.cursor.node))
        if frame != self._frame:
            self._frame = frame
            self.scroll_to(y=0, animate=False)
            self._begin(self.collector.knows(shown, view))
        elif not self.waits:
            self.update()

    def _begin(self, known: bool) -> None:
        """Draw what is to be seen of another frame at once, and the rest later."""
        if not self.inner.width:  # all is drawn when there is room
            return
        before = self._phase
        if self.waits:
            self._phase = _Phase.MOVING
        else:
            self._phase = _Phase.WHOLE if known else _Phase.BEGUN
        if self._phase != _Phase.MOVING or before != _Phase.MOVING:
            self._update_behind_views()
        self._asked = False
        self._wait(REST)

    def _update_behind_views(self) -> None:
        """Update once the views show the selected frame: it takes a third of a key's time.

        But at once where all of the picture is sent together.
        """
        if isinstance(self.app, BaseApp) and self.app.holds:
            self.update()
        else:
            self.call_after_refresh(self.update)

    def _wait(self, seconds: float) -> None:
        self._due = monotonic() + seconds
        if self._timer is None:
            self._timer = call_once(self, seconds, self._wake)

    def _wake(self) -> None:
        """Draw the rest if the cursor has rested, and the facts are there or take long."""
        self._timer = None
        left = self._due - monotonic()
        if left > 0:
            self._timer = call_once(self, left, self._wake)
        elif self._asked or self._has_facts():
            self._draw()
        else:
            self._asked = True
            self._wait(TIMEOUT)

    def _has_facts(self) -> bool:
        """Ask for the facts, and tell whether all are known."""
        if self._subject is None:
            return True
        shown, view, _ = self._subject
        facts = self.collector.ask(shown, view)
        return facts is not None and facts.complete

    def _draw(self) -> None:
        if self._timer is not None:
            self._timer.stop()
        self._timer, self._phase = None, _Phase.WHOLE
        self.update()

    def _details(self, width: int, height: int) -> list[Line]:
        if self._subject is None:
            return []
        if self._phase == _Phase.MOVING:
            return [[Piece("…", "dim")]]
        drawn = self._begun(width) if self._phase == _Phase.BEGUN else self._whole(width)
        self._drawn = drawn
        short = drawn.short if height <= LINES else []
        return with_more([*short, *drawn.columns.lines], width, height)

    def _whole(self, width: int) -> DetailsLines:
        assert self._subject is not None
        shown, view, terms = self._subject
        facts, projected = self.collector.ask(shown, view), view is shown.view
        palette = palette_of(self)
        remarks = self.remarks(view) if self.remarks else []
        columns = details(
            view, palette, width, facts, clicks=projected, terms=terms, remarks=remarks
        )
        short = compact(view, palette, width, facts, terms, projected, remarks)
        return DetailsLines(width, short, columns)

    def _begun(self, width: int) -> DetailsLines:
        """The first lines of the frame, over what was there before."""
        assert self._subject is not None
        shown, view, terms = self._subject
        before = self._drawn
        if before is None or before.width != width:
            nothing: list[Line] = [[] for _ in range(LINES)]
            before = DetailsLines(width, nothing, LineColumns([]))
        palette, projected = palette_of(self), view is shown.view
        first_lines = header(view, palette, width, clicks=projected, terms=terms)
        columns = before.columns.under(first_lines)
        *first, _ = compact(view, palette, width, None, terms, projected)
        return DetailsLines(width, [*first, before.short[-1]], columns)

    @on(Collected)
    def _collected(self, message: Collected) -> None:
        if not self.collector.take(message):
            return
        facts = self.collector.facts
        if not self.waits:
            self.update()
        elif self._asked and facts is not None and facts.complete:
            self._draw()
