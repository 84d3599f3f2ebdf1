"""Show what is known on both sides of the selected frame, once the cursor rests on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from textual import on
from textual.timer import Timer

from flame.core.analysis.words.formats import NVTX, terms_of
from flame.core.compare.colouring import Colouring
from flame.core.model.profile import Profile
from flame.tui.details import details_pane
from flame.tui.details.details_pane import DetailsPane
from flame.tui.diff.details import LINES, compact, details
from flame.tui.diff.facts import SideFacts, side_facts
from flame.tui.diff.sampled.facts import sampled_on_both
from flame.tui.diff.sampled.own_groups import Places
from flame.tui.diff.session import DiffProjection
from flame.tui.session.session import Projection
from flame.tui.session.tree_view import TreeView
from flame.tui.toolkit.background import call_once
from flame.tui.toolkit.latest import Answer, LatestRequest
from flame.tui.toolkit.lines import Line, palette_of
from flame.tui.toolkit.scroll_pane import with_more

_KEPT = 200


class _Subject(NamedTuple):
    """The frame selected in ``view``, which is about ``nodes`` of the union."""

    shown: DiffProjection
    view: TreeView
    node: int

    @property
    def key(self) -> tuple[int, int, int]:
        return self.shown.view.number, self.view.number, self.node

    @property
    def places(self) -> Places:
        """Where the node is in the union."""
        return Places.of(self.shown, self.view, self.node)


class CollectedSides(Answer[_Subject, SideFacts]):
    """Bring the facts of a frame."""


class DiffDetailsPane(DetailsPane):
    """Shows both sides of a frame at once, and how long each activity took when that is known."""

    def __init__(self) -> None:
        super().__init__()
        self._requests = LatestRequest(_collect, CollectedSides, self.post_message, in_turn=True)
        self._known: dict[tuple[int, int, int], SideFacts] = {}
        self._of: _Subject | None = None
        self._terms = NVTX
        self._rest: Timer | None = None

    @property
    def waits(self) -> bool:
        return self._rest is not None

    @property
    def busy(self) -> bool:
        return self.waits or self._requests.busy

    def show(self, profile: Profile, shown: Projection, view: TreeView, pane: str) -> None:
        assert isinstance(shown, DiffProjection)
        before, self._terms = self._of, terms_of(profile)
        self._of = _Subject(shown, view, view.cursor.node)
        if before is None or before.key != self._of.key:
            self.scroll_to(y=0, animate=False)
            self._await_rest()
        self.update()

    def _await_rest(self) -> None:
        if self._rest is not None:
            self._rest.stop()
        self._rest = call_once(self, details_pane.REST, self._rested)

    def _rested(self) -> None:
        self._rest = None
        if self._of is not None and self._of.key not in self._known:
            self._requests.ask(self._of)

    @on(CollectedSides)
    def _taken(self, message: CollectedSides) -> None:
        current = self._requests.take(message)
        self._known[message.request.key] = message.result()
        while len(self._known) > _KEPT:
            del self._known[next(iter(self._known))]
        if current:
            self.update()

    def _details(self, width: int, height: int) -> list[Line]:
        subject = self._of
        if subject is None or not isinstance(subject.view.colouring, Colouring):
            return []
        view, colouring = subject.view, subject.view.colouring
        about = (view, colouring, palette_of(self), width)
        if 0 < height <= LINES:
            return compact(*about, self._terms)
        facts, clicks = self._known.get(subject.key), view is subject.shown.view
        return with_more(details(*about, facts, self._terms, clicks=clicks), width, height)


def _collect(subject: _Subject) -> Iterator[SideFacts]:
    shown, places = subject.shown, subject.places
    for facts in side_facts(shown.comparison, places.nodes):
        yield facts._replace(sampled=sampled_on_both(shown, places))
