"""Moving, zooming and searching, with keys and mouse, as a user would."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from textual import events
from textual.widgets import Input

from flame.tui.toolkit.dialog.page import Page
from flame.tui.toolkit.lines import Lines
from flame.tui.views.icicle import Icicle
from tests.tui import traces
from tests.tui.conftest import User, open_app

# Moving


async def test_arrows_and_letters_move(decode: Path) -> None:
    async with open_app(decode) as user:
        for down, up, right, left in (("down", "up", "right", "left"), ("j", "k", "l", "h")):
            await user.press(down, down)
            assert user.selected == "generate"
            await user.press(down)
            assert user.selected == "model.layers.0"
            await user.press(right)
            assert user.selected == "model.layers.1"
            await user.press(left, up, up, up)
            assert user.selected == "all"


async def test_home_returns_to_the_zoomed_frame(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("down", "down", "home")
        assert user.selected == "all"
        await user.press("down", "g")
        assert user.selected == "all"


async def test_the_way_to_the_selected_frame_is_shown(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("down", "down", "down")
        assert user.read("tabs") == " Icicle  Sandwich  Top  Timeline  Report"
        assert user.read("crumbs") == " all ▸ cudaLaunchKernel ▸ generate ▸ model.layers.0"
        kind, name = user.read("details").splitlines()[:2]
        assert (kind.split()[0], name.split()[0]) == ("nvtx", "model.layers.0")
        assert user.read("status") == " model.layers.0  200 µs · 43.9 % of all · 2×"


async def test_a_deep_tree_scrolls_with_the_selection_and_by_page(tmp_path: Path) -> None:
    async with open_app(traces.deep(tmp_path / "deep.sqlite"), (80, 24)) as user:
        icicle = user.screen.query_one(Icicle)
        assert icicle.scroll_offset.y == 0
        user.open_chains()
        await user.settle()
        await user.press(*["down"] * 40)
        assert user.selected == "level 38"
        assert "level 38" in user.read("icicle")
        top = icicle.scroll_offset.y
        await user.press("pageup")
        assert icicle.scroll_offset.y == top - icicle.size.height
        await user.press("pagedown")
        assert icicle.scroll_offset.y == top
        await user.press("home")
        assert icicle.scroll_offset.y == 0


# Zooming


async def test_enter_zooms_u_goes_out_esc_resets_z_undoes(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("down", "down", "down", "enter")
        assert user.zoomed == "model.layers.0"
        assert user.read("icicle").splitlines()[0].startswith("▏model.layers.0  100.0 %")
        await user.press("u")
        assert user.zoomed == "generate"
        await user.press("backspace")
        assert user.zoomed == "cudaLaunchKernel"
        await user.press("escape")
        assert user.zoomed == "all"
        await user.press("z")
        assert user.zoomed == "cudaLaunchKernel"
        await user.press("z", "z")
        assert user.zoomed == "model.layers.0"
        await user.press("z", "z")
        assert user.zoomed == "all"
        assert user.read("status") == " nothing to undo"


async def test_up_at_the_top_of_the_zoomed_part_tells_how_to_go_on(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("down", "down", "enter", "up")
        assert user.read("status") == " u zooms out"


async def test_narrow_frames_are_one_run_that_enter_opens(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("down", "down", "down", "right", "right", "down", "right")
        assert user.selected.startswith("tiny_")
        assert re.search(r"one of \d\d narrow", user.read("details"))
        await user.press("enter")
        assert user.zoomed == "sampler"
        assert "a part of it" in user.read("crumbs")
        first = user.selected
        await user.press("right")
        assert user.selected.startswith("tiny_") and user.selected != first
        await user.press("left")
        assert user.selected == first
        await user.press("u")
        assert "a part of it" not in user.read("crumbs")


# The mouse


def cell(user: User, name: str) -> tuple[int, int]:
    """Where in the icicle the frame called ``name`` is drawn."""
    view = user.screen.view
    node = next(n for n in range(len(view.tree)) if view.tree.name(n) == name)
    item = view.viewport.item_of(node)
    assert item is not None
    return item.left + 1, int(view.tree.depth[node]) - view.viewport.top


async def test_a_click_selects_and_a_double_click_zooms(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.pilot.click("#icicle", offset=cell(user, "model.layers.1"))
        await user.settle()
        assert (user.selected, user.zoomed) == ("model.layers.1", "all")
        await user.pilot.click("#icicle", offset=cell(user, "model.layers.1.mlp"), times=2)
        await user.settle()
        assert user.zoomed == "model.layers.1.mlp"


async def test_a_click_beside_all_frames_does_nothing(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.pilot.click("#icicle", offset=(5, 20))
        await user.settle()
        assert user.selected == "all"


async def test_a_click_on_the_breadcrumb_zooms_there(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("down", "down", "down", "enter")
        place = user.read("crumbs").index("generate")
        await user.pilot.click("#crumbs", offset=(place, 0))
        await user.settle()
        assert user.zoomed == "generate"


async def test_a_click_on_a_child_in_the_details_selects_it(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("down")
        await user.until(lambda: "heaviest below" in user.read("details"))
        await user.until(lambda: not user.screen.parts.details.busy)
        await user.settle()
        lines = user.read("details").splitlines()
        row = next(y for y, line in enumerate(lines) if line.endswith("generate"))
        await user.pilot.click("#details", offset=(lines[row].index("generate") + 2, row))
        await user.settle()
        assert user.selected == "generate"


async def test_a_click_on_a_key_in_the_footer_runs_it(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.pilot.click("#keys", offset=(user.read("keys").index("help"), 0))
        await user.settle()
        assert isinstance(user.app.screen, Page)


async def test_the_wheel_scrolls(tmp_path: Path) -> None:
    async with open_app(traces.deep(tmp_path / "deep.sqlite"), (80, 24)) as user:
        icicle = user.screen.query_one(Icicle)
        user.open_chains()
        await user.settle()
        turn = events.MouseScrollDown(icicle, 5, 5, 0, 0, 0, False, False, False)
        icicle.post_message(turn)
        await user.settle()
        assert icicle.scroll_offset.y > 0
        assert not user.read("icicle").startswith("▏all")


# Searching


async def test_search_counts_while_typing_and_enter_goes_to_a_match(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("slash", "m", "l", "p")
        assert user.read("status") == " 2 frames · 280 µs · 61.4 % of all"
        await user.press("enter")
        assert user.selected == "model.layers.0.mlp"
        assert user.read("status").endswith("match 1 of 2")
        await user.press("n")
        assert user.selected == "model.layers.1.mlp"
        await user.press("n")
        assert user.selected == "model.layers.0.mlp"
        await user.press("N")
        assert user.selected == "model.layers.1.mlp"


async def test_letters_typed_into_the_search_are_no_commands(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("slash", *"qulmdwzn?")
        assert user.app.screen.query_one(Input).value == "qulmdwzn?"
        assert user.app.is_running


async def test_a_wrong_expression_says_so_while_typing(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("slash", "m", "left_parenthesis")
        assert user.read("status").startswith(" not a regular expression: ")
        await user.press("backspace")
        assert "frames" in user.read("status")


async def test_escape_leaves_typing_then_the_search_then_the_zoom(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("down", "down", "enter")
        await user.press("slash", *"mlp", "enter", "slash", *"tiny", "escape")
        found = user.screen.view.matches.result
        assert found is not None and found.query.text == "mlp"
        await user.press("escape")
        assert user.screen.view.matches.result is None
        assert user.zoomed == "generate"
        await user.press("escape")
        assert user.zoomed == "all"


async def test_an_empty_search_is_no_search(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("slash", "m", "backspace", "enter")
        assert user.screen.view.matches.result is None
        await user.press("n")
        assert "no search yet" in user.read("status")


async def test_star_searches_the_selected_name_everywhere(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press(*["down"] * 5)
        assert user.selected == "gemm"
        await user.press("asterisk")
        assert "2 frames · 280 µs" in user.read("status")


async def test_matches_are_highlighted_and_the_rest_dimmed(decode: Path) -> None:
    async with open_app(decode) as user:
        icicle = user.screen.query_one(Icicle)
        before = icicle.render_line(4)
        await user.press("slash", *"mlp", "enter", "home")
        match = next(s for s in icicle.render_line(4) if "layers.1.mlp" in s.text)
        other = next(s for s in icicle.render_line(4) if "ttention" in s.text)
        plain = next(s for s in before if "ttention" in s.text)
        assert match.style == icicle.look.palette.match
        assert other.style != plain.style


async def test_the_details_of_another_frame_begin_at_their_top(decode: Path) -> None:
    async with open_app(decode, (100, 16)) as user:
        await user.press("down", "down", "down")
        await user.rest()
        details = user.screen.query_one("#details", Lines)
        await user.press("]", "]")
        assert details.scroll_offset.y == 2
        await user.press("d", "d")
        assert details.scroll_offset.y == 2
        await user.press("down")
        assert details.scroll_offset.y == 0


async def test_what_a_key_came_to_is_not_said_any_more_after_a_dialog(decode: Path) -> None:
    async with open_app(decode) as user:
        for opens in ("f", "L", "question_mark", "ctrl+p"):
            await user.press("t")
            assert "theme flame-" in user.read("status")
            await user.press(opens, "escape")
            await user.until(lambda: user.app.screen is user.screen)
            assert "theme" not in user.read("status"), opens


async def test_nor_after_the_details_have_been_scrolled(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("t", "right_square_bracket")
        assert "theme" not in user.read("status")


async def test_what_a_dialog_came_to_is_said(decode: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(decode.parent)
    async with open_app(decode) as user:
        await user.press("e", "enter")
        await user.until(lambda: user.app.screen is user.screen)
        await user.until(lambda: "wrote " in user.read("status"))
