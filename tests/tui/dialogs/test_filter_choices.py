"""Filters that are chosen from lists in their dialog, and what there is to choose."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.core.loading.many import load
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.projection.filters import (
    Devices,
    Filter,
    Include,
    MinShare,
    Pids,
    Steps,
    Streams,
    Tids,
)
from tests.tui import sources, traces
from tests.tui.dialog_stage import stage
from tests.tui.dialogs.filter_stage import dialog


@pytest.fixture(scope="module")
def stacks() -> Profile:
    return sources.stacks()


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    return sources.training(tmp_path_factory.mktemp("training") / "decode.sqlite")


# Choosing


@pytest.mark.parametrize(
    ("row", "rows", "one"),
    [
        ("device", ["GPU 0 H100 0", "GPU 1 H100 1"], Devices((0,))),
        ("stream", ["stream 7", "stream 13"], Streams((7,))),
        ("process", ["rank0 [100]", "rank1 [200]"], Pids((100,))),
        ("thread", ["worker [101] of rank0 [100]", "worker [201] of rank1 [200]"], Tids((101,))),
        ("kinds", ["kernel", "memcpy", "memset", "graph"], Include((Kind.KERNEL,))),
    ],
)
async def test_what_is_chosen_becomes_a_filter(
    profile: Profile, row: str, rows: list[str], one: Filter
) -> None:
    async with stage(dialog(profile)) as user:
        await user.click(f" {row}")
        shown = [line for line in user.read().splitlines() if "[ ]" in line]
        assert [line[6:].split("   ")[0] for line in shown] == rows
        await user.press("space", "enter", "enter")
        assert user.result == (one,)


async def test_what_is_chosen_twice_is_off_again(profile: Profile) -> None:
    async with stage(dialog(profile)) as user:
        await user.click("  device")
        await user.press("space")
        assert "[x] GPU 0" in user.read()
        await user.press("space")
        assert "[x]" not in user.read()
        await user.press("enter", "enter")
        assert user.result == ()


async def test_options_have_their_share_of_the_gpu_time(profile: Profile) -> None:
    async with stage(dialog(profile)) as user:
        await user.click("  device")
        assert user.line("GPU 0").split()[-4:] == ["60.0", "%", "300", "ns"]
        assert user.line("GPU 1").split()[-4:] == ["40.0", "%", "200", "ns"]


async def test_several_can_be_chosen_with_the_mouse(profile: Profile) -> None:
    async with stage(dialog(profile)) as user:
        await user.click("  kinds")
        await user.click("memset")
        await user.click("memcpy")
        await user.press("enter", "a")
        assert user.result == (Include((Kind.MEMCPY, Kind.MEMSET)),)


async def test_what_was_chosen_is_on_and_can_be_cleared(profile: Profile) -> None:
    async with stage(dialog(profile, Streams((13, 99)))) as user:
        await user.click("  stream")
        assert "[x] stream 13" in user.read() and "[ ] stream 7" in user.read()
        assert "not in this trace" in user.line("[x] stream 99")
        await user.press("r", "enter", "enter")
        assert user.result == ()


async def test_a_list_can_be_left_without_a_change(profile: Profile) -> None:
    async with stage(dialog(profile)) as user:
        await user.click("  device")
        await user.press("space", "escape")
        assert user.line("▸").startswith("▸ device             ·")
        await user.press("escape")
        assert user.result is None


def titles(shown: str) -> list[str]:
    """The kinds of filters that the list ``shown`` offers."""
    rows = [line.removeprefix("▸").strip() for line in shown.splitlines() if line.endswith("·")]
    return [row.removesuffix("·").strip() for row in rows]


ON_STACKS = ["only stacks with +", "without +", "from +", "hide +", "frameworks"]


async def test_a_trace_without_a_gpu_offers_no_filter_by_what_it_has_not(tmp_path: Path) -> None:
    bare = load(traces.host_only(tmp_path / "host.sqlite"))
    async with stage(dialog(bare)) as user:
        others = ["time", "NVTX range", "process", "thread", "minimum share"]
        assert titles(user.read()) == [*ON_STACKS, *others]


async def test_a_filter_that_cannot_apply_is_shown_where_it_is_set(tmp_path: Path) -> None:
    bare = load(traces.host_only(tmp_path / "host.sqlite"))
    async with stage(dialog(bare, Devices((3,)))) as user:
        await user.click("  device")
        assert "not in this trace" in user.line("device 3")
        await user.press("r", "enter", "a")
        assert user.result == ()


async def test_stacks_of_a_file_offer_what_can_be_said_of_them(stacks: Profile) -> None:
    async with stage(dialog(stacks, name="work", kind=Kind.FRAME)) as user:
        assert titles(user.read()) == [*ON_STACKS, "process", "thread", "minimum share"]
        await user.click("  thread")
        assert user.line("main [7]").split()[-3:] == ["75.0", "%", "30"]


async def test_operators_are_called_so_and_steps_are_offered(training: Profile) -> None:
    async with stage(dialog(training)) as user:
        assert "NVTX" not in user.read()
        assert titles(user.read())[5:8] == ["time", "steps", "operator"]
        await user.click("  operator")
        assert "below such an operator: NAME, * and ?" in user.read()
        await user.press("escape")
        await user.click("  steps")
        assert "3 of the PyTorch profiler" in user.read()
        await user.press("4", "space", "5", "space", "enter")
        assert user.line("steps  ").split()[-1] == "4–5"
        assert user.line("▸").startswith("▸  apply  1 filter")
        await user.press("enter")
        assert user.result == (Steps(((4, 5),)),)


async def test_the_list_of_steps_marks_those_chosen_and_may_take_them_all_away(
    training: Profile,
) -> None:
    async with stage(dialog(training, MinShare(1.0), Steps.of([4]))) as user:
        await user.click("  steps")
        assert "[x]    4" in user.line("▸")
        await user.press("escape")
        assert user.line("▸").split() == ["▸", "steps", "4"]
        await user.press("enter", "r")
        assert user.line("▸").startswith("▸  apply  1 filter")
        await user.press("enter")
        assert user.result == (MinShare(1.0),)


async def test_a_letter_goes_to_the_next_row_that_begins_with_it(profile: Profile) -> None:
    async with stage(dialog(profile)) as user:
        found = []
        for _ in range(3):
            await user.press("t")
            found.append(user.line("▸").split()[1])
        assert found == ["time", "thread", "time"]
        await user.press("r", "z")
        assert user.line("▸").split()[1] == "time"
