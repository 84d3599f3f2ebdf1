"""The list of steps: what it says of each, and how some of them are picked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from flame.core.loading.many import load
from flame.core.model.meta import ProfilerSteps
from flame.core.model.profile import Profile
from flame.core.projection.filters import Steps
from flame.tui.dialogs.steps import StepsDialog
from flame.tui.toolkit.lines import Line
from tests.support.paths import SAMPLES
from tests.support.profiles.recorded import Recorded
from tests.tui.dialog_stage import PENDING, Player, stage

MS = 1_000_000


def loop(durations: list[int], first: int = 1000) -> Profile:
    """Steps that take so many ms, from the number ``first`` on, each busy for the first ms."""
    trace, start = Recorded(), 0
    edges = np.cumsum([0, *durations]) * MS
    for place, start in enumerate(edges[:-1].tolist()):
        trace.call("cudaLaunchKernel", start, start + 10, corr=place + 1)
        trace.kernel("gemm", start, start + MS, corr=place + 1)
    zero = np.zeros(len(durations), np.int32)
    numbers = np.arange(first, first + len(durations))
    return replace(trace.profile(), steps=ProfilerSteps(numbers, zero, edges[:-1], edges[1:], zero))


@pytest.fixture(scope="module")
def ten() -> Profile:
    """Steps 1000 to 1009 of 10 ms, but 1004 of 13 and 1007 of 20."""
    return loop([10, 10, 10, 10, 13, 10, 10, 20, 10, 10])


def numbers(user: Player) -> list[str]:
    """The steps in sight, in their order."""
    lines = (line for line in user.read().splitlines() if "[ ]" in line or "[x]" in line)
    return [line.partition("] ")[2].split()[0] for line in lines]


def marked(user: Player) -> list[str]:
    lines = (line for line in user.read().splitlines() if "[x]" in line)
    return [line.partition("] ")[2].split()[0] for line in lines]


def current(user: Player) -> str:
    return user.line("▸").partition("] ")[2].split()[0]


# What is said


async def test_every_step_has_duration_gpu_time_and_how_busy_it_was(ten: Profile) -> None:
    async with stage(StepsDialog(ten)) as user:
        assert "Steps: 10 of the PyTorch profiler" in user.read()
        assert "median 10.0 ms, slowest 1007: 20.0 ms, 2.00 × the median" in user.read()
        assert "outside of them no GPU time" in user.read()
        assert user.line(" 1003 ").split()[3:] == ["10.0", "ms", "███", "1.00", "ms", "10.0", "%"]
        assert user.line(" 1004 ").split()[3:7] == ["13.0", "ms", "████", "1.3×"]
        assert user.line(" 1007 ").split()[3:7] == ["20.0", "ms", "██████", "2.0×"]


async def test_steps_that_are_ranges_say_what_these_say() -> None:
    async with stage(StepsDialog(load(SAMPLES / "decode_small.sqlite"))) as user:
        assert "Steps: 16, ranges such as execute" in user.read()
        assert user.line("▸").split()[4:6] == ["context,", "8"]


async def test_without_a_gpu_there_are_no_columns_for_one() -> None:
    profile = loop([10, 20])
    nothing = replace(profile, activities=Recorded().profile().activities)
    async with stage(StepsDialog(nothing)) as user:
        assert "busy" not in user.read() and "GPU time" not in user.read()
        assert user.line(" 1001 ").endswith("2.0×")


# Picking


async def test_enter_picks_the_selected_step(ten: Profile) -> None:
    async with stage(StepsDialog(ten)) as user:
        await user.press("down", "down", "enter")
        assert user.result == Steps.of([1002])


async def test_space_marks_several(ten: Profile) -> None:
    async with stage(StepsDialog(ten)) as user:
        await user.press("space", "down", "space", "end", "space", "up", "space", "space")
        assert marked(user) == ["1000", "1001", "1009"]
        assert "show  the 3 marked" in user.read()
        await user.press("enter")
        assert user.result == Steps(((1000, 1001), (1009, 1009)))


async def test_shift_marks_all_on_the_way_and_back_unmarks_them(ten: Profile) -> None:
    async with stage(StepsDialog(ten)) as user:
        await user.press("end", "space", "home", *["shift+down"] * 3, "shift+up")
        assert marked(user) == ["1000", "1001", "1002", "1009"]
        assert current(user) == "1002"
        await user.press("down", "down", "shift+up")
        assert marked(user) == ["1000", "1001", "1002", "1003", "1004", "1009"]


async def test_those_chosen_before_are_marked_and_r_shows_all_again(ten: Profile) -> None:
    async with stage(StepsDialog(ten, Steps(((1003, 1004),)))) as user:
        assert (marked(user), current(user)) == (["1003", "1004"], "1003")
        await user.press("r")
        assert user.result == Steps(())


async def test_another_step_takes_the_place_of_those_chosen_before(ten: Profile) -> None:
    async with stage(StepsDialog(ten, Steps(((1003, 1004),)))) as user:
        assert "show  the 2 marked" in user.read()
        await user.press("7")
        assert "show  this one" in user.read()
        await user.press("enter")
        assert user.result == Steps.of([1007])


async def test_marks_are_added_to_those_chosen_before(ten: Profile) -> None:
    async with stage(StepsDialog(ten, Steps(((1003, 1004),)))) as user:
        await user.press("7", "space", "9", "enter")
        assert user.result == Steps(((1003, 1004), (1007, 1007)))


@pytest.mark.parametrize("key", ["escape", "q", "p"])
async def test_leaving_changes_nothing(ten: Profile, key: str) -> None:
    async with stage(StepsDialog(ten)) as user:
        await user.press("space", key)
        assert user.result is None


async def test_a_click_marks_and_show_shows(ten: Profile) -> None:
    async with stage(StepsDialog(ten)) as user:
        await user.click(" 1005 ")
        assert (marked(user), user.result) == (["1005"], PENDING)
        await user.click(" show ")
        assert user.result == Steps.of([1005])


# Finding


async def test_s_puts_the_slowest_first_and_goes_there(ten: Profile) -> None:
    async with stage(StepsDialog(ten)) as user:
        await user.press("down", "s")
        assert numbers(user)[:4] == ["1007", "1004", "1000", "1001"]
        assert current(user) == "1007"
        await user.press("s")
        assert (numbers(user)[0], current(user)) == ("1000", "1007")
        await user.press("s", "enter")
        assert user.result == Steps.of([1007])


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("1006", "1006"),
        ("7", "1007"),
        ("100", "1000"),
        ("1", "1000"),
        ("006", "1006"),
    ],
)
async def test_digits_go_to_a_step(ten: Profile, typed: str, found: str) -> None:
    """Its number, or how that begins or ends."""
    async with stage(StepsDialog(ten)) as user:
        await user.press("down", *typed)
        assert current(user) == found
        await user.press("enter")
        assert user.result == Steps.of([int(found)])


async def test_digits_that_no_step_has_are_said_and_taken_back(ten: Profile) -> None:
    async with stage(StepsDialog(ten)) as user:
        await user.press("9", "9")
        assert (current(user), "no step has 99" in user.read()) == ("1009", True)
        await user.press("backspace")
        assert "no step has" not in user.read()
        await user.press("backspace", "5")
        assert current(user) == "1005"
        await user.press("up", "3")
        assert current(user) == "1003"


# Many of them


async def test_of_many_only_those_in_sight_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    dialog, drawn = StepsDialog(loop([5] * 2_000, first=0)), list[int]()
    row = dialog._drawn.row

    def counted(place: int, selected: bool, marked: bool, width: int) -> Line:
        drawn.append(place)
        return row(place, selected, marked, width)

    monkeypatch.setattr(dialog._drawn, "row", counted)
    async with stage(dialog, (80, 24)) as user:
        assert len(numbers(user)) >= 8
        page = len(numbers(user))
        for key, here in (("end", 1_999), ("up", 1_998), ("home", 0), ("pagedown", page)):
            drawn.clear()
            await user.press(key)
            assert current(user) == str(here)
            assert 0 < len(drawn) < 100
        await user.press(*"1234")
        assert current(user) == "1234" and "1,235 of 2,000" in user.read()
        await user.press("enter")
        assert user.result == Steps.of([1234])


@pytest.mark.parametrize("size", [(80, 24), (60, 15), (200, 50)])
async def test_the_list_fits_every_screen(ten: Profile, size: tuple[int, int]) -> None:
    async with stage(StepsDialog(ten), size) as user:
        for here in range(1000, 1009):
            assert (current(user), str(here) in numbers(user)) == (str(here), True)
            await user.press("down")
        assert current(user) == "1009"
        assert "enter show" in user.read()
