"""Searching while the user types: small trees at once, large ones in a thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Thread

from textual.message import Message

from flame.tui.session.query import Found, Query, find
from flame.tui.session.tree_view import View
from flame.tui.toolkit.background import hand_in
from flame.tui.toolkit.patience import at_most

AT_ONCE = 20_000
"""Distinct names up to which a search takes a few milliseconds."""


LONGEST = 2.0
"""Seconds after which an expression is given up."""

TOO_LONG = "the search takes too long: try a simpler expression"


class Searched(Message):
    """A search in a thread has ended, or failed; ``ticket`` says which."""

    def __init__(self, ticket: int, view: View, outcome: Found | Exception) -> None:
        super().__init__()
        self.ticket = ticket
        self.view = view
        self.outcome = outcome


@dataclass
class Finder:
    """Runs one search at a time and only the last one asked for; ``post`` takes the results."""

    post: Callable[[Message], object]
    query: Query | None = field(init=False, default=None)
    _ticket: int = field(init=False, default=0)
    _running: bool = field(init=False, default=False)
    _next: View | None = field(init=False, default=None)

    @property
    def busy(self) -> bool:
        """Whether a search is running."""
        return self._running

    def search(self, view: View, query: Query | None) -> None:
        """Mark in ``view`` what ``query`` matches, now or soon.

        UsageError if it is wrong, or takes too long.
        """
        self._ticket += 1
        self.query = query if query and query.text else None
        if self.query is None:
            view.mark(None)
            return
        self.query.compile()
        if len(view.tree.text) <= AT_ONCE:
            with at_most(LONGEST, TOO_LONG):
                view.mark(find(view.tree, self.query))
        elif self._running:
            self._next = view
        else:
            self._start(view, self.query)

    def _start(self, view: View, query: Query) -> None:
        self._running, self._next = True, None
        ticket = self._ticket

        def work() -> None:
            outcome: Found | Exception
            try:
                outcome = find(view.tree, query)
            except Exception as error:
                outcome = error
            hand_in(Searched(ticket, view, outcome), self.post)

        Thread(target=work, daemon=True).start()

    def take(self, message: Searched) -> bool:
        """Whether ``message`` has brought what was last asked for; else that is begun.

        Raises what should not have happened.
        """
        self._running = False
        if isinstance(message.outcome, Exception):
            raise message.outcome
        if message.ticket == self._ticket:
            message.view.mark(message.outcome)
            return True
        if self._next is not None and self.query is not None:
            self._start(self._next, self.query)
        return False
