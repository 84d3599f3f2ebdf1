"""Work out projections in threads, show the latest, and go back to those shown before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import NamedTuple

from flame.core.errors import FlameError
from flame.core.lazy_dataclass import dataclass
from flame.core.projection.selection import Selection
from flame.tui.session.carry import Bookmark, LiveBookmark, bookmark_of, carry, restore
from flame.tui.session.query import Query, SearchResult, find_in_time
from flame.tui.session.session import Projection, Session
from flame.tui.toolkit.back_stack import BackStack
from flame.tui.toolkit.latest import Answer, LatestRequest, Post

_REMEMBERED = 50


class _Request(NamedTuple):
    session: Session
    candidates: list[Selection]
    query: Query | None
    step: int


@dataclass(frozen=True)
class ReadyProjection:
    """A projection; ``step`` is 0 for a new one, -1 for an undo, +1 for a redo."""

    projection: Projection
    found: SearchResult | None
    step: int


class Projected(Answer[_Request, ReadyProjection]):
    """Say that a projection is ready, with what the search finds in it, or has failed."""


@dataclass
class Projector:
    """Work out projections: ``shown`` is on screen, ``wanted`` was last asked for.

    ``post`` takes the results.
    """

    session: Session
    shown: Projection
    post: Post
    wanted: Selection = field(init=False)
    _requests: LatestRequest[_Request, ReadyProjection] = field(init=False)
    _trail: BackStack[Selection] = field(init=False, default_factory=lambda: BackStack(_REMEMBERED))
    _levels: dict[str, tuple[str, ...] | None] = field(init=False, default_factory=dict)
    _live: LiveBookmark = field(init=False, default_factory=LiveBookmark)
    _bookmarks: dict[Selection, Bookmark] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.wanted = self.shown.selection
        self._requests = LatestRequest(_project, Projected, self.post)
        self._levels[self.shown.metric.table] = self.wanted.levels

    @property
    def busy(self) -> bool:
        """Whether a projection is being worked out."""
        return self._requests.busy

    def ask(self, candidates: list[Selection], query: Query | None, step: int = 0) -> None:
        """Work out the first of ``candidates`` that has anything, and search it, in a thread."""
        self.wanted = candidates[0]
        self._requests.ask(_Request(self.session, candidates, query, step))

    def take(self, message: Projected) -> ReadyProjection | FlameError | None:
        """Show what ``message`` brings; None if something else has been asked for since.

        Raises what should not have happened.
        """
        if not self._requests.take(message):
            return None
        if isinstance(message.outcome, FlameError):
            self.wanted = self.shown.selection
            return message.outcome
        ready = message.result()
        self._show(ready)
        return ready

    def _show(self, ready: ReadyProjection) -> None:
        before, after = self.shown, ready.projection
        self._remember(before)
        if ready.step:
            self._trail.go(ready.step, before.selection)
        elif after.selection != before.selection:
            self._trail.leave(before.selection)
        if after is not before:
            self._carry(before, after, bool(ready.step))
        after.view.matches.mark(ready.found)
        self.shown, self.wanted = after, after.selection
        self._levels[after.metric.table] = after.selection.levels

    def _remember(self, left: Projection) -> None:
        self._bookmarks.pop(left.selection, None)
        self._bookmarks[left.selection] = bookmark_of(left.view)
        while len(self._bookmarks) > _REMEMBERED:
            del self._bookmarks[next(iter(self._bookmarks))]

    def _carry(self, before: Projection, after: Projection, back: bool) -> None:
        """Show the same frames, or ``back`` at a selection those that it had when it was left."""
        bookmark = (
            self._bookmarks.get(after.selection) if back and not after.view.viewport.width else None
        )
        if bookmark is not None:
            restore(after.view, bookmark)
        carry(before.view, after.view, zoom=not back)

    def renew(self, session: Session, latest: Projection, result: SearchResult | None) -> bool:
        """Show ``latest``, a later state of what is shown; False if other things are wanted now."""
        if self.busy or latest.selection != self.wanted:
            return False
        self._live.carry(self.shown.view, latest.view)
        latest.view.matches.mark(result)
        self.session, self.shown = session, latest
        return True

    def back(self, query: Query | None, step: int) -> bool:
        """Go to the selection before (-1), or after it again (+1); False if there is none."""
        selection = self._trail.ahead(step)
        if selection is not None:
            self.ask([selection], query, step)
        return selection is not None

    def levels_of(self, table: str) -> tuple[str, ...] | None:
        """Return the levels last chosen for metrics of ``table``."""
        return self._levels.get(table)


def _project(request: _Request) -> Iterator[ReadyProjection]:
    projection = request.session.project(request.candidates)
    # The screen misses what has not been found in time, searches once more, and says why not.
    result = find_in_time(projection.view.tree, request.query)
    yield ReadyProjection(projection, result, request.step)
