"""The picker of traces: a list that fills, what is marked, what opens, and what does not."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flame.core.loading import search
from flame.core.loading.inputs import Inputs
from flame.core.loading.search import FoundTrace
from flame.core.options import LoadOptions
from flame.core.projection.selection import Selection
from flame.options.config import DEFAULTS, Config
from flame.options.recent import read_recent, recent_path, remember
from flame.tui.main.app import FlameApp
from flame.tui.picker import screen as module
from flame.tui.picker.app import PickingApp
from flame.tui.picker.rows import TraceRow, row
from flame.tui.picker.screen import TracesScreen
from flame.tui.session.session import open_session
from flame.tui.shell.loading_screen import LoadingScreen
from flame.tui.toolkit.lines import Line
from tests.support.writers.fdumpfile import DumpFile
from tests.tui import traces
from tests.tui.conftest import USUAL, User, main_screen, open_app

NEWEST = 2_000_000_000


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of three traces, two of them in a folder below; the current one."""
    here = tmp_path / "log"
    (here / "run").mkdir(parents=True)
    for age, name in enumerate(("young.folded", "run/rank0.folded", "run/rank1.folded")):
        write(here / name, age)
    monkeypatch.chdir(here)
    return here


def write(path: Path, age: float = 0, content: str = "main;work 3\nmain;rest 1\n") -> Path:
    path.write_text(content)
    os.utime(path, (NEWEST - age, NEWEST - age))
    return path


class PickerUser(User):
    """Presses keys in the picker and reads it."""

    @property
    def picker(self) -> TracesScreen:
        (found,) = (one for one in self.app.screen_stack if isinstance(one, TracesScreen))
        return found

    @property
    def names(self) -> list[str]:
        """What is listed."""
        return [item.name for item in self.picker.items]

    @property
    def on_top(self) -> str:
        """Which screen is seen."""
        return type(self.app.screen).__name__

    @property
    def line(self) -> str:
        """The selected row."""
        (found,) = (line for line in self.read("items").splitlines() if line.startswith("▸"))
        return found

    @property
    def marked(self) -> list[str]:
        """Names of the rows with a mark."""
        lines = self.read("items").splitlines()
        return [line[3:].split()[0] for line in lines if line[1:2] == "●"]

    async def listed(self) -> None:
        """Wait until all is found."""
        await self.until(lambda: not self.picker._looking)
        await self.settle()

    async def shown(self) -> list[str]:
        """Wait until traces are shown: which."""
        await self.until(lambda: main_screen(self.app))
        await self.settle()
        assert isinstance(self.app, FlameApp)
        return [str(path) for path in self.app.inputs.paths]

    async def refused(self) -> str:
        """Wait until the list is back: what it says."""
        await self.until(lambda: self.app.screen is self.picker and self.picker._error)
        await self.settle()
        return self.read("about")


@asynccontextmanager
async def picking(
    folder: Path = Path(),
    with_recent: bool = True,
    size: tuple[int, int] = (100, 30),
    config: Config = DEFAULTS,
    selection: Selection = USUAL,
    wait: bool = True,
) -> AsyncIterator[PickerUser]:
    app = PickingApp(folder, with_recent, LoadOptions(), selection, config=config)
    async with app.run_test(size=size) as pilot:
        user = PickerUser(app, pilot)
        await user.settle()
        if wait:
            await user.listed()
        yield user


# The list


async def test_the_traces_of_the_folder_are_listed_the_newest_first(folder: Path) -> None:
    async with picking() as user:
        assert user.names == ["young.folded", "run/rank0.folded", "run/rank1.folded"]
        assert "young.folded" in user.line and "folded stacks" in user.line
        assert user.read("header").endswith("3 traces")
        assert user.read("heads").split() == ["name", "format", "GPUs", "size", "age"]
        assert "young.folded" in user.read("about")


async def test_a_folder_that_was_named_is_the_heading(folder: Path) -> None:
    async with picking(folder / "run", with_recent=False) as user:
        assert user.names == ["rank0.folded", "rank1.folded"]
        assert user.read("header").split()[:4] == ["flame", "traces", "in", "run"]
        assert "Recent" not in user.read("items")


