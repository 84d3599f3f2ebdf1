"""Run work in a thread, within a time limit or at a pace, so that the app goes on answering."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from math import inf
from threading import Thread, current_thread, main_thread
from time import monotonic
from types import FrameType

from textual.message import Message

from flame.core.errors import UsageError

LONGEST_SEARCH = 2.0
"""Seconds after which an expression is given up."""

SEARCH_TOO_LONG = "the search takes too long: try a simpler expression"


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


@contextmanager
def at_most(seconds: float, complaint: str) -> Iterator[None]:
    """Stop the block with a UsageError after ``seconds``, where the system can.

    A regular expression may take years; only a signal to the main thread gets it out of one.
    """
    if not hasattr(signal, "setitimer") or current_thread() is not main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise UsageError(complaint)

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


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
