"""The picker of traces: what opens, what cannot be opened, and how it is left."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flame.core.loading import search
from flame.core.loading.inputs import Inputs
from flame.core.loading.search import FoundTrace
from flame.options.recent import read_recent, remember
from flame.tui.main.app import FlameApp
from flame.tui.session.session import open_session
from flame.tui.shell.loading_screen import LoadingScreen
from tests.support.writers.fdumpfile import DumpFile
from tests.tui import traces
from tests.tui.conftest import USUAL, open_app
from tests.tui.picker.conftest import Gate
from tests.tui.picker.picking import picking, write

# Opening


async def test_enter_opens_the_selected_trace_and_q_ends(folder: Path) -> None:
    async with picking() as user:
        await user.press("down", "enter")
        assert await user.shown() == ["run/rank0.folded"]
        await user.press("q")
        assert user.app._exit
    assert user.app.exit_code() == 0


async def test_what_is_marked_opens_as_one_view_as_if_it_had_been_named(folder: Path) -> None:
    async with picking() as user:
        await user.press("down", "down", "space", "up", "space")
        assert user.marked == ["run/rank0.folded", "run/rank1.folded"]
        assert user.read("header").endswith("2 marked · 3 traces")
        assert "enter opens 2 traces as one view" in user.read("about")
        await user.press("home", "enter")
        assert await user.shown() == ["run/rank0.folded", "run/rank1.folded"]
        picked = user.screen.session.profile
    paths = [Path("run/rank0.folded"), Path("run/rank1.folded")]
    async with open_app(paths[0], more=paths[1:]) as named:
        profile = named.screen.session.profile
        assert [one.label for one in profile.sources] == [one.label for one in picked.sources]
        assert profile.size == picked.size


async def test_options_hold_for_what_is_picked(folder: Path) -> None:
    by_category = replace(USUAL, colours="category")
    async with picking(selection=by_category) as user:
        await user.press("enter")
        await user.shown()
        assert user.screen.shown.selection.colours == "category"


async def test_space_takes_a_mark_back(folder: Path) -> None:
    async with picking() as user:
        await user.press("space")
        assert user.marked == ["young.folded"] and "rank0" in user.line
        await user.press("up", "space")
        assert user.marked == [] and user.read("header").endswith("3 traces")


async def test_a_marks_all_of_a_part_and_takes_that_back(folder: Path, tmp_path: Path) -> None:
    remember([write(tmp_path / "elsewhere.folded")])
    async with picking() as user:
        await user.press("down", "a")
        assert user.marked == ["young.folded", "run/rank0.folded", "run/rank1.folded"]
        await user.press("a")
        assert user.marked == []


async def test_a_recording_is_one_trace(folder: Path) -> None:
    dump = DumpFile(7)
    dump.kernel("gemm", 10, 20, 1)
    dump.launch(1, 2, 1)
    (folder / "job.flame").mkdir()
    dump.write(folder / "job.flame" / "7-a.fdump")
    async with picking() as user:
        await user.press("slash", *"recording", "enter")
        assert await user.shown() == ["job.flame"]


async def test_a_click_selects_and_a_double_click_opens(folder: Path) -> None:
    async with picking() as user:
        await user.pilot.click("#items", offset=(20, 2))
        await user.settle()
        assert "rank0" in user.line
        await user.pilot.click("#items", offset=(20, 3), times=2)
        assert await user.shown() == ["run/rank1.folded"]


# What cannot be opened


async def test_what_cannot_be_read_is_said_and_the_list_stays(folder: Path) -> None:
    (folder / "bad.sqlite").write_bytes(traces.decode(folder / "x.sqlite").read_bytes()[:-4096])
    async with picking() as user:
        await user.press("slash", *"bad", "enter")
        assert "bad.sqlite: cut off" in await user.refused()
        assert user.names == ["bad.sqlite"]
        await user.press("escape", "down")
        assert "cut off" not in user.read("about")
        await user.press("slash", *"young", "enter")
        assert await user.shown() == ["young.folded"]


async def test_the_search_goes_on_after_what_cannot_be_opened(folder: Path, gate: Gate) -> None:
    async with picking(wait=False) as user:
        gate.let()
        await user.until(lambda: user.names)
        (folder / "young.folded").unlink()
        await user.press("enter")
        await user.refused()
        gate.let(2)
        await user.listed()
        assert len(user.names) == 3


async def test_what_has_gone_meanwhile_is_said(folder: Path) -> None:
    async with picking() as user:
        (folder / "young.folded").unlink()
        await user.press("enter")
        assert "young.folded: no such file" in await user.refused()


async def test_marks_stay_where_they_cannot_be_opened(folder: Path) -> None:
    async with picking() as user:
        await user.press("a")
        (folder / "young.folded").unlink()
        await user.press("enter")
        assert "no such file" in await user.refused()
        assert len(user.marked) == 3
        await user.press("home", "space", "enter")
        assert await user.shown() == ["run/rank0.folded", "run/rank1.folded"]


@pytest.mark.parametrize("key", ["escape", "q"])
async def test_a_load_can_be_cancelled_and_nothing_of_it_comes(
    folder: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(inputs: Inputs, *rest: Any) -> Any:
        if inputs.title == "young.folded":
            begun.set()
            go_on.wait()
        return open_session(inputs, *rest)

    monkeypatch.setattr("flame.tui.session.session.open_session", slow)
    async with picking() as user:
        await user.press("enter")
        await user.until(begun.is_set)
        assert user.on_top == "LoadingScreen"
        assert isinstance(user.app, FlameApp)
        loader = user.app._loader
        await user.press(key)
        assert user.on_top == "TracesScreen" and "young.folded" in user.read("about")
        go_on.set()
        await user.until(lambda: not loader.is_alive())
        await user.settle()
        assert user.on_top == "TracesScreen" and read_recent() == []
        await user.press("down", "enter")
        assert await user.shown() == ["run/rank0.folded"]


async def test_enter_twice_opens_once(folder: Path) -> None:
    async with picking() as user:
        user.picker.action_choose()
        user.picker.action_choose()
        await user.shown()
        assert sum(isinstance(one, LoadingScreen) for one in user.app.screen_stack) == 1


async def test_what_should_not_have_happened_reaches_the_caller(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(searched: search.FolderSearch) -> Iterator[FoundTrace | None]:
        yield None
        raise ValueError("a bug")

    monkeypatch.setattr(search.FolderSearch, "looks", broken)
    with pytest.raises(ValueError, match="a bug"):
        async with picking(wait=False) as user:
            await user.until(lambda: user.app.crash)
    with pytest.raises(ValueError, match="a bug"):
        user.app.exit_code()


@pytest.mark.parametrize("key", ["q", "escape", "ctrl+c"])
async def test_leaving_opens_nothing(folder: Path, key: str) -> None:
    async with picking() as user:
        await user.pilot.press(key)
        await user.pilot.pause()
        assert user.app._exit
    assert user.app.exit_code() == 0 and read_recent() == []
