"""Run work in a thread, at a pace or later, so that the app goes on answering."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import field
from math import inf
from threading import Thread
from time import monotonic

from textual.message import Message
from textual.message_pump import MessagePump
from textual.timer import Timer

from flame.core.lazy_dataclass import dataclass


class Done(Message, bubble=False):
    """Bring what a piece of work came to; ``ticket`` is what it was begun with."""

    def __init__(self, ticket: int, outcome: object) -> None:
        super().__init__()
        self.ticket = ticket
        self._outcome = outcome

    def result(self) -> object:
        """Return the result; raises what the work has raised."""
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome


def hand_in(message: Message, post: Callable[[Message], object]) -> None:
    """``post`` the ``message`` of a thread, which nobody waits for where the app has been left."""
    with suppress(RuntimeError):  # the event loop is closed, or the widget has no app any more
        post(message)


def in_background(
    work: Callable[[], object], ticket: int, post: Callable[[Message], object]
) -> Thread:
    """Run ``work`` in a thread, which is returned, and ``post`` its outcome as `Done`."""

    def run() -> None:
        outcome: object
        try:
            outcome = work()
        except Exception as error:
            outcome = error
        hand_in(Done(ticket, outcome), post)

    thread = Thread(target=run, daemon=True)
    thread.start()
    return thread


def call_once(pump: MessagePump, seconds: float, callback: Callable[[], object]) -> Timer:
    """Have ``pump`` call ``callback`` once, after at least ``seconds``.

    A timer of Textual skips what is overdue when it first looks at the clock, also the only call of
    one made by `set_timer`: where other threads have the processor for that long, it never comes.
    """
    timer = pump.set_timer(seconds, callback)
    timer._skip = False  # It has not begun yet.
    return timer


@dataclass
class Pace:
    """Delay each result by what the last one took.

    At least ``least`` seconds lie between two, and ``share`` times as long as the last one took,
    but no more than ``most``.
    """

    least: float
    share: float = 3
    most: float = inf
    _due: float = field(init=False, default=-inf)

    def delay(self, seconds: float, since: float) -> None:
        """Have the next result wait from ``since`` on: the last one took ``seconds``."""
        self._due = since + max(self.least, min(self.share * seconds, self.most))

    def hurry(self) -> None:
        """Let the next result come at once."""
        self._due = -inf

    def wait(self) -> float:
        """Return the seconds until the next result is due; 0 if it is."""
        return max(self._due - monotonic(), 0.0)
