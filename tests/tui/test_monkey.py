"""Random walks through the app on odd traces: whatever is typed or pointed at, it holds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual import events
from textual.command import CommandList
from textual.keys import _character_to_key

from flame.core.projection.filters import HideStacks
from flame.core.projection.selection import Selection
from flame.options.config import DEFAULTS, Config
from flame.tui.dialogs.filters import FiltersDialog
from flame.tui.main.screen import MainScreen
from flame.tui.shell.command_palette import AllCommands
from flame.tui.shell.commands import COMMANDS
from flame.tui.shell.loading_screen import LoadingScreen
from tests.conftest import NSYS_TRACES
from tests.support.hostile.bad_texts import WHOLE
from tests.support.strategies import Script, scripts
from tests.support.tiers import deep_except, examples
from tests.tui import traces
from tests.tui.conftest import User, _character, open_app
from tests.tui.terminals import Terminal, read_screen, start

pytestmark = pytest.mark.deep

SIZES = ((20, 5), (59, 14), (60, 15), (61, 22), (80, 24), (99, 30), (100, 15), (250, 70))
TEXTS = (
    *("gemm", "layer", "a", "^", "(", "[z-a]", "\\", ".*", "(a+)+$", "x" * 300, "5s/7s", "/", "-1"),
    *(
        "\x1b[2J",
        "[red]x[/]",
        "\u202eabc",
        "絵🚀",
        "z\u0301\u0301\u0301",
        "\ud800",
        "\0",
        " ",
        "0.5",
    ),
    *("1e999", "nan", "NCCL@/a/b", "1ms/", "999999999999999999999s/"),
)
MODALS = ("escape", "enter", "q", "a", "r", "p", "x", "f", "e", "L", "K", "J", "h", "delete")
COMMON = ("up", "down", "left", "right", "enter", "tab", "pageup", "pagedown", "space", "escape")


def keys() -> list[str]:
    """Everything that is bound on the main screen, but for what leaves the app or its folder."""
    bound = [key for command in COMMANDS for key in command.keys.split(",") if key]
    return [key for key in bound if key not in ("q", "o")]


class Monkey:
    """Does one random thing after the other, and looks at the screen after each."""

    WAYS: ClassVar[tuple[str, ...]] = (
        *["key"] * 12,
        *["burst"] * 4,
        *["modal"] * 4,
        *["text"] * 2,
        *["click"] * 4,
        *["drag"] * 2,
        *["wheel"] * 2,
        *["move"] * 2,
        "resize",
    )

    def __init__(self, user: User, seed: str) -> None:
        self.user = user
        self.random = Random(seed)
        self.done: list[str] = []
        self.totals: dict[Selection, int] = {}
        self.keys = keys()

    async def walk(self, steps: int) -> None:
        """Do ``steps`` things; AssertionError, with what was done last, where the app breaks."""
        for _ in range(steps):
            way = self.random.choice(self.WAYS)
            try:
                await getattr(self, f"_{way}")()
                await self.user.settle()
                self._check()
            except Exception as error:
                error.add_note(f"after {self.done[-12:]}")
                raise

    # What it does

    async def _key(self) -> None:
        self._press(self.random.choice(self.keys))

    async def _burst(self) -> None:
        for _ in range(self.random.randrange(2, 12)):
            self._press(self.random.choice((*self.keys, *COMMON)))

    async def _modal(self) -> None:
        """What a dialog, a list or a line to type into may be waiting for."""
        if not isinstance(self.user.app.screen, MainScreen):
            self._press(self.random.choice((*MODALS, *COMMON)))

    async def _text(self) -> None:
        text = self.random.choice(TEXTS)
        self._press("slash")
        await self.user.settle()
        if self.random.random() < 0.3:
            self.done.append(f"paste {text[:20]!r}")
            self.user.app.post_message(events.Paste(text))
        else:
            for character in text[:20]:
                self._press(character)
        self._press(self.random.choice(("enter", "escape", "up", "ctrl+u", "n")))

    def _press(self, key: str) -> None:
        self.done.append(key)
        name = _character_to_key(key) if len(key) == 1 else key
        self.user.app.post_message(events.Key(name, _character(key)))

    async def _click(self) -> None:
        x, y = self._place()
        for _ in range(self.random.choice((1, 1, 2, 3))):
            self._point(events.MouseDown, x, y, 1)
            self._point(events.MouseUp, x, y, 1)

    async def _drag(self) -> None:
        self._point(events.MouseDown, *self._place(), 1)
        for _ in range(self.random.randrange(4)):
            self._point(events.MouseMove, *self._place(), 1)
        self._point(events.MouseUp, *self._place(), 1)

    async def _move(self) -> None:
        self._point(events.MouseMove, *self._place(), 0)

    async def _wheel(self) -> None:
        kinds = (
            events.MouseScrollDown,
            events.MouseScrollUp,
            events.MouseScrollLeft,
            events.MouseScrollRight,
        )
        kind, place = self.random.choice(kinds), self._place()
        for _ in range(self.random.randrange(1, 9)):
            self._point(kind, *place, 0)

    def _place(self) -> tuple[int, int]:
        size = self.user.app.size
        return self.random.randrange(size.width), self.random.randrange(size.height)

    def _point(self, kind: type[events.MouseEvent], x: int, y: int, button: int) -> None:
        self.done.append(f"{kind.__name__} {x},{y}")
        shift, ctrl = (self.random.random() < 0.2 for _ in range(2))
        driver = self.user.app._driver
        assert driver is not None
        driver.process_message(kind(None, x, y, 0, 0, button, shift, False, ctrl, x, y))

    async def _resize(self) -> None:
        size = self.random.choice(SIZES)
        self.done.append(f"resize {size}")
        await self.user.pilot.resize_terminal(*size)

    # What must hold

    def _check(self) -> None:
        app = self.user.app
        assert app.is_running and app._exception is None
        self._check_screen()
        shown = self.user.screen.shown
        for view in (shown.view, self.user.screen.view):
            held = (
                view.viewport.holds(view.cursor.node) or view.cursor.node == view.viewport.zoom.node
            )
            # The table has frames without any width too.
            assert held or not view.tree.total[view.cursor.node], (
                view.cursor.node,
                view.viewport.zoom,
            )
        total = int(shown.view.tree.total[0])
        assert self.totals.setdefault(shown.selection, total) == total

    def _check_screen(self) -> None:
        """Every line has the width of the screen, and nothing in it that a terminal obeys."""
        size = self.user.app.size
        strips = self.user.app.screen._compositor.render_strips()
        assert len(strips) == size.height
        for strip in strips:
            assert strip.text.isprintable(), repr(strip.text)
            assert cell_len(strip.text) == strip.cell_length == size.width, repr(strip.text)


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


async def stay() -> None:
    """What quitting comes to in the middle of a walk."""


async def leave(user: User) -> None:
    """The app still answers, and quits."""
    await user.pilot.resize_terminal(120, 40)
    for _ in range(4):
        await user.press("escape")
    assert isinstance(user.app.screen, MainScreen)
    await user.press("question_mark", "escape")
    await user.pilot.press("q")
    await user.pilot.pause()
    assert user.app._exit


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is written is written to the test's own folder, and no editor is started."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("TMUX", raising=False)


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
