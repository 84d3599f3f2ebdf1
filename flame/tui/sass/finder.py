"""Search a listing while the user types: at once, or in a thread where that may take long."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8
from flame.core.errors import UsageError
from flame.tui.sass.listing import Listing
from flame.tui.session.finder import AT_ONCE
from flame.tui.session.query import Query
from flame.tui.toolkit.latest import Answer, LatestRequest, Post

NONE: I8 = np.zeros(0, np.int64)


class _Search(NamedTuple):
    listing: Listing
    pattern: re.Pattern[str]


class RowsFound(Answer[_Search, I8]):
    """Say that a search in a thread has ended, or failed."""


class ListingFinder:
    """Run one search at a time and only the last one asked for; ``post`` takes the results.

    ``matches`` are the rows that ``query`` has found so far.
    """

    def __init__(self, post: Post) -> None:
        self.query: Query | None = None
        self.matches = NONE
        self._searches = LatestRequest(_run, RowsFound, post, in_turn=True)

    @property
    def searching(self) -> bool:
        """Whether the matches are still to come."""
        return self._searches.latest is not None and self._searches.busy

    def search(self, listing: Listing, query: Query | None) -> None:
        """Look for ``query`` in ``listing``, now or soon; UsageError if it is wrong."""
        self._searches.replace(None)
        self.query, self.matches = query if query and query.text else None, NONE
        if self.query is None:
            return
        pattern = self.query.compile()
        if len(listing.version) <= AT_ONCE and listing.is_quick(pattern):
            self.matches = listing.matching(pattern)
        else:
            self._searches.ask(_Search(listing, pattern))

    def take(self, message: RowsFound) -> bool:
        """Take what ``message`` brings, and return whether that was last asked for.

        UsageError if it was, and took too long; raises what should not have happened.
        """
        current = self._searches.take(message)
        if current:
            self._searches.replace(None)
        if current or not isinstance(message.outcome, UsageError):
            found = message.result()
        if current:
            self.matches = found
        return current


def _run(search: _Search) -> Iterator[I8]:
    yield search.listing.matching(search.pattern)
