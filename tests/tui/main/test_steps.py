"""From anywhere in the app to one step: by the list of steps, in the table, on the timeline."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.core.projection.filters import Steps
from flame.tui.dialogs.steps import StepsDialog
from tests.support.paths import SAMPLES
from tests.support.writers.nsysfile import NsysFile
from tests.tui.conftest import User, open_app

TORCH = SAMPLES / "torch_small.pt.trace.json.gz"


@pytest.fixture
def counted(tmp_path: Path) -> Path:
    """Ranges `step 1` to `step 3` of 1 ms, in each of which a kernel was launched."""
    with NsysFile(tmp_path / "counted.sqlite") as trace:
        trace.gpu(0, "NVIDIA H100")
        for place in range(3):
            begin = 1_000_000 * place
            trace.nvtx(f"step {place + 1}", begin, begin + 1_000_000)
            trace.nvtx("forward", begin + 50_000, begin + 500_000)
            trace.api("cudaLaunchKernel", begin + 100_000, begin + 110_000, place + 1)
            trace.kernel("gemm", begin + 200_000, begin + 400_000, place + 1)
    return trace.path


def chosen(user: User) -> tuple[object, ...]:
    return user.screen.wanted.where


async def select(user: User, name: str) -> None:
    """Select the first frame called so."""
    view = user.screen.shown.view
    node = next(node for node in range(len(view.tree)) if view.tree.name(node) == name)
    user.screen.action_select(node)
    await user.rest()


# The list


async def test_one_step_takes_three_keys_and_one_takes_it_back() -> None:
    async with open_app(TORCH) as user:
        await user.press("p", "5", "enter")
        assert chosen(user) == (Steps.of([5]),)
        assert " × step 5" in user.read("chips")
        await user.press("z")
        assert chosen(user) == ()


async def test_the_slowest_step_takes_three_keys() -> None:
    async with open_app(TORCH) as user:
        await user.press("p", "s", "enter")
        assert chosen(user) == (Steps.of([5]),)


async def test_the_list_knows_the_filter_and_takes_it_away() -> None:
    async with open_app(TORCH) as user:
        await user.press("p", "space", "down", "down", "space", "enter")
        assert chosen(user) == (Steps(((3, 3), (5, 5))),)
        assert " × steps 3, 5" in user.read("chips")
        await user.press("p", "r")
        assert chosen(user) == ()


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_the_footer_says_so_where_there_are_steps(
    size: tuple[int, int], decode: Path
) -> None:
    async with open_app(TORCH, size) as user:
        await user.rest()
        assert " p steps " in user.read("keys")
    async with open_app(decode, size) as user:
        await user.rest()
        assert "steps" not in user.read("keys")
        await user.press("p")
        assert "no steps in this trace" in user.read("status")


async def test_the_root_says_how_long_steps_take() -> None:
    async with open_app(TORCH) as user:
        await user.rest()
        assert "steps 5, median 896 µs, slowest 5: 7.76 ms" in user.read("details")


# Enter on a step


async def test_enter_on_a_row_of_the_table_that_is_a_step_shows_it_alone(counted: Path) -> None:
    async with open_app(counted) as user:
        await select(user, "step 2")
        await user.press("tab", "tab")
        assert " enter this step " in user.read("keys")
        await user.press("enter")
        assert (chosen(user), user.screen.pane_name) == ((Steps.of([2]),), "top")
        await user.rest()
        assert " enter sandwich " in user.read("keys")
        await user.press("enter")
        assert user.screen.pane_name == "sandwich"


async def test_enter_on_a_row_of_all_steps_lists_them() -> None:
    async with open_app(TORCH) as user:
        await select(user, "ProfilerStep")
        await user.press("tab", "tab")
        assert " enter steps " in user.read("keys")
        await user.press("enter")
        assert isinstance(user.app.screen, StepsDialog)


async def test_enter_on_other_rows_shows_the_sandwich(counted: Path) -> None:
    async with open_app(counted) as user:
        await select(user, "forward")
        await user.press("tab", "tab")
        assert " enter sandwich " in user.read("keys")
        await user.press("enter")
        assert (chosen(user), user.screen.pane_name) == ((), "sandwich")


async def test_without_steps_enter_is_what_it_was(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("down", "tab", "tab", "enter")
        assert (chosen(user), user.screen.pane_name) == ((), "sandwich")


@pytest.mark.parametrize(("name", "number"), [("step 2", 2), ("step 3", 3)])
async def test_enter_on_a_step_of_the_timeline_shows_it_alone(
    counted: Path, name: str, number: int
) -> None:
    async with open_app(counted) as user:
        await select(user, name)
        await user.press("shift+tab", "shift+tab")
        await user.rest()
        assert " enter this step " in user.read("keys")
        await user.press("enter")
        assert (chosen(user), user.screen.pane_name) == ((Steps.of([number]),), "timeline")
        await user.rest()
        assert " enter zoom " in user.read("keys")


async def test_enter_on_others_of_the_timeline_zooms(counted: Path) -> None:
    async with open_app(counted) as user:
        await select(user, "gemm")
        await user.press("shift+tab", "shift+tab")
        await user.rest()
        assert " enter zoom " in user.read("keys")
        await user.press("enter")
        assert chosen(user) == ()
