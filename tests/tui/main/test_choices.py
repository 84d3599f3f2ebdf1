"""Metrics, levels, dialogs and pages of the app, key by key."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flame.core.projection.filters import HideStacks, ShowStacks
from flame.core.projection.selection import Selection
from flame.tui.dialogs.export import ExportDialog
from flame.tui.dialogs.levels import LevelsDialog
from flame.tui.main.screen import MainScreen
from flame.tui.shell.commands import COMMANDS
from flame.tui.toolkit.dialog.page import Page
from flame.tui.toolkit.lines import Lines
from flame.tui.views.icicle import Icicle
from tests.tui import traces
from tests.tui.conftest import open_app

# Metrics and levels


async def test_a_key_shows_the_next_metric_that_has_anything(decode: Path) -> None:
    async with open_app(decode) as user:
        seen = []
        for _ in range(8):
            await user.press("ctrl+n")
            seen.append(user.screen.shown.metric.key)
        keys = ["exposed", "count", "launch", "queue", "idle", "waiting", "host", "gpu"]
        assert seen == keys
        await user.press("M")
        assert user.screen.shown.metric.key == "host"
        assert "host self time ▾" in user.read("header")


async def test_metrics_without_a_value_are_skipped(tmp_path: Path) -> None:
    async with open_app(traces.unlaunched(tmp_path / "alone.sqlite")) as user:
        seen = []
        for _ in range(3):
            await user.press("ctrl+n")
            seen.append(user.screen.shown.metric.key)
        assert seen == ["exposed", "count", "gpu"]


async def test_the_only_metric_stays_and_says_so(tmp_path: Path) -> None:
    async with open_app(traces.host_only(tmp_path / "host.sqlite")) as user:
        await user.press("ctrl+n")
        assert user.screen.shown.metric.key == "host"
        assert user.read("status") == " no other metric in this trace"


async def test_digits_switch_levels(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("7")
        assert user.levels == "python,native,nvtx,kernel"
        await user.press("3")
        assert user.levels == "device,python,native,nvtx,kernel"
        assert "GPU 0 NVIDIA H100" in user.read("icicle")
        await user.press("5")
        assert user.read("status") == " this trace has no python frames"


async def test_the_last_level_stays(decode: Path) -> None:
    async with open_app(decode, selection=Selection(levels=("kernel",))) as user:
        await user.press("0")
        assert user.levels == "kernel"
        assert user.read("status") == " the last level stays on"


async def test_each_table_keeps_its_own_levels(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("7", "M")
        assert user.levels == "thread,python,nvtx,launch"
        await user.press("2", "ctrl+n")
        assert user.levels == "python,native,nvtx,kernel"
        await user.press("M")
        assert user.levels == "python,nvtx,launch"


async def test_selection_and_zoom_survive_a_metric_and_a_level(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("down", "down", "down", "right", "enter", "down")
        assert (user.zoomed, user.selected) == ("model.layers.1", "model.layers.1.mlp")
        await user.press("ctrl+n", "ctrl+n")
        assert user.screen.shown.metric.key == "count"
        assert (user.zoomed, user.selected) == ("model.layers.1", "model.layers.1.mlp")
        await user.press("9", "slash", *"mlp", "enter", "4")
        assert user.selected == "model.layers.0.mlp" or user.selected == "model.layers.1.mlp"
        assert user.screen.view.matches.result is not None


async def test_the_levels_dialog_switches_orders_and_applies(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("L")
        assert isinstance(user.app.screen, LevelsDialog)
        assert "▸ 1  unified " in user.read("dialog")
        assert "[x]  python     not in this trace" in user.read("dialog")
        await user.press(*["down"] * 11, "space", "down", "down", "space", "down", "J")
        await user.press("enter")
        assert user.levels == "native,kernel,nvtx"
        assert user.read("header").rstrip().split("▾")[1].split() == [
            *("kernel", "›", "nvtx", "coverage", "93", "%", "launch", "93", "%", "NVTX")
        ]


async def test_the_levels_dialog_can_be_left_without_a_change(decode: Path) -> None:
    async with open_app(decode) as user:
        levels = user.levels
        for leave in ("escape", "q", "L"):
            await user.press("L", "space", leave)
            assert isinstance(user.app.screen, MainScreen)
            assert user.levels == levels


async def test_the_levels_dialog_needs_one_level(decode: Path) -> None:
    async with open_app(decode, selection=Selection(levels=("kernel",))) as user:
        await user.press("L", *["down"] * 7, "space")
        assert "switch at least one level on" in user.read("hint")
        await user.press("enter")
        assert isinstance(user.app.screen, LevelsDialog)
        await user.press("u", "enter")
        assert user.levels == "python,native,launch,nvtx,kernel"


async def test_the_levels_dialog_works_with_the_mouse(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("L")
        lines = user.read("dialog").splitlines()
        row = next(y for y, line in enumerate(lines) if "launch " in line)
        await user.pilot.click("#dialog", offset=(5, row))
        await user.press("enter")
        assert user.levels == "python,native,nvtx,kernel"


async def test_an_arrangement_of_the_levels_dialog_folds_the_layers(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("L", "4")
        assert user.levels == "nvtx,kernel"
        assert "model.layers.*" in user.read("icicle")
        await user.press("L", "f", "enter")
        assert "model.layers.1" in user.read("icicle")


async def test_the_filters_dialog_filters_and_the_chips_take_it_back(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("f", "enter", *"gemm", "enter", "enter")
        assert user.screen.shown.selection.where == (ShowStacks("gemm"),)
        assert user.read("chips").startswith(" × only stacks with gemm")
        await user.pilot.click("#chips", offset=(1, 0))
        await user.settle()
        assert not user.screen.shown.selection.where


async def test_quick_filters_are_about_the_selected_frame(decode: Path) -> None:
    async with open_app(decode, selection=Selection(levels=("nvtx", "kernel"))) as user:
        await user.press("down", "down")
        name = user.selected
        await user.press("X")
        assert user.screen.shown.selection.where == (HideStacks(f"^{re.escape(name)}$"),)


async def test_e_exports_and_says_what(decode: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(decode.parent)
    async with open_app(decode) as user:
        await user.press("e")
        assert isinstance(user.app.screen, ExportDialog)
        await user.press("enter")
        await user.until(lambda: isinstance(user.app.screen, MainScreen))
        await user.settle()
        assert user.read("status").startswith(" wrote decode.collapsedstack.txt: ")


# Pages


async def test_help_names_every_key(decode: Path) -> None:
    async with open_app(decode, (80, 140)) as user:
        await user.press("question_mark")
        text = " ".join(user.read("page").split())
        for command in COMMANDS:
            assert " ".join(command.shown.split()) in text
            assert user.screen.said(command.help) in text
        await user.press("question_mark")
        assert isinstance(user.app.screen, MainScreen)
        await user.press("f1")
        assert isinstance(user.app.screen, Page)


async def test_notes_show_coverage_and_warnings(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("w")
        text = user.read("page")
        assert "launching API call        93.4 %  426 µs" in text
        assert "65 kernel, 1 memcpy" in text
        assert "1 of 66 GPU activities" in text
        await user.press("escape")
        assert isinstance(user.app.screen, MainScreen)


async def test_a_long_page_scrolls(decode: Path) -> None:
    async with open_app(decode, (80, 20)) as user:
        await user.press("question_mark")
        sheet = user.app.screen.query_one(Lines)
        await user.press("down", "j", "pagedown")
        assert sheet.scroll_offset.y == 12
        await user.press("k", "up", "pageup")
        assert sheet.scroll_offset.y == 0


async def test_d_hides_the_details(decode: Path) -> None:
    async with open_app(decode) as user:
        icicle = user.screen.query_one(Icicle)
        width = icicle.inner.width
        await user.press("d")
        assert icicle.inner.width == 119
        await user.press("d")
        assert icicle.inner.width == width


async def test_d_says_where_there_is_no_room_for_details(decode: Path) -> None:
    async with open_app(decode, (60, 15)) as user:
        await user.press("d")
        assert "need 100 columns or 22 rows" not in user.read("status")
        await user.press("d")
        assert user.read("status") == " the details need 100 columns or 22 rows"


async def test_brackets_scroll_the_details(decode: Path) -> None:
    async with open_app(decode, (60, 22)) as user:
        await user.press(*["down"] * 5)
        details = user.screen.query_one("#details", Lines)
        await user.press("right_square_bracket")
        assert details.scroll_offset.y == 1
        await user.press("left_square_bracket")
        assert details.scroll_offset.y == 0
