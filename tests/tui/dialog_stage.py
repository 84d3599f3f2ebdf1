"""One dialog over an empty screen, driven as a user would."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from textual import events
from textual.app import App
from textual.keys import _character_to_key
from textual.pilot import Pilot
from textual.screen import Screen

from flame.tui.shell.base_app import Shell
from flame.tui.toolkit.dialog import Dialog, Entry
from flame.tui.toolkit.lines import Lines
from tests.support.waiting import PATIENCE

PENDING = object()
"""The result of a dialog that is still open."""


class Stage(App[None]):
    """An app with nothing but the styles of the real one."""

    CSS_PATH = Shell.CSS_PATH


class Player:
    """Presses keys in a dialog, reads it, and keeps its result."""

    def __init__(self, app: App[None], pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot
        self.result: Any = PENDING

    async def open(self, dialog: Screen[Any]) -> None:
        """Show ``dialog``."""
        await self.app.push_screen(dialog, self._left)
        await self.settle()

    def _left(self, result: object) -> None:
        self.result = result

    async def press(self, *keys: str) -> None:
        """Press ``keys`` one after the other."""
        for key in keys:
            name = _character_to_key(key) if len(key) == 1 else key
            self.app.post_message(events.Key(name, key if len(key) == 1 else None))
            await self.settle()

    async def type(self, text: str) -> None:
        """Put ``text`` into the entry in place of what is there."""
        self.dialog.query_one(Entry).value = text
        await self.settle()

    async def settle(self) -> None:
        """Wait until everything posted so far is handled."""
        for _ in range(3):
            handled = asyncio.Event()
            self.app.call_later(handled.set)
            await asyncio.wait_for(handled.wait(), PATIENCE)
            await self.pilot.pause(0)

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait for ``condition``."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                await asyncio.sleep(0.01)

    @property
    def dialog(self) -> Dialog[Any]:
        """The open dialog."""
        assert isinstance(self.app.screen, Dialog)
        return self.app.screen

    @property
    def entry(self) -> str | None:
        """The text in the entry; None where nothing is typed."""
        entry = self.dialog.query_one(Entry)
        return entry.value if entry.display else None

    def read(self) -> str:
        """What the dialog shows, line by line, the entry left out."""
        shown = []
        for widget in self.dialog.query(Lines):
            shown += [widget.render_line(y).text.rstrip() for y in range(widget.size.height)]
        return "\n".join(shown)

    def line(self, text: str) -> str:
        """The only line that holds ``text``."""
        (found,) = (line for line in self.read().splitlines() if text in line)
        return found

    async def click(self, text: str) -> None:
        """Click where ``text`` begins."""
        lines = self.dialog.query_one("#dialog", Lines)
        for y in range(lines.size.height):
            x = lines.render_line(y).text.find(text)
            if x >= 0:
                await self.pilot.click(lines, offset=(x, y))
                await self.settle()
                return
        raise AssertionError(f"{text!r} is not in {self.read()}")


@asynccontextmanager
async def stage(
    dialog: Screen[Any] | None = None, size: tuple[int, int] = (100, 40)
) -> AsyncIterator[Player]:
    """A player, with ``dialog`` open."""
    app = Stage()
    async with app.run_test(size=size) as pilot:
        player = Player(app, pilot)
        if dialog:
            await player.open(dialog)
        yield player
