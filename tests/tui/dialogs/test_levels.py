"""Levels: switching, ordering, presets and folding, as data and in the dialog."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.analysis.wording import NVTX, OPERATORS
from flame.core.projection.levels import LEVELS
from flame.tui.dialogs.levels import PRESETS, Choice, LevelsChoice, LevelsDialog, offered, toggled
from flame.tui.session.wording import level_about
from flame.tui.shell.commands import LEVEL_KEYS
from tests.tui.dialog_stage import PENDING, stage

level_lists = st.lists(st.sampled_from(LEVELS), unique=True, min_size=1).map(tuple)

USUAL = ("python", "native", "nvtx", "kernel")
RECORDED = ("launch", "nvtx", "kernel", "device", "stream")


def dialog(levels: tuple[str, ...] = ("nvtx", "kernel"), fold: bool = False) -> LevelsDialog:
    return LevelsDialog(LevelsChoice(levels, fold), USUAL, RECORDED)


@pytest.mark.parametrize(
    ("levels", "level", "result"),
    [
        (("nvtx", "kernel"), "launch", ("launch", "nvtx", "kernel")),
        (("nvtx", "kernel"), "shapes", ("nvtx", "shapes", "kernel")),
        (("kernel", "nvtx"), "device", ("device", "kernel", "nvtx")),
        (("nvtx",), "kernel", ("nvtx", "kernel")),
        (("nvtx", "kernel"), "nvtx", ("kernel",)),
        (("kernel",), "kernel", ()),
    ],
)
def test_toggling_a_level(levels: tuple[str, ...], level: str, result: tuple[str, ...]) -> None:
    assert toggled(levels, level) == result


@given(level_lists, st.sampled_from(LEVELS))
def test_toggling_twice_keeps_the_set_and_the_order_of_the_others(
    levels: tuple[str, ...], level: str
) -> None:
    twice = toggled(toggled(levels, level), level)
    assert set(twice) == set(levels)
    assert [one for one in twice if one != level] == [one for one in levels if one != level]


def test_a_choice_lists_the_shown_levels_first() -> None:
    choice = Choice(("kernel", "nvtx"))
    assert choice.order[:4] == ["kernel", "nvtx", "rank", "process"]
    assert set(choice.order) == set(LEVELS)
    assert choice.result == ("kernel", "nvtx")


def test_a_level_is_moved_and_not_beyond_the_ends() -> None:
    choice = Choice(("launch", "nvtx", "kernel"))
    assert choice.shift(0, -1) == 0
    assert choice.order[0] == "launch"
    assert choice.shift(choice.shift(0, 1), 1) == 2
    assert choice.result == ("nvtx", "kernel", "launch")
    assert choice.shift(len(LEVELS) - 1, 1) == len(LEVELS) - 1


@given(level_lists, st.lists(st.tuples(st.integers(0, 9), st.sampled_from([-1, 0, 1]))))
def test_no_move_loses_a_level(levels: tuple[str, ...], moves: list[tuple[int, int]]) -> None:
    choice = Choice(levels)
    for place, step in moves:
        if step:
            assert 0 <= choice.shift(place, step) < len(LEVELS)
        else:
            choice.toggle(choice.order[place])
    assert sorted(choice.order) == sorted(LEVELS)


def test_every_level_has_a_key_and_an_explanation() -> None:
    assert set(LEVEL_KEYS) == set(LEVELS)
    assert len(set(LEVEL_KEYS.values())) == len(LEVELS)
    assert len({level_about(level, NVTX) for level in LEVELS}) == len(LEVELS)
    assert level_about("nvtx", NVTX) == "NVTX ranges open at the launch"
    assert level_about("nvtx", OPERATORS) == "operators and annotations open at the launch"


def test_only_levels_that_can_be_in_the_trace_are_offered() -> None:
    usual = tuple(level for level in LEVELS if level not in ("rank", "stack"))
    assert offered(("nvtx", "kernel"), ("nvtx", "kernel")) == usual
    assert offered(("nvtx",), ("rank", "nvtx")) == ("rank", *usual)
    assert offered(("stack",), ("stack", "thread")) == ("thread", "stack")
    assert offered(("stack", "kernel"), ("stack",)) == ("stack", "kernel")


async def test_stacks_of_a_file_have_no_levels_and_presets_of_a_trace() -> None:
    own = LevelsDialog(LevelsChoice(("stack",)), ("stack",), ("thread", "stack"))
    async with stage(own) as user:
        assert "the stack, as the file has it" in user.line("▸ F [x]  stack")
        assert "thread" in user.read() and "python" not in user.read()
        assert user.line("presets").split() == ["p", "presets", "usual"]
        await user.press("5")
        assert "this trace has no python frames" in user.read()
        await user.press("F", "2", "enter")
        assert user.result == LevelsChoice(("thread",))


def test_presets_are_made_of_levels() -> None:
    for _, choice in PRESETS:
        assert set(choice.levels) <= set(LEVELS)
    assert dict(PRESETS)["by layer"] == LevelsChoice(("nvtx", "kernel"), fold=True)


async def test_space_switches_and_enter_applies() -> None:
    async with stage(dialog()) as user:
        assert user.line("nvtx ").startswith("▸ 8 [x]  nvtx")
        await user.press("down", "space", "3", "space")
        assert user.line("kernel, copy").startswith("  0 [ ]")
        await user.press("3", "enter")
        assert user.result == LevelsChoice(("nvtx", "device"))


async def test_shift_moves_a_level_and_its_cursor() -> None:
    async with stage(dialog()) as user:
        await user.press("J")
        assert user.line("▸").startswith("▸ 8 [x]  nvtx")
        await user.press("shift+up", "shift+down", "k", "j", "enter")
        assert user.result == LevelsChoice(("kernel", "nvtx"))


async def test_f_folds_layers_and_so_does_the_last_row() -> None:
    async with stage(dialog()) as user:
        await user.press("f")
        assert "f [x]  fold" in user.line("fold")
        await user.press("pagedown", "pagedown", "space", "J")
        assert user.line("fold").startswith("▸ f [ ]  fold")
        await user.press("space", "enter")
        assert user.result == LevelsChoice(("nvtx", "kernel"), fold=True)


async def test_p_goes_through_the_presets_that_the_trace_can_show() -> None:
    async with stage(dialog(("launch",))) as user:
        seen = []
        for _ in range(5):
            await user.press("p")
            seen.append(user.dialog._chosen)  # type: ignore[attr-defined]
        by = dict(PRESETS)
        assert seen == [
            *(by["by layer"], by["by kernel"], by["by stream"], LevelsChoice(USUAL)),
            by["by layer"],
        ]
        await user.press("P", "enter")
        assert user.result == LevelsChoice(USUAL)


async def test_p_backwards_begins_with_the_last_preset() -> None:
    async with stage(dialog(("launch",))) as user:
        await user.press("P", "enter")
        assert user.result == LevelsChoice(USUAL)


async def test_a_preset_without_its_levels_says_what_is_missing() -> None:
    async with stage(dialog()) as user:
        await user.click("by shape")
        assert "by shape: this trace has no shapes frames" in user.read()
        await user.press("enter")
        assert user.result == LevelsChoice(("nvtx", "kernel"))


async def test_presets_and_levels_can_be_clicked() -> None:
    async with stage(dialog()) as user:
        await user.click("by stream")
        await user.click("launch ")
        await user.press("enter")
        assert user.result == LevelsChoice(("device", "stream", "kernel", "launch"))


async def test_u_goes_back_to_the_usual_levels() -> None:
    async with stage(dialog(("kernel",), fold=True)) as user:
        await user.press("u", "enter")
        assert user.result == LevelsChoice(USUAL)


async def test_levels_and_presets_of_samples_say_how_to_get_some() -> None:
    async with stage(dialog()) as user:
        assert "no PC samples: --ncu, or --pc of record and attach" in user.line("r [ ]")
        await user.click("by stall reason")
        assert "by stall reason: no PC samples: --ncu, or" in user.read()
        await user.press("enter")
        assert user.result == LevelsChoice(("nvtx", "kernel"))


async def test_presets_of_samples() -> None:
    recorded = (*RECORDED, "sass", "stall")
    own = LevelsDialog(LevelsChoice(("kernel",)), USUAL, recorded)
    async with stage(own) as user:
        await user.click("to the instruction")
        await user.press("r", "enter")
        assert user.result == LevelsChoice(("kernel", "sass"))


async def test_one_level_has_to_stay() -> None:
    async with stage(dialog(("kernel",))) as user:
        await user.press("0")
        assert "switch at least one level on" in user.read()
        await user.press("enter")
        assert user.result is PENDING
        await user.press("0")
        assert "switch at least one level on" not in user.read()


@pytest.mark.parametrize("key", ["escape", "q", "L"])
async def test_leaving_changes_nothing(key: str) -> None:
    async with stage(dialog()) as user:
        await user.press("space", key)
        assert user.result is None


async def test_a_click_beside_the_dialog_leaves_it() -> None:
    async with stage(dialog()) as user:
        await user.pilot.click(offset=(1, 1))
        await user.settle()
        assert user.result is None


async def test_on_a_small_screen_the_rows_follow_the_cursor() -> None:
    async with stage(dialog(), (60, 15)) as user:
        assert "↓" in user.read() and "↑ 0" not in user.read()
        assert "esc" not in user.line("presets")
        await user.press(*["down"] * 13)
        assert user.line("▸").startswith("▸ f [ ]  fold")
        assert user.read().startswith("Levels, from the root down")
        await user.click("stall ")
        assert user.line("▸").startswith("▸ r [x]  stall")
        await user.press("pageup")
        assert user.line("▸").startswith("▸ 1 [ ]  process")


async def test_the_wheel_moves_the_cursor() -> None:
    async with stage(dialog()) as user:
        user.dialog.on_mouse_scroll_down()
        user.dialog.on_mouse_scroll_down()
        user.dialog.on_mouse_scroll_up()
        await user.settle()
        assert user.line("▸").startswith("▸ 0 [x]  kernel")
