"""Collect the facts of the selected frame in a thread."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic
from typing import NamedTuple

from flame.core.projection.selection import Selection
from flame.tui.details.facts import Facts, collect
from flame.tui.session.session import Projection
from flame.tui.session.tree_view import TreeView
from flame.tui.toolkit.background import Pace
from flame.tui.toolkit.latest import Answer, LatestRequest, Post

_SOON = 0.06
"""Seconds until the facts of a later state: others may follow at once."""

PACE = 1.0
"""Seconds between the facts of one frame and those of a later state of it, where it grows."""

_KEPT = 500

_Key = tuple[int, int, int]
_Name = tuple[Selection, bool, tuple[str, ...]]


class _RequestedFrame(NamedTuple):
    """A frame: ``key`` in one state of the trace, ``name`` in all states."""

    key: _Key
    name: _Name
    shown: Projection
    view: TreeView
    node: int


class Collected(Answer[_RequestedFrame, Facts]):
    """Bring facts of a frame, or why there are none."""


class Collector:
    """Collect facts by frame; ``post`` takes the results, `take` keeps them.

    Of a frame that grows the last facts stay until there are new ones.
    """

    def __init__(self, post: Post) -> None:
        self._requests = LatestRequest(_collect, Collected, post)
        self._pace = Pace(PACE)
        self._known: dict[_Key, Facts] = {}
        self._latest: dict[_Name, Facts] = {}

    @property
    def busy(self) -> bool:
        """Whether something of the frame last asked for is still worked out."""
        return self._requests.latest is not None and not self._complete

    @property
    def facts(self) -> Facts | None:
        """What is known so far of the frame last asked for."""
        subject = self._requests.latest
        if subject is None:
            return None
        known = self._known.get(subject.key)
        if known is not None and known.complete:
            return known
        return self._latest.get(subject.name, known)

    def knows(self, shown: Projection, view: TreeView) -> bool:
        """Tell whether all facts of ``view``'s selected frame are known."""
        known = self._known.get(_key(shown, view))
        return known is not None and known.complete

    @property
    def _complete(self) -> bool:
        return self.facts is not None and self.facts.complete

    def ask(self, shown: Projection, view: TreeView) -> Facts | None:
        """Return the facts of ``view``'s selected frame known so far; the rest follows."""
        before, subject = self._requests.latest, _subject(shown, view)
        self._requests.replace(subject)
        if before is None or before.name != subject.name:
            self._requests.cancel()
            if not self._complete:
                self._requests.begin()
        elif before.key != subject.key and not self._requests.running:
            self._begin_next()
        return self.facts

    def hurry(self) -> None:
        """Have the next facts soon: what is shown is another part of what has been recorded."""
        self._pace.hurry()
        if self._requests.latest is not None:
            self._requests.cancel()
            self._requests.begin(_SOON)

    def _begin_next(self) -> None:
        """Collect the facts of a later state when it is time."""
        self._requests.begin(max(self._pace.wait(), _SOON))

    def take(self, message: Collected) -> bool:
        """Keep the facts of ``message``; return whether they are of the frame last asked for.

        Raises what should not have happened.
        """
        subject, facts, wanted = message.request, message.result(), self._requests.latest
        self._keep(subject, facts)
        if wanted is None or subject.name != wanted.name:
            return False
        if facts.complete:
            self._pace.delay(message.seconds, since=monotonic())
            if subject.key != wanted.key:
                self._begin_next()
        return True

    def _keep(self, subject: _RequestedFrame, facts: Facts) -> None:
        self._known[subject.key] = facts
        if facts.complete:
            self._latest.pop(subject.name, None)
            self._latest[subject.name] = facts
        while len(self._known) > _KEPT:
            del self._known[next(iter(self._known))]
        while len(self._latest) > _KEPT:
            del self._latest[next(iter(self._latest))]


def _collect(subject: _RequestedFrame) -> Iterator[Facts]:
    return collect(subject.shown, subject.view.tree, subject.node)


def _key(shown: Projection, view: TreeView) -> _Key:
    return shown.view.number, view.number, view.cursor.node


def _subject(shown: Projection, view: TreeView) -> _RequestedFrame:
    # Of a sandwich, or of all places of a name, the root is a frame like others.
    name = (shown.selection, view is shown.view, view.stack(view.cursor.node))
    return _RequestedFrame(_key(shown, view), name, shown, view, view.cursor.node)
