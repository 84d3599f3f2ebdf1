"""Every key and dialog of the app, pressed as a user would."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from rich.color import Color
from textual import events
from textual.widgets import Input

from flame.core.errors import CancelledError, InputError, NoMatchError
from flame.core.options import LoadOptions, Progress
from flame.core.selection import Selection
from flame.core.where import where
from flame.tui.app import FlameApp
from flame.tui.icicle import Icicle
from flame.tui.keys import COMMANDS
from flame.tui.levels import LevelsDialog
from flame.tui.lines import Lines
from flame.tui.loading import LoadingScreen
from flame.tui.screen import MainScreen
from flame.tui.sheets import Sheet
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
        assert user.read("crumbs") == " all ▸ cudaLaunchKernel ▸ generate ▸ model.layers.0"
        assert user.read("details").splitlines()[:2] == [" nvtx", "model.layers.0"]
        assert user.read("status") == " model.layers.0  200 µs · 43.9 % of all · 2×"


async def test_a_deep_tree_scrolls_with_the_selection_and_by_page(tmp_path: Path) -> None:
    async with open_app(traces.deep(tmp_path / "deep.sqlite"), (80, 24)) as user:
        icicle = user.screen.query_one(Icicle)
        assert icicle.scroll_offset.y == 0
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
        assert user.read("status") == " no zoom to undo"


async def test_up_at_the_top_of_the_zoomed_part_tells_how_to_go_on(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("down", "down", "enter", "up")
        assert user.read("status") == " u zooms out"


async def test_narrow_frames_are_one_run_that_enter_opens(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("down", "down", "down", "right", "right", "down", "right")
        assert user.selected.startswith("tiny_")
        assert "one of 60 narrow" in user.read("details")
        await user.press("enter")
        assert user.zoomed == "sampler"
        assert "narrow frames" in user.read("crumbs")
        first = user.selected
        await user.press("right")
        assert user.selected.startswith("tiny_") and user.selected != first
        await user.press("left")
        assert user.selected == first
        await user.press("u")
        assert "narrow frames" not in user.read("crumbs")


# The mouse


def cell(user: User, name: str) -> tuple[int, int]:
    """Where in the icicle the frame called ``name`` is drawn."""
    view = user.screen.view
    node = next(n for n in range(len(view.tree)) if view.tree.name(n) == name)
    item = view.item_of(node)
    assert item is not None
    return item.left + 1, int(view.tree.depth[node]) - view.top


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
        lines = user.read("details").splitlines()
        row = next(y for y, line in enumerate(lines) if "cudaLaunchKernel" in line)
        await user.pilot.click("#details", offset=(lines[row].index("cuda") + 2, row))
        await user.settle()
        assert user.selected == "cudaLaunchKernel"


async def test_a_click_on_a_key_in_the_footer_runs_it(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.pilot.click("#keys", offset=(user.read("keys").index("help"), 0))
        await user.settle()
        assert isinstance(user.app.screen, Sheet)


async def test_the_wheel_scrolls(tmp_path: Path) -> None:
    async with open_app(traces.deep(tmp_path / "deep.sqlite"), (80, 24)) as user:
        icicle = user.screen.query_one(Icicle)
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
        found = user.screen.view.found
        assert found is not None and found.query.text == "mlp"
        await user.press("escape")
        assert user.screen.view.found is None
        assert user.zoomed == "generate"
        await user.press("escape")
        assert user.zoomed == "all"


async def test_an_empty_search_is_no_search(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("slash", "m", "backspace", "enter")
        assert user.screen.view.found is None
        await user.press("n")
        assert user.read("status") == " no search yet: / begins one"


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


# Metrics and levels


async def test_m_shows_the_next_metric_that_has_anything(decode: Path) -> None:
    async with open_app(decode) as user:
        seen = []
        for _ in range(6):
            await user.press("m")
            seen.append(user.screen.shown.metric.key)
        assert seen == ["count", "launch", "queue", "idle", "host", "gpu"]
        await user.press("M")
        assert user.screen.shown.metric.key == "host"
        assert "host self time ▾" in user.read("header")


async def test_metrics_without_a_value_are_skipped(tmp_path: Path) -> None:
    async with open_app(traces.unlaunched(tmp_path / "alone.sqlite")) as user:
        seen = []
        for _ in range(2):
            await user.press("m")
            seen.append(user.screen.shown.metric.key)
        assert seen == ["count", "gpu"]


async def test_the_only_metric_stays_and_says_so(tmp_path: Path) -> None:
    async with open_app(traces.host_only(tmp_path / "host.sqlite")) as user:
        await user.press("m")
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
        assert user.levels == "thread,nvtx,launch"
        await user.press("2", "m")
        assert user.levels == "python,native,nvtx,kernel"
        await user.press("M")
        assert user.levels == "nvtx,launch"


async def test_selection_and_zoom_survive_a_metric_and_a_level(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("down", "down", "down", "right", "enter", "down")
        assert (user.zoomed, user.selected) == ("model.layers.1", "model.layers.1.mlp")
        await user.press("m")
        assert user.screen.shown.metric.key == "count"
        assert (user.zoomed, user.selected) == ("model.layers.1", "model.layers.1.mlp")
        await user.press("9", "slash", *"mlp", "enter", "4")
        assert user.selected == "model.layers.0.mlp" or user.selected == "model.layers.1.mlp"
        assert user.screen.view.found is not None


async def test_the_levels_dialog_switches_orders_and_applies(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("L")
        assert isinstance(user.app.screen, LevelsDialog)
        assert "▸ 5 [x]  python     not in this trace" in user.read("dialog")
        await user.press("space", "down", "down", "space", "down", "J")
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
        await user.press("L", "0")
        assert "switch at least one level on" in user.read("dialog")
        await user.press("enter")
        assert isinstance(user.app.screen, LevelsDialog)
        await user.press("r", "enter")
        assert user.levels == "python,native,launch,nvtx,kernel"


async def test_the_levels_dialog_works_with_the_mouse(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("L")
        lines = user.read("dialog").splitlines()
        row = next(y for y, line in enumerate(lines) if "launch " in line)
        await user.pilot.click("#dialog", offset=(5, row + 1))  # one row of padding
        await user.press("enter")
        assert user.levels == "python,native,nvtx,kernel"


# Pages


async def test_help_names_every_key(decode: Path) -> None:
    async with open_app(decode, (120, 60)) as user:
        await user.press("question_mark")
        text = user.read("sheet")
        for command in COMMANDS:
            assert command.shown in text and command.help.split(":")[0] in text
        await user.press("question_mark")
        assert isinstance(user.app.screen, MainScreen)
        await user.press("f1")
        assert isinstance(user.app.screen, Sheet)


async def test_notes_show_coverage_and_warnings(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("w")
        text = user.read("sheet")
        assert "launching API call      93.4 %  426 µs" in text
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


async def test_brackets_scroll_the_details(decode: Path) -> None:
    async with open_app(decode, (60, 22)) as user:
        await user.press(*["down"] * 5)
        details = user.screen.query_one("#details", Lines)
        await user.press("right_square_bracket")
        assert details.scroll_offset.y == 1
        await user.press("left_square_bracket")
        assert details.scroll_offset.y == 0


# Leaving


@pytest.mark.parametrize("key", ["q", "ctrl+q", "ctrl+c"])
async def test_quit(decode: Path, key: str) -> None:
    async with open_app(decode) as user:
        await user.pilot.press(key)
        await user.pilot.pause()
        assert not user.app.is_running or user.app._exit
    assert user.app.failure is None


# Size


async def test_a_narrow_terminal_has_the_details_below(decode: Path) -> None:
    async with open_app(decode, (80, 24)) as user:
        icicle = user.screen.query_one("#icicle").region
        details = user.screen.query_one("#details").region
        assert details.y == icicle.bottom
        assert "100.0 % of all" in user.read("details")
        await user.pilot.resize_terminal(80, 18)
        await user.settle()
        assert user.screen.query_one("#details").region.height == 0


@pytest.mark.parametrize("size", [(60, 15), (61, 22), (99, 15), (100, 15), (250, 70)])
async def test_every_size_from_60x15_is_drawn(decode: Path, size: tuple[int, int]) -> None:
    async with open_app(decode, size) as user:
        await user.press("down", "down", "down")
        assert "model" in user.read("icicle")
        assert user.read("keys").endswith("quit")
        for key in ("question_mark", "w", "L"):
            await user.press(key, "escape")


async def test_a_terminal_that_is_too_small_says_so_and_recovers(decode: Path) -> None:
    async with open_app(decode, (50, 20)) as user:
        assert user.read("small").startswith("flame needs 60 × 15 cells, here are 50 × 20")
        await user.pilot.resize_terminal(120, 14)
        await user.settle()
        assert "120 × 14" in user.read("small")
        await user.pilot.resize_terminal(120, 40)
        await user.settle()
        assert "cudaLaunchKernel" in user.read("icicle")


async def test_resizing_keeps_selection_and_zoom(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("down", "down", "enter", "down")
        for size in ((80, 24), (200, 50), (61, 16), (120, 40)):
            await user.pilot.resize_terminal(*size)
            await user.settle()
            assert (user.zoomed, user.selected) == ("generate", "model.layers.0")
            assert "model.layers" in user.read("icicle")


# Themes


@pytest.mark.parametrize("theme", ["textual-light", "ansi-dark"])
async def test_another_theme_repaints_everything(decode: Path, theme: str) -> None:
    async with open_app(decode) as user:
        icicle = user.screen.query_one(Icicle)
        dark = [icicle.render_line(0), user.screen.query_one("#status", Lines).render_line(0)]
        user.app.theme = theme
        await user.settle()
        light = [icicle.render_line(0), user.screen.query_one("#status", Lines).render_line(0)]
        assert [strip.text for strip in dark] == [strip.text for strip in light]
        assert all(one != other for one, other in zip(dark, light, strict=True))
        assert icicle.look.palette.cursor.color != icicle.look.palette.cursor.bgcolor


async def test_without_colours_frames_and_cursor_are_still_told_apart(
    decode: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with open_app(decode) as user:
        strips = user.app.screen._compositor.render_strips()
        styles = [segment.style for strip in strips for segment in strip if segment.style]
        assert all(_grey(style.color) and _grey(style.bgcolor) for style in styles)
        assert len({str(style.bgcolor) for style in styles}) > 5


def _grey(color: Color | None) -> bool:
    return color is None or color.triplet is None or len(set(color.triplet)) == 1


# Traces that are not as usual


async def test_a_trace_without_gpu_activity_opens_with_the_host_and_says_so(tmp_path: Path) -> None:
    async with open_app(traces.host_only(tmp_path / "host.sqlite")) as user:
        assert user.screen.shown.metric.key == "host"
        assert user.read("status").startswith(
            " no GPU activity in this trace: the host metric shows"
        )
        assert "load data" in user.read("icicle")


async def test_the_first_warning_greets_until_a_key_is_pressed(decode: Path) -> None:
    async with open_app(decode) as user:
        warnings = user.screen.session.profile.warnings
        assert user.read("status").startswith(f" {warnings[0][:40]}")
        assert user.read("status").endswith(f"w: all {len(warnings)} notes")
        await user.press("down")
        assert user.read("status").startswith(" cudaLaunchKernel")


async def test_an_empty_trace_shows_why_and_its_warnings(tmp_path: Path) -> None:
    async with open_app(traces.nothing(tmp_path / "nothing.sqlite")) as user:
        text = user.read("empty")
        assert "Nothing to show: the trace holds no GPU activity" in text
        assert "Warnings" in text and "• no GPU activity in this trace" in text
        await user.press("down", "right", "enter", "u", "slash", "x", "enter", "n", "asterisk", "m")
        await user.press("7", "w", "escape", "z", "escape", "escape", "q")


async def test_hostile_names_reach_the_screen_only_as_text(tmp_path: Path) -> None:
    async with open_app(traces.hostile(tmp_path / "hostile.sqlite"), (150, 40)) as user:
        await user.press("down", "down")
        seen = set()
        for _ in traces.HOSTILE:
            for strip in user.app.screen._compositor.render_strips():
                assert "".join(segment.text for segment in strip).isprintable()
                assert strip.cell_length == 150
            seen.add(user.read("details").splitlines()[1])
            await user.press("asterisk", "right")
        assert "[bold red]markup[/] [@click=app.quit]x[/]" in seen
        assert "␛[2J␛]0;owned␇red␛[31m" in seen


async def test_a_pasted_escape_is_harmless(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("slash")
        user.app.screen.query_one(Input).value = "\x1b[2Jmlp"
        await user.settle()
        for strip in user.app.screen._compositor.render_strips():
            assert "\x1b" not in "".join(segment.text for segment in strip)


# Loading


async def test_a_file_that_is_no_trace_is_explained_in_the_app(tmp_path: Path) -> None:
    path = tmp_path / "no\x1btrace.sqlite"
    path.write_bytes(b"hello")
    async with open_app(path) as user:
        assert isinstance(user.app.screen, LoadingScreen)
        text = user.read("loading")
        assert "not a trace flame knows" in text.replace("\n", " ")
        assert "\x1b" not in text
        await user.pilot.press("q")
        await user.pilot.pause()
    assert isinstance(user.app.failure, InputError)


async def test_a_selection_that_matches_nothing_is_explained(decode: Path) -> None:
    selection = Selection(where=where(kernel="nowhere"))
    async with open_app(decode, selection=selection) as user:
        assert "nothing in the trace matches the selection" in user.read("loading")
        await user.pilot.press("escape")
        await user.pilot.pause()
    assert isinstance(user.app.failure, NoMatchError)


class SlowLoad:
    """A load that reports progress until it is told to stop."""

    def __init__(self) -> None:
        self.started = threading.Event()
        self.stopped = threading.Event()

    def __call__(self, path: Path, options: LoadOptions, progress: Progress) -> None:
        done = 0
        try:
            while True:
                done += 1_000
                progress("reading \x1bkernels", done, 10_000_000)
                self.started.set()
                threading.Event().wait(0.01)
        except CancelledError:
            self.stopped.set()
            raise


@pytest.mark.parametrize("key", ["escape", "q", "ctrl+c"])
async def test_a_load_can_be_left_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    load = SlowLoad()
    monkeypatch.setattr("flame.core.load.load", load)
    app = FlameApp(tmp_path / "slow.sqlite", LoadOptions(), Selection())
    async with app.run_test(size=(80, 24)) as pilot:
        user = User(app, pilot)
        await user.until(load.started.is_set)
        await user.until(lambda: "rows" in user.read("loading"))
        text = user.read("loading")
        assert "reading ␛kernels" in text and "esc cancels" in text
        await pilot.press(key)
        await pilot.pause()
    app.stop_loading()
    assert load.stopped.wait(2)
