"""Rows of joined frames in the app: drawn, opened, searched, clicked, handed over."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from flame.core.projection.filters import HideFramework
from flame.options.config import Config
from flame.options.selection import parse
from flame.options.state import decode
from flame.tui.views.icicle import Icicle
from tests.support.paths import SAMPLES
from tests.tui import traces
from tests.tui.conftest import USUAL, User, open_app

TORCH = SAMPLES / "torch_small.pt.trace.json.gz"


@pytest.fixture
def deep(tmp_path: Path) -> Path:
    """A kernel below a chain of 60 ranges, below a launch."""
    return traces.deep(tmp_path / "deep.sqlite")


def rows(user: User, name: str = "icicle") -> list[str]:
    """What each row begins with."""
    return [line.strip("▏").split("  ")[0] for line in user.read(name).splitlines() if line]


async def test_a_chain_is_one_row_and_the_kernel_is_on_the_first_screen(deep: Path) -> None:
    for size in ((80, 24), (120, 40), (200, 50)):
        async with open_app(deep, size) as user:
            lines = rows(user)
            assert (lines[0], lines[-1]) == ("all", "leaf")
            assert len(lines) == 4
            assert lines[2].startswith("level 0 › … ") and lines[2].endswith("level 59")


async def test_one_key_opens_the_chain_and_closes_it(deep: Path) -> None:
    async with open_app(deep, (80, 24)) as user:
        await user.press("down", "down")
        assert user.selected == "level 59"
        assert "one of 60 joined, E opens" in user.read("details")
        await user.press("E")
        assert "60 frames, a row each, E joins them" in user.read("status")
        assert "level 59" in rows(user) and "level 58" in rows(user)
        await user.press("E")
        assert len(rows(user)) == 4
        assert "60 frames in one row, E opens it" in user.read("status")


async def test_where_there_is_no_chain_the_key_opens_all_of_them(deep: Path) -> None:
    async with open_app(deep) as user:
        await user.press("E")
        assert "all chains open" in user.read("status")
        assert rows(user)[:4] == ["all", "cudaLaunchKernel", "level 0", "level 1"]
        await user.press("E")
        assert len(rows(user)) == 4
        assert "all chains closed" in user.read("status")


async def test_a_tree_without_chains_says_so(tmp_path: Path) -> None:
    async with open_app(traces.unlaunched(tmp_path / "alone.sqlite")) as user:
        await user.press("E")
        assert "no frames to join" in user.read("status")


async def test_opening_is_undone_and_redone(deep: Path) -> None:
    async with open_app(deep) as user:
        await user.press("down", "down", "E", "z")
        assert len(rows(user)) == 4
        await user.press("Z")
        assert len(rows(user)) > 4


async def test_a_match_inside_is_named_and_can_be_selected(deep: Path) -> None:
    async with open_app(deep) as user:
        await user.press("slash", *"level 3[05]", "enter")
        assert user.selected == "level 30"
        row = rows(user)[2]
        assert row.startswith("level 0 › … 29 frames › level 30 › …") and row.endswith("level 59")
        await user.press("n")
        assert user.selected == "level 35"
        assert "› level 35 ›" in rows(user)[2]
        assert "match 2 of 2" in user.read("status")
        await user.press("up")
        assert "› level 30 ›" in rows(user)[2]
        await user.press("escape")
        assert rows(user)[2] == rows(user)[2].replace("level 30", "")


async def test_a_click_selects_the_last_frame_and_a_double_click_zooms_to_the_row(
    deep: Path,
) -> None:
    async with open_app(deep) as user:
        icicle = user.screen.query_one("#icicle", Icicle)
        await user.pilot.hover(icicle, offset=(5, 2))
        await user.settle()
        assert "level 59" in user.read("status")
        await user.pilot.click(icicle, offset=(5, 2))
        await user.settle()
        assert user.selected == "level 59"
        await user.pilot.click(icicle, offset=(5, 2), times=2)
        await user.settle()
        assert user.zoomed == "level 0"
        assert len(rows(user)) == 2
        await user.press("u")
        assert user.zoomed == "cudaLaunchKernel"


async def test_path_and_stack_have_all_frames(deep: Path) -> None:
    async with open_app(deep) as user:
        await user.press("down", "down")
        assert "level 58 ▸ level 59" in user.read("crumbs")
        await user.press("Y")
        assert user.app.clipboard.split(";") == [
            "cudaLaunchKernel",
            *(f"level {level}" for level in range(60)),
        ]


async def test_a_narrow_cell_keeps_the_name_that_says_most() -> None:
    async with open_app(TORCH, (60, 24)) as user:
        assert "▏›Blo…▏" in user.read("icicle")


async def test_the_sandwich_joins_opens_and_undoes(deep: Path) -> None:
    async with open_app(deep) as user:
        await user.press("end", "x")
        assert closed_callers(user)
        await user.press("up")
        assert user.selected == "level 59"
        await user.press("E")
        assert rows(user, "callers")[-1] == "level 59"
        await user.press("z")
        assert closed_callers(user)
        await user.press("up")
        assert user.selected == "cudaLaunchKernel"
        await user.press("down", "enter")
        assert joined(rows(user, "callers")[-1])
        await user.press("down")
        assert user.selected == "leaf"
        await user.press("E")
        assert rows(user, "callers")[-1] == "level 59"


def joined(row: str) -> bool:
    """Whether ``row`` shows all callers of the kernel, the closest one first."""
    return row.startswith("level 59 › ") and row.endswith(" frames › level 0")


def closed_callers(user: User) -> bool:
    outer, inner = rows(user, "callers")
    return outer == "cudaLaunchKernel" and joined(inner)


async def test_a_sandwich_begins_with_all_chains_open_where_the_tree_has_them_so(
    deep: Path,
) -> None:
    async with open_app(deep) as user:
        await user.press("E", "end", "x")
        assert rows(user, "callers")[-1] == "level 59"


async def test_what_is_open_stays_open_in_another_projection(deep: Path) -> None:
    async with open_app(deep) as user:
        await user.press("down", "down", "E", "ctrl+n")
        assert user.screen.shown.metric.key == "exposed"
        assert "level 59" in rows(user)
        await user.press("E", "z")
        assert "level 59" in rows(user)


async def test_the_command_line_says_what_is_open(deep: Path) -> None:
    async with open_app(deep) as user:
        await user.press("down", "down", "E", "C")
        words = shlex.split(user.app.clipboard)
    state = decode(words[words.index("--state") + 1])
    assert state.chains == [(2, ["cudaLaunchKernel", *(f"level {level}" for level in range(60))])]


# Frames of frameworks


async def test_a_key_hides_the_frames_of_frameworks_and_a_chip_brings_them_back() -> None:
    async with open_app(TORCH) as user:
        names = {*user.screen.view.tree.text[1:]}
        assert "_call_impl" in names
        whole = int(user.screen.view.tree.total[0])
        await user.press("P")
        tree = user.screen.view.tree
        assert "_call_impl" not in {tree.name(one) for one in range(len(tree))}
        assert int(tree.total[0]) == whole
        assert "hide frames of frameworks" in user.read("chips")
        await user.press("C")
        words = shlex.split(user.app.clipboard)[3:]
        assert words == ["--hide-framework"]
        assert parse(words)[1].where == (HideFramework(),)
        await user.pilot.click("#chips", offset=(2, 0))
        await user.settle()
        assert not user.screen.wanted.where
        await user.press("P", "P")
        assert not user.screen.wanted.where
        await user.press("z")
        assert user.screen.wanted.where == (HideFramework(),)


async def test_the_configuration_says_which_frames_those_are() -> None:
    async with open_app(TORCH, config=Config(framework=["forward$", "^x:"])) as user:
        await user.press("P", "C")
        assert user.screen.wanted.where == (HideFramework("forward$|^x:"),)
        words = shlex.split(user.app.clipboard)[3:]
        assert parse(words)[1] == replace(USUAL, where=user.screen.wanted.where)
    async with open_app(TORCH, config=Config(framework=[])) as user:
        await user.press("P")
        assert "the configuration lists none" in user.read("status")


async def test_a_trace_without_code_says_so(deep: Path) -> None:
    async with open_app(deep) as user:
        await user.press("P")
        assert "no frames of Python or native code" in user.read("status")
        assert not user.screen.wanted.where
