"""Searches at once and in a thread, of which only the last one counts."""

from __future__ import annotations

import threading

import pytest
from textual.message import Message

from flame.core import regex
from flame.core.errors import UsageError
from flame.tui.session import finder
from flame.tui.session.finder import Searched, TreeFinder
from flame.tui.session.query import Query
from flame.tui.session.tree_view import TreeView
from tests.support.waiting import PATIENCE
from tests.tui.trees import stack_tree

HARD = r"^(([a-z!])+.)+[A-Z]([a-z!])+$"
TREE = stack_tree({("a", "x"): 3, ("b", "x"): 2, ("c",): 1})


class Mailbox:
    """Takes what a thread posts."""

    def __init__(self) -> None:
        self.finder = TreeFinder(self.post)
        self._messages: list[Message] = []
        self._arrived = threading.Semaphore(0)

    def post(self, message: Message) -> None:
        self._messages.append(message)
        self._arrived.release()

    def take(self) -> bool:
        """Hand the next message over, as the screen does."""
        assert self._arrived.acquire(timeout=PATIENCE)
        message = self._messages.pop(0)
        assert isinstance(message, Searched)
        return self.finder.take(message)


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox()


@pytest.fixture
def in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finder, "AT_ONCE", 0)


def matches(view: TreeView) -> int:
    return view.matches.result.matches.nodes if view.matches.result else -1


def test_a_small_tree_is_searched_at_once(mailbox: Mailbox) -> None:
    view = TreeView(TREE, 80)
    mailbox.finder.search(view, Query("x"))
    assert matches(view) == 2
    mailbox.finder.search(view, Query(""))
    assert view.matches.result is None and mailbox.finder.query is None


def test_a_wrong_expression_is_refused_at_once(mailbox: Mailbox, in_threads: None) -> None:
    with pytest.raises(UsageError, match="not a regular expression"):
        mailbox.finder.search(TreeView(TREE, 80), Query("("))
    assert not mailbox.finder.busy


def test_a_large_tree_is_searched_in_a_thread(mailbox: Mailbox, in_threads: None) -> None:
    view = TreeView(TREE, 80)
    mailbox.finder.search(view, Query("x"))
    assert mailbox.finder.busy
    assert mailbox.take()
    assert matches(view) == 2 and not mailbox.finder.busy


def test_of_searches_asked_for_meanwhile_only_the_last_is_run(
    mailbox: Mailbox, in_threads: None
) -> None:
    view = TreeView(TREE, 80)
    for text in ("x", "a", "[abc]"):
        mailbox.finder.search(view, Query(text))
    assert not mailbox.take()
    assert matches(view) == -1
    assert mailbox.take()
    assert matches(view) == 3 and not mailbox.finder.busy


def test_what_may_take_long_is_searched_in_a_thread_and_given_up(
    mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regex, "LONGEST_SEARCH", 0.05)
    view = TreeView(stack_tree({("ax" * 20 + "a" * 3000 + "!",): 1}), 80)
    mailbox.finder.search(view, Query(HARD))
    assert mailbox.finder.busy
    with pytest.raises(UsageError, match="takes too long: try a simpler expression"):
        mailbox.take()
    assert matches(view) == -1 and not mailbox.finder.busy


def test_what_was_given_up_is_not_told_once_something_else_is_searched(
    mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regex, "LONGEST_SEARCH", 0.05)
    view = TreeView(stack_tree({("ax" * 20 + "a" * 3000 + "!",): 1}), 80)
    mailbox.finder.search(view, Query(HARD))
    mailbox.finder.search(view, Query("a"))
    assert not mailbox.take()
    assert matches(view) == 1


def test_a_search_given_up_marks_nothing(mailbox: Mailbox, in_threads: None) -> None:
    view = TreeView(TREE, 80)
    mailbox.finder.search(view, Query("x"))
    mailbox.finder.search(view, None)
    assert not mailbox.take()
    assert matches(view) == -1 and not mailbox.finder.busy
