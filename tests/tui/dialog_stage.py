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

from flame.tui.shell.base_app import BaseApp
from flame.tui.toolkit.dialog import Dialog, TextEntry
from tests.support.waiting import PATIENCE

PENDING = object()
"""The result of a dialog that is still open."""


class Stage(App[None]):
    """An app with nothing but the styles of the real one."""

    CSS_PATH = BaseApp.CSS_PATH


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
        self.dialog.query_one(TextEntry).value = text
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
        entry = self.dialog.query_one(TextEntry)
        return entry.value if entry.display else None

    def read(self) -> str:
        """What the dialog shows, line by line."""
        return "\n".join(line.rstrip() for line in self._lines())

    def _lines(self) -> list[str]:
        """The lines in the box as they are on the screen, the entry's left out."""
        box, entry = self.dialog.query_one("#box"), self.dialog.query_one(TextEntry)
        x, y, width, height = box.content_region
        strips = self.dialog._compositor.render_strips()
        rows = range(y, y + height)
        typed = entry.region.y if entry.display else -1
        return ["" if row == typed else strips[row].crop(x, x + width).text for row in rows]

    def line(self, text: str) -> str:
        """The only line that holds ``text``."""
        (found,) = (line for line in self.read().splitlines() if text in line)
        return found

    async def click(self, text: str) -> None:
        """Click where ``text`` begins."""
        left, top, _, _ = self.dialog.query_one("#box").content_region
        for y, line in enumerate(self._lines()):
            x = line.find(text)
            if x >= 0:
                widget, region = self.dialog.get_widget_at(left + x, top + y)
                await self.pilot.click(widget, offset=(left + x - region.x, top + y - region.y))
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
