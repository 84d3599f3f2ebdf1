"""What one start of the app remembers for the next: what is shown, and how it is undone."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flame.console.background_colour import TerminalBackground
from flame.core.options import LoadOptions
from flame.core.projection.filters import ShowStacks
from flame.options.preferences import Memory, Preferences, ShownLevels
from flame.tui.shell.start import Start
from tests.support.paths import SAMPLES
from tests.tui.conftest import USUAL, User, open_app
from tests.tui.main.remembering import KERNELS, REMEMBERED, TORCH, keep
from tests.tui.main.remembering import _writing_is_waited_for as _writing_is_waited_for

NSYS = SAMPLES / "decode_small.sqlite"
MODULES = ShownLevels(("module", "kernel"), True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "flame" / "preferences.json"


def started(path: Path) -> Start:
    memory = Memory(path)
    return Start(memory, memory.preferences)


def kept(user: User, path: Path) -> Preferences:
    """What the next start will read."""
    user.app.start.memory.settle()
    return Memory(path).preferences


# What is remembered


@pytest.mark.deep
@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (("t",), Preferences(theme="flame-light")),
        (("t", "t", "t", "t"), Preferences()),
        (("d",), Preferences(details=False)),
        (("d", "d"), Preferences()),
        (("K",), Preferences(kernel_names="base")),
        (("K", "K", "K"), Preferences()),
        (("K", "z"), Preferences()),
        (("K", "z", "Z"), Preferences(kernel_names="base")),
        (("O",), Preferences(colours="category")),
        (("P",), Preferences(hide_framework=True)),
        (("P", "P"), Preferences()),
        (("L", "5"), Preferences(levels={"kineto": KERNELS})),
        (("L", "3"), Preferences(levels={"kineto": MODULES})),
        (("L", "3", "L", "1"), Preferences()),
        (("B",), Preferences(levels={"kineto": ShownLevels(forward=False)})),
        (("ctrl+n",), Preferences()),
        (("L", "5", "ctrl+n", "ctrl+n", "ctrl+n"), Preferences(levels={"kineto": KERNELS})),
        (("i", "c", "s", "enter", "x"), Preferences()),
    ],
)
async def test_what_keys_leave_behind(
    path: Path, keys: tuple[str, ...], expected: Preferences
) -> None:
    forward = LoadOptions(forward=True)
    async with open_app(TORCH, options=forward, start=started(path)) as user:
        await user.press(*keys)
        assert kept(user, path) == expected


async def test_levels_of_another_table_are_not_those_of_the_trace(path: Path) -> None:
    host = replace(USUAL, metric="host")
    async with open_app(TORCH, selection=host, start=started(path)) as user:
        await user.press("L", "6")
        assert user.levels == "python,native,kernel"
        assert kept(user, path) == Preferences()


async def test_levels_that_an_option_has_chosen_are_not_remembered_by_way_of_a_metric(
    path: Path,
) -> None:
    keep(path, levels={"kineto": MODULES})
    asked = replace(USUAL, levels=("kernel",))
    async with open_app(TORCH, selection=asked, start=Start(Memory(path))) as user:
        await user.press("M", "M")  # FLOPs are between
        assert user.screen.shown.metric.table == "host"
        await user.press("ctrl+n", "ctrl+n")
        assert user.levels == "kernel"
        assert kept(user, path).levels == {"kineto": MODULES}


async def test_the_next_start_is_as_the_last_one_was(path: Path) -> None:
    async with open_app(TORCH, start=started(path)) as user:
        await user.press("t", "d", "K", "O", "P", "L", "3")
        before = user.screen.shown.selection
        user.app.start.memory.settle()
    async with open_app(TORCH, start=started(path)) as user:
        assert user.app.theme == "flame-light"
        assert not user.screen.query_one("#details").display
        assert user.screen.shown.selection == before
        assert "as last time" in user.read("recalled")
        assert user.screen.parts.recalled.display


async def test_a_terminal_that_shows_one_theme_alone_leaves_the_theme(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    keep(path, theme="flame-light")
    async with open_app(TORCH, start=started(path)) as user:
        await user.press("t")
        assert kept(user, path).theme == "flame-light"


async def test_the_theme_for_the_background_needs_no_memory(path: Path) -> None:
    background = TerminalBackground()
    background.light = True
    start = replace(started(path), background=background)
    async with open_app(TORCH, start=start) as user:
        assert user.app.theme == "flame-light"
        await user.press("t", "t", "t")
        assert user.app.theme == "flame-dark"
        assert kept(user, path).theme == "flame-dark"
        await user.press("t")
        assert kept(user, path).theme is None


# Another trace than the one they were chosen for


async def test_each_kind_of_trace_has_levels_of_its_own(path: Path) -> None:
    keep(path, levels={"kineto": KERNELS})
    async with open_app(NSYS, start=started(path)) as user:
        assert user.screen.shown.selection.levels is None
        assert not user.screen.parts.recalled.display
        await user.press("L", "4")
        assert kept(user, path).levels.keys() == {"kineto", "nsys-sqlite"}


async def test_several_files_are_another_kind_than_one(path: Path, tmp_path: Path) -> None:
    keep(path, levels={"nsys-sqlite": KERNELS})
    other = tmp_path / "other.sqlite"
    other.write_bytes(NSYS.read_bytes())
    async with open_app(NSYS, more=[other], start=started(path)) as user:
        assert user.levels.startswith("rank,")


@pytest.mark.parametrize("levels", ["shapes,kernel", "python,kernel", "sass", "native"])
async def test_levels_that_the_trace_has_nothing_of_are_not_shown_and_that_is_said(
    path: Path, decode: Path, levels: str
) -> None:
    unfit = ShownLevels(tuple(levels.split(",")))
    keep(path, levels={"nsys-sqlite": unfit})
    async with open_app(decode, start=started(path)) as user:
        assert user.screen.shown.selection == USUAL
        assert "do not fit this trace" in user.read("status")
        assert kept(user, path).levels == {"nsys-sqlite": unfit}  # the next may have them


async def test_levels_that_show_nothing_with_a_filter_give_way(path: Path) -> None:
    keep(path, levels={"kineto": KERNELS})
    asked = replace(USUAL, where=(ShowStacks("train_step"),))
    async with open_app(TORCH, selection=asked, start=started(path)) as user:
        assert user.screen.shown.selection == asked
        assert user.app.failure is None


async def test_frames_of_frameworks_are_hidden_only_where_there_is_code(
    path: Path, decode: Path
) -> None:
    keep(path, hide_framework=True)
    async with open_app(decode, start=started(path)) as user:
        assert user.screen.shown.selection.where == ()


# Forgetting


async def test_all_is_forgotten_and_shown_as_usual_and_that_can_be_undone(path: Path) -> None:
    keep(path, **REMEMBERED, levels={"kineto": KERNELS, "fdump": KERNELS})
    async with open_app(TORCH, start=started(path)) as user:
        recalled = user.screen.shown.selection
        await user.screen.run_action("forget")
        await user.settle()
        assert kept(user, path) == Preferences()
        assert user.screen.shown.selection == USUAL
        assert user.app.theme == "flame-dark"
        assert user.screen.query_one("#details").display
        assert user.read("status").split("  ")[0].strip().startswith("forgotten: the theme, ")
        assert not user.screen.parts.recalled.display
        await user.press("z")
        assert user.screen.shown.selection == recalled


async def test_what_was_not_remembered_stays_when_all_is_forgotten(path: Path) -> None:
    keep(path, kernel_names="base", levels={"fdump": KERNELS})
    asked = replace(USUAL, levels=("nvtx", "kernel"), colours="category")
    async with open_app(TORCH, selection=asked, start=started(path)) as user:
        await user.screen.run_action("forget")
        await user.settle()
        assert user.screen.shown.selection == asked


async def test_a_click_on_the_chip_forgets(path: Path) -> None:
    keep(path, colours="category")
    async with open_app(TORCH, start=started(path)) as user:
        await user.pilot.click("#recalled", offset=(1, 0))
        await user.settle()
        assert kept(user, path) == Preferences()


async def test_where_nothing_is_remembered_that_is_said(path: Path) -> None:
    async with open_app(TORCH, start=started(path)) as user:
        await user.screen.run_action("forget")
        assert "nothing is remembered" in user.read("status")


# Copied command lines


@asynccontextmanager
async def copying(start: Start | None) -> Any:
    async with open_app(TORCH, start=start) as user:
        await user.press("C")
        yield user.app.clipboard


async def test_a_copied_line_does_not_depend_on_what_is_remembered(path: Path) -> None:
    async with copying(started(path)) as line:
        assert line.endswith(f"{TORCH} --state '{{}}'")
    async with copying(None) as line:
        assert line.endswith(str(TORCH))
