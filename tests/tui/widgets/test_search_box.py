"""The search box remembers what was entered, in this session and, where it can, in the next."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.app import App, ComposeResult

from flame.tui.widgets.search_box import LONGEST, SearchBox, SearchHistory, searches_path
from tests.tui.dialog_stage import Player


class BoxApp(App[None]):
    def __init__(self, history: SearchHistory | None) -> None:
        super().__init__()
        self._history = history

    def compose(self) -> ComposeResult:
        yield SearchBox(id="search", history=self._history)


@asynccontextmanager
async def typing(history: SearchHistory | None = None) -> AsyncIterator[tuple[Player, SearchBox]]:
    app = BoxApp(history)
    async with app.run_test() as pilot:
        user = Player(app, pilot)
        await user.settle()
        yield user, app.query_one(SearchBox)


async def test_up_and_down_go_through_what_was_entered() -> None:
    async with typing() as (user, box):
        for text in ("gemm", "flash", "copy"):
            await user.press("ctrl+u", *text, "enter")
        await user.press("ctrl+u", *"dra")
        seen = []
        for key in ("up", "up", "up", "up", "down", "down", "down", "down"):
            await user.press(key)
            seen.append(box.value)
        assert seen == ["copy", "flash", "gemm", "gemm", "flash", "copy", "dra", "dra"]
        assert box.cursor_position == 3


async def test_what_is_recalled_is_a_search_like_any_other() -> None:
    async with typing(SearchHistory()) as (user, box):
        await user.press(*"ab", "enter", "ctrl+u", "up", "c", "enter", "up")
        assert box.value == "abc"
        await user.press("up")
        assert box.value == "ab"


async def test_ctrl_u_empties_the_box_from_anywhere() -> None:
    async with typing() as (user, box):
        await user.press(*"abc", "home", "ctrl+u")
        assert box.value == ""


async def test_what_is_in_the_file_is_shown_safely(tmp_path: Path) -> None:
    path = tmp_path / "searches"
    path.write_bytes(b"\x1b[2J\n\xff\xfe[bold]\n\n")
    async with typing(SearchHistory(path)) as (user, box):
        await user.press("up")
        assert box.value == "��[bold]"
        await user.press("up")
        assert box.value == "␛[2J"


# The history itself


def entered(path: Path | None) -> list[str]:
    """All texts of a fresh history, the latest first."""
    history, texts = SearchHistory(path), []
    while (text := history.go(1, "")) not in texts:
        texts.append(text)
    return [text for text in texts if text]


def test_texts_last_from_one_session_to_the_next(tmp_path: Path) -> None:
    path = tmp_path / "state" / "flame" / "searches"
    history = SearchHistory(path)
    history.add("gemm")
    history.add("attn|mlp")
    assert path.read_text() == "gemm\nattn|mlp\n"
    assert entered(path) == ["attn|mlp", "gemm"]


def test_a_text_is_there_once_and_blank_ones_never(tmp_path: Path) -> None:
    history = SearchHistory(tmp_path / "searches")
    for text in ("a", "b", "a", "", "  "):
        history.add(text)
    assert entered(tmp_path / "searches") == ["a", "b"]


def test_two_sessions_keep_the_searches_of_both(tmp_path: Path) -> None:
    one, other = SearchHistory(tmp_path / "searches"), SearchHistory(tmp_path / "searches")
    one.add("first")
    other.add("second")
    assert entered(tmp_path / "searches") == ["second", "first"]
    assert other.go(2, "") == "second"


def test_the_oldest_are_forgotten(tmp_path: Path) -> None:
    history = SearchHistory(tmp_path / "searches")
    for number in range(LONGEST + 5):
        history.add(f"search {number}")
    texts = entered(tmp_path / "searches")
    assert len(texts) == LONGEST
    assert texts[-1] == "search 5"


def test_no_failure_is_shown(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "file" / "searches", tmp_path / "pipe"):
        history = SearchHistory(path)
        history.add("gemm")
        assert history.go(1, "") == "gemm"


def test_the_file_is_where_state_belongs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert searches_path() == tmp_path / "flame" / "searches"
    monkeypatch.setenv("XDG_STATE_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert searches_path() == tmp_path / ".local" / "state" / "flame" / "searches"
    monkeypatch.setenv("HOME", "nowhere")
    assert searches_path() is None
