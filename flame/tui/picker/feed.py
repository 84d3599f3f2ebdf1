"""Look for traces in a thread, and hand on what is found, some at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from threading import Event, Thread
from time import monotonic

from textual.message import Message

from flame.core.loading.search import FoundTrace
from flame.tui.toolkit.background import hand_in

_SOON, _PERIOD = 0.05, 0.3
"""Seconds until the first traces are handed on, and between others."""


class TracesFound(Message, bubble=False):
    """Bring traces that ``feed`` has found; ``done``: these were the last. ``error``: it broke."""

    def __init__(
        self, feed: TraceFeed, traces: Sequence[FoundTrace], done: bool, error: Exception | None
    ) -> None:
        super().__init__()
        self.feed = feed
        self.traces = traces
        self.done = done
        self.error = error


class TraceFeed:
    """Go through ``looks`` in a thread and ``post`` what is found; None is something else."""

    def __init__(
        self, looks: Iterator[FoundTrace | None], post: Callable[[Message], object]
    ) -> None:
        self.done = False
        self._looks = looks
        self._post = post
        self._goes_on = Event()
        self._stopped = False

    def start(self) -> None:
        """Begin to look."""
        self._goes_on.set()
        Thread(target=self._run, daemon=True).start()

    def pause(self) -> None:
        """Leave the machine to others until `go_on`."""
        self._goes_on.clear()

    def go_on(self) -> None:
        """Look on after a pause."""
        self._goes_on.set()

    def stop(self) -> None:
        """Look no further."""
        self._stopped = True
        self._goes_on.set()

    def _run(self) -> None:
        try:
            last = self._look()
        except Exception as error:
            hand_in(TracesFound(self, (), True, error), self._post)
        else:
            hand_in(TracesFound(self, last, True, None), self._post)

    def _look(self) -> list[FoundTrace]:
        """Hand on what is found, but for the last ones, which are returned."""
        found: list[FoundTrace] = []
        due = monotonic() + _SOON
        for trace in self._looks:
            self._goes_on.wait()
            if self._stopped:
                return []
            if trace is not None:
                found.append(trace)
            if found and monotonic() >= due:
                hand_in(TracesFound(self, found, False, None), self._post)
                found, due = [], monotonic() + _PERIOD
        return found
