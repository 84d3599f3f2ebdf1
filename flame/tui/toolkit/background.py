"""Work in a thread whose result comes back as a message."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Thread

from textual.message import Message


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