class Gate:
    """Lets one look at a file after the other through."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._turn = threading.Semaphore(0)
        looks = search.FolderSearch.looks

        def slow(searched: search.FolderSearch) -> Iterator[FoundTrace | None]:
            for trace in looks(searched):
                if trace:
                    self._turn.acquire()
                yield trace

        monkeypatch.setattr(search.FolderSearch, "looks", slow)
        monkeypatch.setattr("flame.tui.picker.feed._SOON", 0)
        monkeypatch.setattr("flame.tui.picker.feed._PERIOD", 0)

    def let(self, number: int = 1) -> None:
        self._turn.release(number)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate(monkeypatch)
    yield gate
    gate.let(100)


async def test_the_list_is_there_at_once_and_fills(folder: Path, gate: Gate) -> None:
    async with picking(wait=False) as user:
        assert "looking for traces in" in user.read("items")
        assert user.read("header").endswith("0 traces · looking …")
        gate.let()
        await user.until(lambda: user.names == ["young.folded"])
        gate.let(2)
        await user.listed()
        assert len(user.names) == 3 and user.read("header").endswith("3 traces")


async def test_the_cursor_is_on_the_newest_until_it_is_moved_then_on_its_trace(
    folder: Path, gate: Gate
) -> None:
    for age, name in enumerate(("d1", "d2", "d3"), 10):
        write(folder / "run" / f"{name}.folded", age)
    async with picking(folder / "run", wait=False) as user:
        gate.let(2)
        await user.until(lambda: len(user.names) == 2)
        await user.settle()
        assert user.line.startswith(f"▸  {user.names[0]}")
        await user.press("down")
        before = user.line
        gate.let(3)
        await user.listed()
        assert len(user.names) == 5 and user.line == before


async def test_one_can_open_what_is_found_before_all_is(folder: Path, gate: Gate) -> None:
    async with picking(wait=False) as user:
        gate.let()
        await user.until(lambda: user.names)
        await user.press("enter")
        assert await user.shown() == ["young.folded"]


async def test_r_looks_again_and_keeps_marks_but_of_what_has_gone(folder: Path) -> None:
    async with picking() as user:
        await user.press("space", "space")
        write(folder / "newer.folded", -5)
        (folder / "young.folded").unlink()
        await user.press("r")
        await user.listed()
        assert user.names == ["newer.folded", "run/rank0.folded", "run/rank1.folded"]
        assert user.marked == ["run/rank0.folded"] and "rank1" in user.line


async def test_nothing_found_says_what_there_could_be(tmp_path: Path) -> None:
    async with picking(tmp_path, with_recent=False) as user:
        said = user.read("items")
        assert "There is no trace in" in said and "flame record -- CMD" in said
        await user.press("enter", "space", "a", "s", "down")
        assert user.app.is_running and user.read("header").endswith("0 traces")


async def test_in_a_folder_that_has_been_removed_nothing_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    async with picking() as user:
        assert "There is no trace in" in user.read("items")


async def test_what_was_not_looked_at_is_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FolderSearch", lambda path: search.FolderSearch(path, most=2))
    async with picking() as user:
        assert "there is more than was looked at" in user.read("notes")


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40), (250, 70), (20, 6)])
async def test_every_size_is_drawn(folder: Path, size: tuple[int, int]) -> None:
    async with picking(size=size) as user:
        assert "you" in user.line
        await user.pilot.resize_terminal(100, 30)
        await user.settle()
        assert "young.folded" in user.line


async def test_a_thousand_traces_cost_no_more_than_the_rows_on_the_screen(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many_traces = [FoundTrace((folder / f"{number}",), "x", 1, number) for number in range(3000)]
    monkeypatch.setattr(search.FolderSearch, "looks", lambda searched: iter(many_traces))
    async with picking(folder) as user:
        drawn: list[str] = []

        def counted(item: TraceRow, *rest: Any) -> Line:
            drawn.append(item.name)
            return row(item, *rest)

        monkeypatch.setattr("flame.tui.picker.screen.row", counted)
        await user.press("down", "pagedown")
        assert "▸  2988" in user.line and 0 < len(drawn) < 200
        await user.press("G")
        assert user.line.split()[1] == "0"


async def test_names_that_a_terminal_would_obey_are_shown(folder: Path) -> None:
    write(folder / "\x1b[2Jred\n\u202e.folded", -1)
    async with picking() as user:
        assert "␛[2Jred␊�.folded" in user.line
        assert "␛[2Jred␊�.folded" in user.read("about")


# Filtering and sorting


async def test_a_filter_leaves_what_matches_and_enter_opens_it(folder: Path) -> None:
    async with picking() as user:
        await user.press("slash", *"rank1")
        assert user.names == ["run/rank1.folded"]
        assert user.read("header").endswith("1 of 3 traces")
        await user.press("enter")
        assert await user.shown() == ["run/rank1.folded"]


async def test_moving_leaves_the_filter_as_it_is_so_that_letters_are_keys(folder: Path) -> None:
    async with picking() as user:
        await user.press("slash", *"rank", "down", "a")
        assert user.marked == user.names == ["run/rank0.folded", "run/rank1.folded"]
        await user.press("escape")
        assert len(user.names) == 3 and len(user.marked) == 2


async def test_a_filter_that_nothing_matches_is_said(folder: Path) -> None:
    async with picking() as user:
        await user.press("slash", *"zzz")
        assert "nothing matches 'zzz'" in user.read("items")
        await user.press("enter")
        assert user.app.screen is user.picker


async def test_s_sorts_and_goes_to_the_first(folder: Path) -> None:
    write(folder / "a_large.folded", 50, "main;work 3\n" * 50)
    async with picking() as user:
        assert "newest" in user.read("status")
        await user.press("G", "s")
        assert user.names[:2] == ["a_large.folded", "run/rank0.folded"]
        assert "name" in user.read("status") and "a_large" in user.line
        await user.press("s")
        assert user.names[0] == "a_large.folded" and "largest" in user.read("status")
        await user.press("s")
        assert user.names[0] == "young.folded"


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
