"""The picker of traces: what was shown before is listed, and remembered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flame.options.config import Config
from flame.options.recent import read_recent, recent_path, remember
from flame.tui.main.app import FlameApp
from flame.tui.picker import screen as module
from tests.tui.conftest import open_app
from tests.tui.picker.picking import picking, write

# What was shown before


async def test_what_was_shown_is_listed_above_the_last_one_first(
    folder: Path, tmp_path: Path
) -> None:
    old = write(tmp_path / "old.folded", 5000)
    remember([old])
    remember([folder / "run/rank0.folded", folder / "run/rank1.folded"])
    async with picking() as user:
        assert user.names[:2] == ["2 traces: rank0, rank1", str(old)]
        lines = user.read("items").splitlines()
        assert lines[0] == " Recent" and lines[3:5] == ["", f" In {folder}"]
        await user.press("enter")
        shown = await user.shown()
        assert [Path(path).name for path in shown] == ["rank0.folded", "rank1.folded"]


async def test_what_is_missing_is_left_out(folder: Path, tmp_path: Path) -> None:
    remember([tmp_path / "gone.folded"])
    remember([folder / "young.folded", tmp_path / "gone.folded"])
    async with picking() as user:
        assert "Recent" not in user.read("items") and len(user.names) == 3


async def test_some_are_listed_and_a_filter_finds_all(folder: Path, tmp_path: Path) -> None:
    for number in range(20):
        remember([write(tmp_path / f"past{number}.txt")])
    async with picking() as user:
        assert sum("past" in name for name in user.names) == module.RECENT_ROWS
        await user.press("slash", *"past")
        assert sum("past" in name for name in user.names) == 20


async def test_a_trace_in_both_parts_is_marked_in_both_and_opened_once(folder: Path) -> None:
    remember([folder / "young.folded"])
    async with picking() as user:
        await user.press("space")
        assert user.marked == ["young.folded", "young.folded"]
        await user.press("a", "enter")
        assert len(await user.shown()) == 3


async def test_what_is_shown_is_remembered_by_its_absolute_paths(folder: Path) -> None:
    async with picking() as user:
        await user.press("down", "space", "space", "enter")
        await user.shown()
        await user.until(lambda: read_recent())
    views = [[str(folder / "run/rank0.folded"), str(folder / "run/rank1.folded")]]
    assert json.loads(recent_path().read_text()) == views


async def test_what_is_named_is_remembered_too_and_what_cannot_be_shown_is_not(
    folder: Path,
) -> None:
    async with open_app(Path("young.folded")) as user:
        await user.until(lambda: read_recent())
    async with open_app(Path("none.folded")) as user:
        assert user.app.failure
    assert read_recent() == [(folder / "young.folded",)]


async def test_a_setting_leaves_it_off(folder: Path) -> None:
    remember([folder / "young.folded"])
    off = Config(recent=False)
    async with picking(config=off) as user:
        assert "Recent" not in user.read("items") and len(user.names) == 3
        await user.press("down", "enter")
        await user.shown()
        assert isinstance(user.app, FlameApp)
        loader = user.app._loader
        await user.until(lambda: not loader.is_alive())
    assert read_recent() == [(folder / "young.folded",)]


async def test_where_nothing_can_be_kept_the_trace_is_shown(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    async with picking() as user:
        await user.press("enter")
        assert await user.shown() == ["young.folded"]
