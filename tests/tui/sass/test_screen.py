"""The view of instructions, driven as a user would: keys, the mouse, sizes and themes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from textual import events
from textual.pilot import Pilot
from textual.widgets import Input

from flame.core.model.profile import Profile
from flame.core.projection.selection import Selection
from flame.options.config import Config
from flame.tui.main.screen import MainScreen
from flame.tui.sass.rows import SassRows
from flame.tui.sass.screen import SassScreen
from flame.tui.toolkit.themes import NAMES
from tests.support.tiers import deep_except
from tests.tui.conftest import User, main_screen
from tests.tui.sampled import HOTTEST, SECOND, MadeApp, open_made, sampled, view_of

# The way there and back


async def test_a_opens_the_kernel_of_what_is_selected(profile: Profile) -> None:
    async with open_made(profile) as user:
        await user.press("a")
        head = user.read("sass-head")
        assert "gemm" in head and "GPU time 280 µs · 104 samples" in head
        assert "the heaviest of 2 kernels here · all call sites" in head
        await user.press("q", *["down"] * 5, "right", "a")
        assert "the heaviest" not in user.read("sass-head")


async def test_back_where_one_was(profile: Profile) -> None:
    async with open_made(profile) as user:
        await user.press(*["down"] * 4)
        selected = user.selected
        await user.press("a", "j", "j", "q")
        assert isinstance(user.app.screen, MainScreen)
        assert user.selected == selected
        await user.press("a", "escape")
        assert isinstance(user.app.screen, MainScreen)


async def test_enter_on_an_instruction_opens_it_there(profile: Profile) -> None:
    async with open_made(profile, selection=Selection(levels=("kernel", "sass"))) as user:
        await user.press("down", "down")
        assert user.selected == f"+0x0060 {HOTTEST}"
        await user.press("right", "enter")
        view = view_of(user)
        assert view._listing.text(view._row) == SECOND


async def test_a_double_click_on_an_instruction_opens_it(profile: Profile) -> None:
    async with open_made(profile, selection=Selection(levels=("kernel", "sass"))) as user:
        icicle = user.screen.query_one("#icicle").region
        driver = user.app._driver
        assert driver is not None
        for kind in (events.MouseDown, events.MouseUp) * 2:
            x, y = icicle.x + 5, icicle.y + 2
            driver.process_message(kind(None, x, y, 0, 0, 1, False, False, False, x, y))
        await user.settle()
        assert view_of(user)._listing.text(view_of(user)._row) == HOTTEST


async def test_frames_above_instructions_still_zoom(profile: Profile) -> None:
    async with open_made(profile) as user:
        await user.press("down", "down", "down", "enter")
        assert user.zoomed == "model.layers.0"


async def test_from_the_table_and_the_sandwich(profile: Profile) -> None:
    async with open_made(profile) as user:
        await user.press("tab", "tab", "slash", *"_kernel$", "enter", "n")
        assert user.selected == "flash_fwd_kernel"
        await user.press("a")
        assert "flash_fwd_kernel" in user.read("sass-head")
        await user.press("q", "x", "a")
        assert "flash_fwd_kernel" in user.read("sass-head")


async def test_without_samples_it_says_how_to_get_some(decode: Path) -> None:
    from tests.tui.conftest import open_app

    async with open_app(decode) as user:
        await user.press("a")
        assert isinstance(user.app.screen, MainScreen)
        assert "--ncu" in user.read("status")
        await user.press("I")
        assert "no PC samples: --ncu, or --pc" in user.read("status")


# What is on it


async def test_the_listing_and_the_reasons_of_what_is_selected(profile: Profile) -> None:
    async with open_made(profile) as user:
        await user.press("a")
        rows, reasons = user.read("sass-rows"), user.read("sass-reasons")
        assert "0x0060          69   66.3 %" in rows
        assert "gemm.cu:5  value.x *= value.y;" in rows
        assert "87.0 %" in reasons and "Long Scoreboard" in reasons
        assert "data from global, local or" in reasons
        assert "hottest 1 of 8 sampled · 13 instructions" in user.read("status")


async def test_a_source_line_has_the_reasons_of_its_instructions(profile: Profile) -> None:
    async with open_made(profile) as user:
        await user.press("a", "home", "down", "down")
        assert user.read("sass-reasons").startswith("int i = blockIdx.x")
        await user.press("y")
        assert user.app.clipboard.split()[:3] == ["6", "5.8", "%"]


async def test_numbers_and_shares(profile: Profile) -> None:
    async with open_made(profile) as user:
        await user.press("a", "m")
        assert "GPU time" in user.read("sass-columns")
        assert "0x0060      186 µs   66.3 %" in user.read("sass-rows")
        await user.press("m")
        assert "0x0060      66.3 % █" in user.read("sass-rows")


async def test_what_has_no_samples_is_folded_and_unfolded(profile: Profile) -> None:
    async with open_made(profile) as user:
        await user.press("a", "f")
        rows = user.read("sass-rows")
        assert "3 instructions without samples" in rows and "NOP" not in rows
        await user.press("f")
        assert "NOP" in user.read("sass-rows")


async def test_the_place_stays_when_rows_come_and_go(profile: Profile) -> None:
    async with open_made(profile) as user:
        await user.press("a", "h")
        for key in ("s", "f", "s", "f"):
            await user.press(key)
            assert view_of(user)._listing.text(view_of(user)._row) == SECOND


async def test_the_codes_of_a_kernel(profile: Profile) -> None:
    async with open_made(profile) as user:
        await user.press("slash", *"flash_fwd", "enter", "a")
        assert "version 1 of 2, 82.8 % of the samples" in user.read("sass-head")
        await user.press("s")
        assert "compile with -lineinfo" in user.read("status")
        await user.press("right_square_bracket")
        assert "version 2 of 2, 17.2 % of the samples" in user.read("sass-head")
        assert "flash_fwd_kernel+0x90" in user.read("sass-rows")
        assert "not the instructions there" in user.read("status")
        await user.press("right_square_bracket")
        assert "version 1 of 2" in user.read("sass-head")


async def test_whose_samples_they_are(tmp_path: Path) -> None:
    async with open_made(sampled(tmp_path / "exact.sqlite", exact=True)) as user:
        await user.press("a")
        assert "2 launch sites" in user.read("sass-head")
        await user.press("q", *["down"] * 5, "a")
        assert "this launch site" in user.read("sass-head")


# Searching


async def test_a_search_counts_marks_and_walks(profile: Profile) -> None:
    async with open_made(profile) as user:
        await user.press("a", "slash", *"imad")
        assert "3 rows match" in user.read("status")
        await user.press("enter")
        assert "3 rows match · match 3" in user.read("status")
        await user.press("n")
        assert "match 1" in user.read("status")
        await user.press("N", "N")
        assert "match 2" in user.read("status")
        await user.press("escape")
        assert "match" not in user.read("status")
        assert isinstance(user.app.screen, SassScreen), "esc leaves the search first"


async def test_a_search_that_is_wrong_or_finds_nothing(profile: Profile) -> None:
    async with open_made(profile) as user:
        await user.press("a", "n")
        assert "no search yet" in user.read("status")
        await user.press("slash", "(")
        assert "not a regular expression" in user.read("status")
        assert view_of(user)._finder.matches.size == 0
        await user.press("escape", "slash", *"xyz", "enter", "n")
        assert "nothing here matches" in user.read("status")


async def test_leaving_the_box_brings_the_search_before_back(profile: Profile) -> None:
    async with open_made(profile) as user:
        await user.press("a", "slash", *"imad", "enter", "slash", *"x", "escape")
        assert view_of(user).query_one(Input).value == "imad"
        assert "3 rows match" in user.read("status")


# Mouse, sizes, themes


async def test_a_click_selects_and_the_wheel_scrolls(profile: Profile) -> None:
    async with open_made(profile, size=(100, 15)) as user:
        await user.press("a", "g")
        rows = user.app.screen.query_one(SassRows)
        await user.pilot.click(SassRows, offset=(30, 3))
        await user.settle()
        assert view_of(user)._cursor == 3
        rows.post_message(events.MouseScrollDown(None, 5, 5, 0, 0, 0, False, False, False, 5, 5))
        await user.settle()
        assert rows.scroll_offset.y > 0
        assert view_of(user)._cursor == 3


async def test_a_click_on_the_details_opens_it(profile: Profile) -> None:
    async with open_made(profile) as user:
        await user.press("slash", *"flash_fwd", "enter")
        await user.rest()
        details = user.app.screen.query_one("#details")
        lines = user.read("details").splitlines()
        row, text = next(one for one in enumerate(lines) if "a: all instructions" in one[1])
        await user.pilot.click("#details", offset=(text.index("a: all") + 1, row))
        await user.settle()
        assert details is not None and "flash_fwd" in user.read("sass-head")


async def test_a_reason_of_one_instruction_counts_no_others(profile: Profile) -> None:
    async with open_made(profile) as user:
        await user.press("end")
        await user.rest()
        assert re.search(r"one instruction.*\n.*100.0 % .*\+0x0060 FMUL R8", user.read("details"))
        await user.press("up", "up")
        await user.rest()
        assert "hottest of 8 instructions" in user.read("details")


@pytest.mark.parametrize(
    "size",
    deep_except([(60, 15), (250, 70)], [(60, 15), (80, 24), (99, 30), (120, 40), (250, 70)]),
)
async def test_sizes(profile: Profile, size: tuple[int, int]) -> None:
    async with open_made(profile, size=size) as user:
        await user.press("a")
        await user.until(lambda: HOTTEST in user.read("sass-rows"))
        if size == (60, 15):
            assert "Long Scoreboard 87.0 %" in user.read("status")
        else:
            await user.until(lambda: "Long Scoreboard" in user.read("sass-reasons"))


async def test_too_small_and_large_again(profile: Profile) -> None:
    async with open_made(profile) as user:
        await user.press("a")
        await user.pilot.resize_terminal(40, 10)
        await user.settle()
        assert "needs 60 × 15" in user.read("small")
        await user.pilot.resize_terminal(120, 40)
        await user.settle()
        assert HOTTEST in user.read("sass-rows")


async def test_without_colours_classes_are_told_by_shades(
    profile: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with open_made(profile) as user:
        await user.press("a", "h")
        assert "█" in user.read("sass-rows")
        assert "■" not in user.read("sass-reasons"), "a mark alone would say nothing"


async def test_the_palette_has_its_commands(profile: Profile) -> None:
    async with open_made(profile) as user:
        await user.press("a", "ctrl+p", *"fold", "down", "enter")
        await user.settle()
        assert view_of(user)._folded


async def test_keys_can_be_remapped(profile: Profile) -> None:
    config = Config(keys={"hottest_next": "w", "next_match": "ctrl+t"})
    async with open_made(profile, config=config) as user:
        await user.press("a", "w")
        assert view_of(user)._listing.text(view_of(user)._row) == SECOND
        assert " w hottest" in user.read("keys")


# Pictures

SCENES = {
    "view": ("a",),
    "searched": ("a", "slash", *"imad", "enter"),
    "folded": ("a", "f", "s", "m"),
    "details": ("slash", *"gemm", "enter", "n"),
}
SIZES = ((80, 24), (120, 40), (250, 70))
THEMED = ("flame-light", "flame-contrast", "flame-ansi")


def taken(
    profile: Profile, compare: Callable[..., bool], scene: str, size: tuple[int, int], theme: str
) -> bool:
    """Whether ``scene`` looks as it did when its picture was taken."""

    async def play(pilot: Pilot[None]) -> None:
        assert isinstance(pilot.app, MadeApp)
        user = User(pilot.app, pilot)
        await user.until(lambda: main_screen(user.app))
        await user.press(*SCENES[scene])
        await user.rest()

    app = MadeApp(profile, Selection(), Config(theme=theme))
    return compare(app, terminal_size=size, run_before=play)


@pytest.mark.parametrize("size", deep_except(SIZES[1:2], SIZES), ids=lambda size: str(size[0]))
@pytest.mark.parametrize("scene", SCENES)
def test_scene(
    profile: Profile, snap_compare: Callable[..., bool], scene: str, size: tuple[int, int]
) -> None:
    assert taken(profile, snap_compare, scene, size, "flame-dark")


@pytest.mark.parametrize("theme", deep_except(THEMED[:1], THEMED))
def test_theme(profile: Profile, snap_compare: Callable[..., bool], theme: str) -> None:
    assert theme in NAMES
    assert taken(profile, snap_compare, "view", (120, 40), theme)
