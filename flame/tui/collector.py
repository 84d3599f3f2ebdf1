"""Works out the facts of the selected frame in a thread, once the cursor rests on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Timer

from textual.message import Message

from flame.tui.background import hand_in
from flame.tui.facts import Facts, collect
from flame.tui.session import Projection
from flame.tui.view import View

REST = 0.06
"""Seconds that the cursor must stay on a frame: while a key repeats nothing is worked out."""

_KEPT = 500

_Key = tuple[int, int, int]


class Collected(Message):
    """Facts of a frame, ``None`` and why where that failed."""

    def __init__(self, key: _Key, outcome: Facts | Exception) -> None:
        super().__init__()
        self.key = key
        self.outcome = outcome


@dataclass
class Collector:
    """Facts by frame; ``post`` takes the results, `take` keeps them."""

    post: Callable[[Message], object]
    _wanted: _Key | None = field(init=False, default=None)
    _timer: Timer | None = field(init=False, default=None)
    _known: dict[_Key, Facts] = field(init=False, default_factory=dict)

    @property
    def busy(self) -> bool:
        """Whether something of the frame last asked for is still worked out."""
        facts = self.facts
        return self._timer is not None and (facts is None or not facts.complete)

    @property
    def facts(self) -> Facts | None:
        """What is known so far of the frame last asked for."""
        return self._known.get(self._wanted) if self._wanted else None

    def ask(self, shown: Projection, view: View) -> Facts | None:
        """The facts of ``view``'s selected frame as far as they are known; the rest follows."""
        key = (shown.view.number, view.number, view.cursor)
        if key != self._wanted:
            self._wanted = key
            if self._timer:
                self._timer.cancel()
            if self.facts is None or not self.facts.complete:
                self._start(key, shown, view)
        return self.facts

    def _start(self, key: _Key, shown: Projection, view: View) -> None:
        tree, node = view.tree, view.cursor

        def work() -> None:
            try:
                for facts in collect(shown, tree, node):
                    hand_in(Collected(key, facts), self.post)
            except Exception as error:
                hand_in(Collected(key, error), self.post)

        self._timer = Timer(REST, work)
        self._timer.daemon = True
        self._timer.start()

    def take(self, message: Collected) -> bool:
        """Whether ``message`` is about the frame last asked for.

        Raises what should not have happened.
        """
        if isinstance(message.outcome, Exception):
            raise message.outcome
        while len(self._known) >= _KEPT:
            del self._known[next(iter(self._known))]
        self._known[message.key] = message.outcome
        return message.key == self._wanted
