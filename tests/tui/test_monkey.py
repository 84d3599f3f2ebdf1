"""Random walks through the app on odd traces: whatever is typed or pointed at, it holds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual.command import CommandList

from flame.core.projection.filters import HideStacks
from flame.options.config import DEFAULTS, Config
from flame.tui.dialogs.filters import FiltersDialog
from flame.tui.main.screen import MainScreen
from flame.tui.shell.command_palette import AllCommands
from flame.tui.shell.loading_screen import LoadingScreen
from tests.conftest import NSYS_TRACES
from tests.support.generated.strategies import Script, scripts
from tests.support.hostile.bad_texts import WHOLE
from tests.support.tiers import deep_except, examples
from tests.tui import traces
from tests.tui.conftest import User, open_app
from tests.tui.monkey import SIZES, Monkey, leave, stay
from tests.tui.monkey import _elsewhere as _elsewhere
from tests.tui.terminals import Terminal, read_screen, start

pytestmark = pytest.mark.deep


async def walk(
    path: Path, seed: int, steps: int, config: Config = DEFAULTS, more: Sequence[Path] = ()
) -> None:
    """A walk of ``steps`` steps on the trace at ``path``, from wherever ``seed`` begins it."""
    place = f"{path.name} {seed}"
    size = Random(place).choice(SIZES)
    async with open_app(path, size, config=config, more=more) as user:
        if isinstance(user.app.screen, LoadingScreen):
            return  # it cannot be shown, which is told: nothing to walk through
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(user.app, "action_quit", stay)
            await Monkey(user, place).walk(steps)
        await leave(user)
    assert user.app.crash is None and user.app.failure is None


MADE: dict[str, Callable[[Path], Path]] = {
    "decode": traces.decode,
    "hostile": traces.hostile,
    "deep": traces.deep,
    "host_only": traces.host_only,
    "nothing": traces.nothing,
    "unlaunched": traces.unlaunched,
}

EVIL = ("\x1b[2J", "[red]x[/]", "\u202eabc", "\0", "絵🚀", ";", "x" * 5_000, " ", "a\nb")
"""What the names in a file may hold."""

FILES = ("kineto", "evil", "proton", "speedscope", "folded", "differential")
MERGED = (("kineto", "evil", "kineto"), ("folded", "speedscope"), ("proton", "differential"))


def written(folder: Path, name: str, prefix: str = "") -> Path:
    """One of `bad_texts.WHOLE`; ``evil`` is a trace of PyTorch with evil names."""
    data = WHOLE["kineto" if name == "evil" else name]
    for number, text in enumerate(EVIL if name == "evil" else ()):
        evil = json.dumps(text).encode()
        old = (b'"aten::op%d"', b'"kernel%d"', b'"train.py(%d): step"')[number % 3]
        data = data.replace(old % (number // 3), evil).replace(old % 7, evil)
    path = folder / f"{prefix}{name}.json"
    path.write_bytes(data)
    return path


# Walks; by hand they were a thousand times as long


@pytest.mark.parametrize("name", deep_except(list(MADE)[:2], MADE))
async def test_made_traces(tmp_path: Path, name: str) -> None:
    await walk(MADE[name](tmp_path / f"{name}.sqlite"), seed=1, steps=20)


@pytest.mark.parametrize("name", deep_except(("kineto", "evil"), FILES))
async def test_traces_and_stacks_of_others(tmp_path: Path, name: str) -> None:
    await walk(written(tmp_path, name), seed=1, steps=15)


@pytest.mark.parametrize("names", deep_except(MERGED[:1], MERGED), ids="+".join)
async def test_several_at_once(tmp_path: Path, names: tuple[str, ...]) -> None:
    first, *more = (written(tmp_path, name, str(number)) for number, name in enumerate(names))
    await walk(first, seed=1, steps=15, more=more)


@examples(0.03)
@given(scripts(), st.integers(0, 1_000))
def test_random_traces(script: Script, seed: int) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(walk(script.write(Path(folder, "random.sqlite")), seed, steps=10))


@pytest.mark.deep
@pytest.mark.parametrize("name", NSYS_TRACES[:1])
async def test_real_traces(nsys_trace: Callable[[str], Path], name: str) -> None:
    await walk(nsys_trace(name), seed=1, steps=20)


# What they have found


async def test_a_double_click_beside_a_page_closes_no_more_than_the_page(decode: Path) -> None:
    for key in ("w", "f", "ctrl+p"):
        async with open_app(decode) as user:
            await user.press(key)
            click_twice(user, 0, 39)
            await user.settle()
            assert isinstance(user.app.screen, MainScreen)


async def test_the_second_of_two_quick_clicks_chooses_nothing_unseen(tmp_path: Path) -> None:
    async with open_app(traces.host_only(tmp_path / "host.sqlite")) as user:
        await user.press("f")
        rows = user.app.screen.query_one("#dialog").region
        for y in range(rows.y, rows.bottom):
            click_twice(user, rows.x + 3, y)
            await user.settle()
            await user.press("escape")
            if not isinstance(user.app.screen, FiltersDialog):
                await user.press("f")


def click_twice(user: User, x: int, y: int) -> None:
    """A double click whose second half comes before the app has answered the first."""
    driver = user.app._driver
    assert driver is not None
    for kind in (events.MouseDown, events.MouseUp) * 2:
        driver.process_message(kind(None, x, y, 0, 0, 1, False, False, False, x, y))


async def test_a_filter_may_be_left_right_behind_its_enter(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("f", "enter")
        dialog = user.app.screen
        assert isinstance(dialog, FiltersDialog)
        assert dialog.entry.display
        for key in ("enter", "escape"):
            user.app.post_message(events.Key(key, None))
        await user.settle()
        assert not dialog.entry.display
        assert user.app.screen is dialog


async def test_a_frame_without_width_zooms_to_what_has_any(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("m", "6", "tab", "tab", "end")
        view = user.screen.shown.view
        assert view.tree.metric.key == "idle" and not view.tree.total[view.cursor.node]
        await user.press("tab", "tab", "tab", "enter")
        assert view.tree.total[view.viewport.zoom.node] > 0
        assert user.read("icicle").strip()


async def test_a_page_of_the_palette_may_be_turned_before_it_is_drawn(decode: Path) -> None:
    async with open_app(decode) as user:
        for key in ("ctrl+p", "pagedown", "m", "pageup", "escape"):
            user.app.post_message(events.Key(key, None))
        await user.settle()
        await user.press("escape")
        assert isinstance(user.app.screen, MainScreen)


async def test_an_escape_pasted_into_the_palette_is_harmless(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("ctrl+p")
        user.app.post_message(events.Paste("\x1b[2J"))
        await user.settle()
        strips = user.app.screen._compositor.render_strips()
        text = "".join(strip.text for strip in strips)
        assert "␛[2J" in text and "\x1b" not in text


async def test_the_palette_may_know_what_to_show_before_it_has_a_list(decode: Path) -> None:
    async with open_app(decode) as user:
        palette = AllCommands()
        user.app.push_screen(palette)
        palette._list_visible = palette._show_busy = True
        await user.settle()
        await user.until(lambda: palette.query(CommandList))
        assert palette.query_one(CommandList).has_class("--visible")


async def test_there_is_no_palette_over_a_dialog(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("f", "ctrl+p")
        assert isinstance(user.app.screen, FiltersDialog)


async def test_a_quick_filter_in_the_sandwich_is_about_its_subject(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("down", "down", "down", "x", "X")
        assert user.screen.shown.selection.where == (HideStacks(r"^model\.layers\.0$"),)


# Threads


IN_THREADS = (
    ("flame.tui.session.projector.find_in_time", "*i"),
    ("flame.tui.session.finder.find", "*"),
    ("flame.tui.details.collector.collect", ""),
    ("flame.tui.views.top_table.parts_by_device", "\t\t"),
    ("flame.tui.timeline.prepare.timeline", "\t\t\t"),
)
"""What threads run, and the keys that have them do so."""


RARE = [pytest.param(*one, marks=pytest.mark.deep) for one in IN_THREADS[2:]]


@pytest.mark.parametrize(("place", "keys"), [*IN_THREADS[:2], *RARE])
def test_a_bug_in_a_thread_ends_the_app_with_its_error(
    terminals: list[Terminal], decode: Path, place: str, keys: str
) -> None:
    module, name = place.rsplit(".", 1)
    terminal = start(terminals, decode, BROKEN.format(module=module, name=name))
    if keys:
        terminal.read_until("model.layers.1.mlp")
        terminal.settle()
    for key in keys:
        terminal.press(key)
    assert terminal.wait() == 70
    assert "flame: internal error: RuntimeError: a bug (FLAME_DEBUG=1" in terminal.last_line
    assert "Traceback" not in read_screen(terminal.output)


BROKEN = """
from flame.cli.main import main
import {module}
from flame.tui.session import finder
from flame.tui.views import sandwich_pane, top_pane
finder.AT_ONCE = sandwich_pane.AT_ONCE = top_pane.AT_ONCE = 0
def broken(*args, **named):
    raise RuntimeError("a bug")
{module}.{name} = broken
run = lambda inputs, *rest: main(["view", str(inputs.paths[0])])
"""
