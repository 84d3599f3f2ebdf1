"""Levels: arrangements, switching, ordering and folding, as data and in the dialog."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.analysis.words.formats import NVTX, OPERATORS, reworded
from flame.core.projection.levels import LEVELS
from flame.core.projection.named_levels import ARRANGEMENT_KEYS, NAMED_LEVELS
from flame.tui.dialogs.levels import Choice, LevelsChoice, LevelsDialog, offered, toggled
from flame.tui.session.wording import level_about
from flame.tui.shell.commands import LEVEL_KEYS
from tests.tui.dialog_stage import PENDING, stage

level_lists = st.lists(st.sampled_from(LEVELS), unique=True, min_size=1).map(tuple)

USUAL = ("python", "native", "nvtx", "kernel")
RECORDED = ("launch", "nvtx", "kernel", "device", "stream")


def dialog(
    levels: tuple[str, ...] = ("nvtx", "kernel"), fold: bool = False, linked: bool = False
) -> LevelsDialog:
    return LevelsDialog(LevelsChoice(levels, fold), USUAL, RECORDED, linked=linked)


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
    assert choice.order[:4] == ["kernel", "nvtx", "rank", "cause"]
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
    # Only summaries of ranks have `wait`: W. For pools of memory no letter is left.
    assert set(LEVEL_KEYS) == set(LEVELS) - {"wait", "pool"}
    assert len(set(LEVEL_KEYS.values())) == len(LEVEL_KEYS)
    assert len({level_about(level, NVTX) for level in LEVELS}) == len(LEVELS)
    assert level_about("nvtx", NVTX) == "NVTX ranges open at the launch"
    assert level_about("nvtx", OPERATORS) == "operators open at the launch: --levels nvtx"


def test_only_levels_that_can_be_in_the_trace_are_offered() -> None:
    usual = tuple(
        level for level in LEVELS if level not in ("rank", "cause", "pool", "stack", "wait")
    )
    assert offered(("nvtx", "kernel"), ("nvtx", "kernel")) == usual
    assert offered(("nvtx",), ("rank", "nvtx")) == ("rank", *usual)
    assert offered(("stack",), ("stack", "thread")) == ("thread", "stack")
    assert offered(("stack", "kernel"), ("stack",)) == ("stack", "kernel")


async def test_stacks_of_a_file_have_no_levels_and_arrangements_of_a_trace() -> None:
    own = LevelsDialog(LevelsChoice(("stack",)), ("stack",), ("thread", "stack"))
    async with stage(own) as user:
        assert "the stack, as the file has it" in user.line("[x]  stack")
        assert "thread" in user.read() and "nested" not in user.read()
        assert user.line("unified").startswith("▸ 1  unified")
        assert "· 1 at once ·" in user.read()
        await user.press("2", "down", "down", "space", "up", "space", "enter")
        assert user.result == LevelsChoice(("thread",))


def test_the_dialog_has_a_key_for_every_arrangement() -> None:
    names, keys = {named.name for named in NAMED_LEVELS}, {*ARRANGEMENT_KEYS}
    assert len(NAMED_LEVELS) == len(names) == len(keys) == len(ARRANGEMENT_KEYS)


@pytest.mark.parametrize(
    ("digit", "choice"),
    [
        ("1", LevelsChoice(USUAL)),
        ("2", LevelsChoice(("nested", "launch", "kernel"))),
        ("4", LevelsChoice(("nvtx", "kernel"), fold=True)),
        ("5", LevelsChoice(("kernel",))),
        ("8", LevelsChoice(("device", "stream", "kernel"))),
        ("p", LevelsChoice(("phase", "kernel"))),
    ],
)
async def test_a_key_shows_an_arrangement_at_once(digit: str, choice: LevelsChoice) -> None:
    own = LevelsDialog(LevelsChoice(("launch",)), USUAL, (*RECORDED, "nested", "phase"))
    async with stage(own) as user:
        await user.press(digit)
        assert user.result == choice


@pytest.mark.parametrize(
    ("digit", "says"),
    [
        ("3", "modules: no modules: with_stack=True (PyTorch) records some"),
        ("6", "functions: this trace has no python and no native frames"),
        ("7", "shapes: this trace has no shapes frames"),
        ("9", "stalls: no PC samples: --ncu, or"),
    ],
)
async def test_an_arrangement_without_its_levels_says_what_is_missing(
    digit: str, says: str
) -> None:
    async with stage(dialog()) as user:
        name, _, reason = says.partition(": ")
        assert reason in user.line(f"{digit}  {name}")
        await user.press(digit)
        assert says in user.read() and user.result is PENDING
        await user.press("escape")
        assert user.result is None


async def test_every_row_of_an_arrangement_explains_it() -> None:
    others = ("nested", "module", "python", "shapes", "sass", "stall", "phase")
    recorded = (*RECORDED, *others)
    own = LevelsDialog(LevelsChoice(("launch",)), USUAL, recorded)
    async with stage(own) as user:
        for digit, named in zip(ARRANGEMENT_KEYS, NAMED_LEVELS, strict=True):
            line = user.line(f"{digit}  {named.name} ")
            assert reworded(named.about, NVTX) in line


async def test_the_cursor_begins_at_what_is_shown() -> None:
    async with stage(dialog(("nvtx", "kernel"), fold=True)) as user:
        assert user.line("▸").startswith("▸ 4  layers")
        await user.press("down", "enter")
        assert user.result == LevelsChoice(("kernel",))
    async with stage(dialog()) as user:
        assert user.line("▸").startswith("▸   [x]  nvtx")


async def test_enter_on_an_arrangement_that_is_missing_shows_nothing() -> None:
    async with stage(dialog(USUAL)) as user:
        await user.press("down", "down", "enter")
        assert "modules: no modules" in user.read() and user.result is PENDING


async def test_space_switches_and_enter_applies() -> None:
    async with stage(dialog()) as user:
        await user.press("down", "space", "up", "space", "space", "enter")
        assert user.result == LevelsChoice(("nvtx",))


async def test_shift_moves_a_level_and_its_cursor() -> None:
    async with stage(dialog()) as user:
        await user.press("J")
        assert user.line("▸").startswith("▸   [x]  nvtx")
        await user.press("shift+up", "shift+down", "k", "j", "enter")
        assert user.result == LevelsChoice(("kernel", "nvtx"))


async def test_shift_moves_no_arrangement() -> None:
    async with stage(dialog(USUAL)) as user:
        await user.press("J", "K", "enter")
        assert user.result == LevelsChoice(USUAL)


async def test_f_folds_layers_and_so_does_its_row() -> None:
    async with stage(dialog()) as user:
        await user.press("f")
        assert user.line("[x]  fold").startswith("▸ f [x]  fold")
        await user.press("space", "J", "space", "enter")
        assert user.result == LevelsChoice(("nvtx", "kernel"), fold=True)


async def test_folding_an_arrangement_keeps_it() -> None:
    async with stage(dialog(USUAL)) as user:
        await user.press("f", "enter")
        assert user.result == LevelsChoice(USUAL, fold=True)


async def test_b_switches_forward_operators() -> None:
    async with stage(dialog(linked=True)) as user:
        assert "b [x]  forward" in user.line("forward ")
        await user.press("b")
        assert user.line("[ ]  forward").startswith("▸ b [ ]  forward")
        await user.press("enter")
        assert user.result == LevelsChoice(("nvtx", "kernel"), forward=False)


async def test_without_links_there_is_nothing_to_switch() -> None:
    async with stage(dialog()) as user:
        assert "b [ ]  forward" in user.line("forward ")
        await user.press("b")
        assert "no links from backward to forward operators" in user.read()
        await user.press("enter")
        assert user.result == LevelsChoice(("nvtx", "kernel"))


async def test_arrangements_and_levels_can_be_clicked() -> None:
    async with stage(dialog()) as user:
        await user.click("streams ")
        await user.click("launch  ")
        await user.press("enter")
        assert user.result == LevelsChoice(("device", "stream", "kernel", "launch"))


async def test_u_goes_back_to_the_usual_levels() -> None:
    async with stage(dialog(("kernel",), fold=True)) as user:
        await user.press("u", "enter")
        assert user.result == LevelsChoice(USUAL)


async def test_levels_of_samples_say_how_to_get_some() -> None:
    async with stage(dialog()) as user:
        assert "no PC samples: --ncu, or --pc of record and attach" in user.line("[ ]  stall")


async def test_arrangements_of_samples() -> None:
    recorded = (*RECORDED, "sass", "stall")
    async with stage(LevelsDialog(LevelsChoice(("kernel",)), USUAL, recorded)) as user:
        await user.press("0")
        assert user.result == LevelsChoice(("kernel", "sass", "stall"))


async def test_one_level_has_to_stay() -> None:
    async with stage(dialog(("launch",))) as user:
        await user.press("space")
        assert "switch at least one level on" in user.read()
        await user.press("enter")
        assert user.result is PENDING
        await user.press("space")
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
        assert user.line("▸").startswith("▸   [x]  nvtx")
        await user.press("f")
        assert user.line("▸").startswith("▸ f [x]  fold")
        assert user.read().startswith("Arrangements, and levels from the root down")
        await user.click("stall ")
        assert user.line("▸").startswith("▸   [x]  stall")
        await user.press("pageup", "pageup", "pageup")
        assert user.line("▸").startswith("▸ 1  unified")
        await user.press("end")
        assert user.line("▸").startswith("▸ b [ ]  forward")
        await user.press("g")
        assert user.line("▸").startswith("▸ 1  unified")


async def test_the_wheel_scrolls_and_the_next_key_comes_back_to_the_cursor() -> None:
    async with stage(dialog(("launch",)), (60, 15)) as user:
        await user.press("home")
        user.dialog.row_list.scroll_down(animate=False)
        user.dialog.row_list.scroll_down(animate=False)
        await user.settle()
        assert "▸" not in user.read()
        await user.press("down")
        assert user.line("▸").startswith("▸ 2  nested")


async def test_moving_the_mouse_over_rows_changes_none() -> None:
    async with stage(dialog()) as user:
        before = user.read()
        await user.pilot.hover("#dialog", offset=(5, 5))
        await user.settle()
        assert user.read() == before
        assert user.line("▸").startswith("▸   [x]  nvtx")


async def test_a_memory_snapshot_has_no_levels_and_arrangements_of_a_trace() -> None:
    recorded = ("device", "pool", "stream", "python")
    own = LevelsDialog(LevelsChoice(("python",)), ("python",), recorded, whole=True)
    async with stage(own) as user:
        rows = user.read().splitlines()
        levels = [row.split("]")[1].split()[0] for row in rows if "] " in row]
        assert levels == ["python", "device", "pool", "stream", "fold", "forward"]
        assert not any("instructions" in row or "kernels" in row for row in rows)
