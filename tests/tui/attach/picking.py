"""A user of the picker, on a finder that finds what it is told to."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from textual import events
from textual.keys import _character_to_key
from textual.pilot import Pilot

from flame.attach.discover.model import Discovery
from flame.options.config import DEFAULTS, Config
from flame.tui.attach.picker import Picker, PickerScreen
from flame.tui.attach.picker_rows import Item
from flame.tui.toolkit.lines import RowView
from tests.support.waiting import PATIENCE

NOTHING = Discovery((), ())


class FakeFinder:
    """Finds what it is told to, and counts how often it is asked."""

    def __init__(self, found: Discovery) -> None:
        self.found: Discovery | Exception = found
        self.gate = threading.Event()
        self.gate.set()
        self.looks = 0

    def __call__(self) -> Discovery:
        self.gate.wait(PATIENCE)
        self.looks += 1
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


def is_looking(app: Picker) -> bool:
    """Whether a look is going on, or has not been shown yet."""
    return any(isinstance(one, PickerScreen) and one._looking for one in app.screen_stack)


class User:
    """Presses keys in the picker and reads it."""

    def __init__(self, app: Picker, pilot: Pilot[None], find: FakeFinder) -> None:
        self.app = app
        self.pilot = pilot
        self.find = find

    async def press(self, *keys: str) -> None:
        for key in keys:
            name = _character_to_key(key) if len(key) == 1 else key
            self.app.post_message(events.Key(name, key if len(key) == 1 else None))
            await self.settle()

    async def settle(self) -> None:
        for _ in range(3):
            handled = asyncio.Event()
            if self.app.call_later(handled.set):
                await asyncio.wait_for(handled.wait(), PATIENCE)
            await self.pilot.pause(0)

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not condition():
                await asyncio.sleep(0.01)

    async def renew(self, found: Discovery | Exception) -> None:
        """Have ``found`` found at the next look, which is now."""
        self.find.found, looks = found, self.find.looks
        await self.press("r")
        await self.until(lambda: self.find.looks > looks and not is_looking(self.app))
        await self.settle()

    def read(self, name: str = "items") -> str:
        widget = self.app.screen.query_one(f"#{name}", RowView)
        lines = (widget.render_line(y).text for y in range(widget.size.height))
        return "\n".join(line.rstrip() for line in lines).rstrip()

    @property
    def selected(self) -> str:
        """The selected row."""
        (found,) = (line for line in self.read().splitlines() if line.startswith("▸"))
        return found

    @property
    def left_with(self) -> Item | None:
        """What the app was left with."""
        assert not self.app.is_running or self.app._exit
        return self.app.chosen

    async def click(self, text: str, times: int = 1) -> None:
        rows = self.app.screen.query_one("#items", RowView)
        (y,) = (y for y, line in enumerate(self.read().splitlines()) if text in line)
        await self.pilot.click(rows, offset=(20, y), times=times)
        await self.settle()


@asynccontextmanager
async def opened(
    found: Discovery,
    size: tuple[int, int] = (100, 30),
    config: Config = DEFAULTS,
    wait: bool = True,
) -> AsyncIterator[User]:
    find = FakeFinder(found)
    if not wait:
        find.gate.clear()
    app = Picker(find, config)
    async with app.run_test(size=size) as pilot:
        user = User(app, pilot, find)
        await user.settle()
        if wait:
            await user.until(lambda: find.looks and not is_looking(app))
            await user.settle()
        yield user
        find.gate.set()
