"""Work on requests in threads, of which only the latest counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Thread, Timer
from time import monotonic
from typing import Generic, TypeVar

from textual.message import Message

from flame.tui.toolkit.background import hand_in

_Request = TypeVar("_Request")
_Result = TypeVar("_Result")

Post = Callable[[Message], object]
"""Hands a message to the widget that it is for."""


class Answer(Message, Generic[_Request, _Result]):
    """Bring a result of ``request``, or why there is none; the work took ``seconds`` so far."""

    def __init__(
        self, ticket: int, request: _Request, outcome: _Result | Exception, seconds: float
    ) -> None:
        super().__init__()
        self.ticket = ticket
        self.request = request
        self.outcome = outcome
        self.seconds = seconds

    def result(self) -> _Result:
        """Return the result; raises what the work has raised."""
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


class LatestRequest(Generic[_Request, _Result]):
    """Run ``work`` for requests in threads; ``post`` takes its results, each as an ``answer``.

    A request ``in_turn`` begins once the one before has been answered, if it is the latest then;
    otherwise at once, beside those before.
    """

    def __init__(
        self,
        work: Callable[[_Request], Iterable[_Result]],
        answer: Callable[[int, _Request, _Result | Exception, float], Message],
        post: Post,
        in_turn: bool = False,
    ) -> None:
        self.latest: _Request | None = None
        self.busy = False
        self._work = work
        self._answer = answer
        self._post = post
        self._in_turn = in_turn
        self._ticket = 0
        self._waits = False
        self._thread: Thread | None = None

    @property
    def running(self) -> bool:
        """Whether the thread begun last waits or works."""
        return self._thread is not None and self._thread.is_alive()

    def ask(self, request: _Request) -> None:
        """Work on ``request``: whatever was asked for before no longer counts."""
        self.replace(request)
        if self._in_turn and self.busy:
            self._waits = True
        else:
            self.begin()

    def replace(self, request: _Request | None) -> None:
        """Make ``request`` the latest without beginning to work on it; None: there is none."""
        self._ticket += 1
        self.latest, self._waits = request, False

    def begin(self, after: float = 0.0) -> None:
        """Work on the latest request; ``after`` so many seconds on the one that is so by then."""
        self.busy, self._waits = True, False
        if after:
            self._thread = Timer(after, self._run_latest)
        else:
            self._thread = Thread(target=self._run, args=(self._ticket, self.latest))
        self._thread.daemon = True
        self._thread.start()

    def cancel(self) -> None:
        """Begin nothing after a pause that is not over yet."""
        if isinstance(self._thread, Timer):
            self._thread.cancel()

    def take(self, answer: Answer[_Request, _Result]) -> bool:
        """Return whether ``answer`` is to the latest request; begin with one that waited for it."""
        current = answer.ticket == self._ticket
        if current or self._in_turn:
            self.busy = False
        if self._waits:
            self.begin()
        return current

    def _run_latest(self) -> None:
        assert self.latest is not None
        self._run(self._ticket, self.latest)

    def _run(self, ticket: int, request: _Request) -> None:
        started = monotonic()

        def give(outcome: _Result | Exception) -> None:
            hand_in(self._answer(ticket, request, outcome, monotonic() - started), self._post)

        try:
            for result in self._work(request):
                give(result)
        except Exception as error:
            give(error)
