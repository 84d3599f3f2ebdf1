"""Terminals and traces of all kinds; loading and leaving."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from textual.widgets import Input, ProgressBar

from flame.core.errors import CancelledError, InputError, NoMatchError
from flame.core.load_progress import WHOLE
from flame.core.loading.inputs import Inputs
from flame.core.options import LoadOptions, Progress
from flame.core.projection.filter_options import where
from flame.core.projection.selection import Selection
from flame.tui.main.app import FlameApp
from flame.tui.shell.loading_screen import LoadingScreen
from tests.support.tiers import deep_except
from tests.tui import traces
from tests.tui.conftest import User, open_app

pytestmark = pytest.mark.deep

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


SMALL = [(40, 10), (20, 5), (59, 40), (250, 5)]
SIZES = [(60, 15), (61, 22), (99, 15), (100, 15), (250, 70)]


@pytest.mark.parametrize("size", deep_except((SIZES[0], SIZES[-1]), SIZES))
async def test_every_size_from_60x15_is_drawn(decode: Path, size: tuple[int, int]) -> None:
    async with open_app(decode, size) as user:
        await user.press("down", "down", "down")
        assert "model" in user.read("icicle")
        assert user.read("keys").endswith("quit")
        for key in ("question_mark", "w", "L"):
            await user.press(key, "escape")


async def test_a_terminal_that_is_too_small_says_so_and_recovers(decode: Path) -> None:
    async with open_app(decode, (40, 4)) as user:
        assert user.read("small").startswith("needs 20 × 5 cells, here are 40 × 4")
        await user.pilot.resize_terminal(19, 24)
        await user.until(lambda: user.read("small"))
        assert not user.screen.query_one("#body").display
        await user.pilot.resize_terminal(120, 40)
        await user.settle()
        assert "cudaLaunchKernel" in user.read("icicle")


@pytest.mark.parametrize(
    "size", deep_except([(40, 10), (20, 5)], [(40, 10), (20, 5), (59, 40), (250, 5)])
)
async def test_a_small_terminal_has_a_view_and_the_status(
    decode: Path, size: tuple[int, int]
) -> None:
    async with open_app(decode, size) as user:
        shown = {widget.id for widget in user.screen.children if widget.display}
        assert shown == {"body", "bottom"}
        await user.press("down", "down")
        assert user.read("icicle").splitlines()[0].startswith("▏all")
        assert user.read("status").strip()
        for _ in range(4):
            await user.press("tab", "down", "end", "enter", "escape")
        await user.press("slash", *"gemm", "enter")
        await user.pilot.resize_terminal(120, 40)
        await user.until(lambda: user.read("keys").endswith("quit"))


async def test_details_have_three_lines_on_80x24(tmp_path: Path) -> None:
    async with open_app(traces.deep(tmp_path / "deep.sqlite"), (80, 24)) as user:
        user.open_chains()
        details = user.screen.query_one("#details")
        await user.until(lambda: details.size.height == 3)
        await user.until(lambda: "busy" in user.read("details"))
        busy, kernels, ranges = user.read("details").splitlines()
        assert "busy" in busy
        assert kernels.startswith(" kernels ")
        assert ranges.startswith(" ranges ")
        await user.press("end")
        await user.until(lambda: "p50" in user.read("details") or "×" in user.read("details"))
        assert user.read("details").splitlines()[0].startswith(" kernel ")
        await user.press("right_square_bracket", "right_square_bracket", "right_square_bracket")
        assert "total" in user.read("details")


async def test_a_shallow_tree_is_as_wide_as_the_screen_with_its_details_below(
    decode: Path,
) -> None:
    async with open_app(decode, (120, 40)) as user:
        icicle, details = (user.screen.query_one(name) for name in ("#icicle", "#details"))
        await user.until(lambda: details.size.width > 100)
        assert icicle.size.width > 100
        assert details.region.y == icicle.region.bottom
        await user.press("d")
        await user.until(lambda: icicle.region.bottom > 30)
        await user.press("d", "tab")
        await user.until(lambda: details.region.x > 60)
        await user.press("shift+tab")
        await user.until(lambda: details.region.y == icicle.region.bottom)


async def test_a_deep_tree_has_its_details_beside_it(tmp_path: Path) -> None:
    async with open_app(traces.deep(tmp_path / "deep.sqlite"), (120, 40)) as user:
        details = user.screen.query_one("#details")
        user.open_chains()
        await user.until(lambda: details.region.x > 60)


async def test_resizing_keeps_selection_and_zoom(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("down", "down", "enter", "down")
        for size in ((80, 24), (200, 50), (61, 16), (120, 40)):
            await user.pilot.resize_terminal(*size)
            await user.settle()
            assert (user.zoomed, user.selected) == ("generate", "model.layers.0")
            assert "model.layers" in user.read("icicle")


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


async def test_a_long_warning_loses_its_end_and_not_the_way_to_the_others(decode: Path) -> None:
    async with open_app(decode, (80, 24)) as user:
        warnings = user.screen.session.profile.warnings
        said, way = user.read("status").split("…")
        assert warnings[0].startswith(said.strip()) and len(said) > 20
        assert way == f"  w: all {len(warnings)} notes"


async def test_an_empty_trace_shows_why_and_its_warnings(tmp_path: Path) -> None:
    async with open_app(traces.nothing(tmp_path / "nothing.sqlite")) as user:
        text = user.read("empty")
        assert "Nothing to show: the trace holds no GPU activity" in text
        assert "Warnings" in text and "• nothing on a GPU, no NVTX range, no CUDA call" in text
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
            seen.add(user.read("details").splitlines()[1].split("  ")[0])
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
    monkeypatch.setattr("flame.core.loading.many.load_file", load)
    app = FlameApp(Inputs((tmp_path / "slow.sqlite",)), LoadOptions(), Selection())
    async with app.run_test(size=(80, 24)) as pilot:
        user = User(app, pilot)
        await user.until(load.started.is_set)
        await user.until(lambda: "reading ␛kernels" in user.read("loading"))
        assert "esc cancels" in user.read("loading-end")
        bar = app.screen.query_one(ProgressBar)
        assert bar.total == WHOLE and 0 <= bar.progress < WHOLE
        await pilot.press(key)
        await pilot.pause()
    app.stop_loading()
    assert load.stopped.wait(2)
