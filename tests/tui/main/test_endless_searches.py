"""Searches and filters that would take years: the app answers meanwhile, and says so in a line."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual import events

from flame.core import regex
from flame.core.projection.filters import HideFrames, ShowStacks
from flame.core.projection.selection import Selection, select
from flame.tui.session.query import Query
from tests.tui.conftest import open_app

HARD = r"^(([a-z!])+.)+[A-Z]([a-z!])+$"
COMPLAINT = f"'{HARD}' takes too long: try a simpler expression"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "long.folded"
    name = "ax" * 20 + "a" * 3000 + "!"
    path.write_text(f"main;{name} 3\nother;short 2\n")
    return path


async def test_a_search_is_given_up_and_keys_work_meanwhile(
    trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regex, "LONGEST_SEARCH", 1.0)
    async with open_app(trace) as user:
        before = user.selected
        user.screen._search(Query(HARD))  # as typing it does
        user.app.post_message(events.Key("down", None))
        await user.until(lambda: user.selected != before)
        assert user.screen.finder.busy, "the key was answered first"
        await user.until(lambda: not user.screen.finder.busy)
        await user.settle()
        assert "takes too long: try a simpler expression" in user.read("status")
        assert user.screen.finder.query is None


@pytest.mark.parametrize("filter_", [ShowStacks(HARD), HideFrames(HARD)])
async def test_a_filter_is_given_up_and_what_was_shown_stays(
    trace: Path, monkeypatch: pytest.MonkeyPatch, filter_: ShowStacks
) -> None:
    monkeypatch.setattr(regex, "LONGEST_SEARCH", 0.05)
    async with open_app(trace) as user:
        user.screen._project(select(where=(filter_,)))
        await user.settle()
        assert "takes too long: try a simpler expression" in user.read("status")
        assert user.screen.shown.selection.where == ()


async def test_a_selection_that_takes_too_long_is_explained(
    trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regex, "LONGEST_SEARCH", 0.05)
    async with open_app(trace, selection=Selection(where=(ShowStacks(HARD),))) as user:
        text = user.read("loading").replace("\n", "")
        assert "takes too long" in text
        assert user.app.failure is not None and user.app.failure.exit_code == 2
