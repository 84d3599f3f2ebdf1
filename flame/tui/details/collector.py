"""Works out the facts of the selected frame in a thread, once the cursor rests on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Timer
from time import monotonic
from typing import NamedTuple

from textual.message import Message

from flame.core.projection.selection import Selection
from flame.tui.details.facts import Facts, collect
from flame.tui.session.session import Projection
from flame.tui.session.tree_view import View
from flame.tui.toolkit.background import hand_in

REST = 0.06
"""Seconds that the cursor must stay on a frame: while a key repeats nothing is worked out."""

PACE = 1.0
"""Seconds between the facts of one frame and those of a later state of it, where it grows."""

_SHARE = 3
"""So many times as long as facts have taken, nothing newer is worked out."""

_KEPT = 500

_Key = tuple[int, int, int]
_Name = tuple[Selection, bool, tuple[str, ...]]


class _Subject(NamedTuple):
    """A frame: ``key`` in one state of the trace, ``name`` in all states."""

    key: _Key
    name: _Name
    shown: Projection
    view: View
    node: int


class Collected(Message):
    """Facts of a frame, or why there are none; they took ``seconds`` so far."""

    def __init__(self, subject: _Subject, outcome: Facts | Exception, seconds: float) -> None:
        super().__init__()
        self.subject = subject
        self.outcome = outcome
        self.seconds = seconds


@dataclass
class Collector:
    """Facts by frame; ``post`` takes the results, `take` keeps them.

    Of a frame that grows the last facts stay until there are new ones.
    """

    post: Callable[[Message], object]
    _wanted: _Subject | None = field(init=False, default=None)
    _timer: Timer | None = field(init=False, default=None)
    _next: float = field(init=False, default=0.0)
    _known: dict[_Key, Facts] = field(init=False, default_factory=dict)
    _latest: dict[_Name, Facts] = field(init=False, default_factory=dict)

    @property
    def busy(self) -> bool:
        """Whether something of the frame last asked for is still worked out."""
        facts = self.facts
        return self._timer is not None and (facts is None or not facts.complete)

    @property
    def facts(self) -> Facts | None:
        """What is known so far of the frame last asked for."""
        if self._wanted is None:
            return None
        known = self._known.get(self._wanted.key)
        if known is not None and known.complete:
            return known
        return self._latest.get(self._wanted.name, known)

    def ask(self, shown: Projection, view: View) -> Facts | None:
        """The facts of ``view``'s selected frame as far as they are known; the rest follows."""
        before, subject = self._wanted, _subject(shown, view)
        self._wanted = subject
        if before is None or before.name != subject.name:
            self._stop()
            if self.facts is None or not self.facts.complete:
                self._start(REST)
        elif before.key != subject.key and not (self._timer and self._timer.is_alive()):
            self._start(self._next - monotonic())
        return self.facts

    def hurry(self) -> None:
        """Have the next facts soon: what is shown is another part of what has been recorded."""
        self._next = 0.0
        if self._wanted is not None:
            self._stop()
            self._start(REST)

    def _stop(self) -> None:
        if self._timer:
            self._timer.cancel()

    def _start(self, seconds: float) -> None:
        """Work out, in so many seconds, the facts of what is wanted then."""
        self._timer = Timer(max(seconds, REST), self._work)
        self._timer.daemon = True
        self._timer.start()

    def _work(self) -> None:
        subject, begin = self._wanted, monotonic()
        assert subject is not None
        try:
            for facts in collect(subject.shown, subject.view.tree, subject.node):
                hand_in(Collected(subject, facts, monotonic() - begin), self.post)
        except Exception as error:
            hand_in(Collected(subject, error, monotonic() - begin), self.post)

    def take(self, message: Collected) -> bool:
        """Whether ``message`` is about the frame last asked for.

        Raises what should not have happened.
        """
        if isinstance(message.outcome, Exception):
            raise message.outcome
        self._keep(message.subject, message.outcome)
        wanted = self._wanted
        if wanted is None or message.subject.name != wanted.name:
            return False
        if message.outcome.complete:
            self._next = monotonic() + max(PACE, _SHARE * message.seconds)
            if message.subject.key != wanted.key:
                self._start(self._next - monotonic())
        return True

    def _keep(self, subject: _Subject, facts: Facts) -> None:
        self._known[subject.key] = facts
        if facts.complete:
            self._latest.pop(subject.name, None)
            self._latest[subject.name] = facts
        while len(self._known) > _KEPT:
            del self._known[next(iter(self._known))]
        while len(self._latest) > _KEPT:
            del self._latest[next(iter(self._latest))]


def _subject(shown: Projection, view: View) -> _Subject:
    key = (shown.view.number, view.number, view.cursor)
    name = (shown.selection, view is shown.view, view.tree.names(view.cursor))
    return _Subject(key, name, shown, view, view.cursor)
