"""A search of a listing that may take long runs in a thread, and is given up."""

from __future__ import annotations

import pytest
from textual.message import Message

from flame.core import regex
from flame.core.errors import UsageError
from flame.tui.sass import finder
from flame.tui.sass.finder import ListingFinder, RowsFound
from flame.tui.sass.listing import Listing
from flame.tui.session.query import Query
from tests.support.waiting import wait_until
from tests.tui.sass.test_listing import listing, version

HARD = r"^(([a-z!])+.)+[A-Z]([a-z!])+$"
LONG = "ax" * 20 + "a" * 3000 + "!"


class Mailbox:
    """Takes what a finder posts."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.finder = ListingFinder(self.messages.append)

    def take(self) -> bool:
        wait_until(lambda: self.messages)
        message = self.messages.pop(0)
        assert isinstance(message, RowsFound)
        return self.finder.take(message)


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox()


@pytest.fixture
def rows() -> Listing:
    return listing(version([("LDG", 1), ("FMUL", 1), (LONG, 2)], [1, 2, 4]))


def test_a_short_search_is_done_at_once(mailbox: Mailbox, rows: Listing) -> None:
    mailbox.finder.search(rows, Query("fmul"))
    assert mailbox.finder.matches.tolist() == [2]
    assert not mailbox.finder.searching
    mailbox.finder.search(rows, Query(""))
    assert mailbox.finder.matches.tolist() == [] and mailbox.finder.query is None


def test_a_search_of_many_rows_comes_later(
    mailbox: Mailbox, rows: Listing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finder, "AT_ONCE", 0)
    mailbox.finder.search(rows, Query("ld"))
    mailbox.finder.search(rows, Query("fmul"))
    assert mailbox.finder.searching
    assert not mailbox.take()
    assert mailbox.finder.matches.tolist() == []
    assert mailbox.take()
    assert mailbox.finder.matches.tolist() == [2] and not mailbox.finder.searching


def test_what_takes_too_long_is_given_up(
    mailbox: Mailbox, rows: Listing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regex, "LONGEST_SEARCH", 0.05)
    mailbox.finder.search(rows, Query(HARD))
    assert mailbox.finder.searching
    with pytest.raises(UsageError, match="takes too long"):
        mailbox.take()
    assert mailbox.finder.matches.tolist() == [] and not mailbox.finder.searching


def test_a_search_of_what_is_shown_no_more_is_not_told(
    mailbox: Mailbox, rows: Listing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regex, "LONGEST_SEARCH", 0.05)
    mailbox.finder.search(rows, Query(HARD))
    mailbox.finder.search(rows, None)
    assert not mailbox.take()
    assert not mailbox.finder.searching


def test_a_wrong_expression_is_refused_at_once(mailbox: Mailbox, rows: Listing) -> None:
    with pytest.raises(UsageError, match="not a regular expression"):
        mailbox.finder.search(rows, Query("("))
    assert not mailbox.finder.searching
