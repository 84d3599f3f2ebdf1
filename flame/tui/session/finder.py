"""Search while the user types: small trees at once, large ones in a thread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from flame.core.errors import UsageError
from flame.core.regex import is_quick
from flame.tui.session.query import Query, SearchResult, find
from flame.tui.session.tree_view import TreeView
from flame.tui.toolkit.latest import Answer, LatestRequest, Post

AT_ONCE = 20_000
"""Distinct names up to which a search takes a few milliseconds."""


class _Search(NamedTuple):
    view: TreeView
    query: Query


class Searched(Answer[_Search, SearchResult]):
    """Say that a search in a thread has ended, or failed."""


class TreeFinder:
    """Run one search at a time and only the last one asked for; ``post`` takes the results."""

    def __init__(self, post: Post) -> None:
        self.query: Query | None = None
        self._searches = LatestRequest(_run, Searched, post, in_turn=True)

    @property
    def busy(self) -> bool:
        """Whether a search is running."""
        return self._searches.busy

    def search(self, view: TreeView, query: Query | None) -> None:
        """Mark in ``view`` what ``query`` matches, now or soon.

        UsageError if it is wrong.
        """
        self._searches.replace(None)
        self.query = query if query and query.text else None
        if self.query is None:
            view.matches.mark(None)
            return
        pattern, names = self.query.compile(), view.tree.text
        if len(names) <= AT_ONCE and is_quick(pattern, names):
            view.matches.mark(find(view.tree, self.query))
        else:
            self._searches.ask(_Search(view, self.query))

    def take(self, message: Searched) -> bool:
        """Mark what ``message`` brings, and return whether that was last asked for.

        UsageError if it was, and took too long; raises what should not have happened.
        """
        current = self._searches.take(message)
        if current or not isinstance(message.outcome, UsageError):
            result = message.result()
        if current:
            message.request.view.matches.mark(result)
        return current


def _run(search: _Search) -> Iterator[SearchResult]:
    yield find(search.view.tree, search.query)
