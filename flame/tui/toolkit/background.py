"""Run work in a thread or within a time limit, so that the app goes on answering."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread, current_thread, main_thread
from types import FrameType

from textual.message import Message

from flame.core.errors import UsageError

LONGEST_SEARCH = 2.0
"""Seconds after which an expression is given up."""

SEARCH_TOO_LONG = "the search takes too long: try a simpler expression"


class Done(Message, bubble=False):
    """What a piece of work came to; ``ticket`` is what it was begun with."""

    def __init__(self, ticket: int, outcome: object) -> None:
        super().__init__()
        self.ticket = ticket
        self._outcome = outcome

    def result(self) -> object:
        """The result; raises what the work has raised."""
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
