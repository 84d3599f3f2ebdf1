"""Random keys, texts and clicks in the app, and what must hold on the screen after each."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import ClassVar

import pytest
from rich.cells import cell_len
from textual import events
from textual.keys import _character_to_key

from flame.core.projection.selection import Selection
from flame.tui.main.screen import MainScreen
from flame.tui.shell.commands import COMMANDS
from tests.tui.conftest import User, _character

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
