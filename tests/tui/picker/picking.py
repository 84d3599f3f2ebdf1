"""A user of the picker of traces, and the files that it lists."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from flame.core.options import LoadOptions
from flame.core.projection.selection import Selection
from flame.options.config import DEFAULTS, Config
from flame.tui.main.app import FlameApp
from flame.tui.picker.app import PickingApp
from flame.tui.picker.screen import TracesScreen
from tests.tui.conftest import USUAL, User, main_screen

NEWEST = 2_000_000_000


def write(path: Path, age: float = 0, content: str = "main;work 3\nmain;rest 1\n") -> Path:
    path.write_text(content)
    os.utime(path, (NEWEST - age, NEWEST - age))
    return path


class PickerUser(User):
    """Presses keys in the picker and reads it."""

    @property
    def picker(self) -> TracesScreen:
        (found,) = (one for one in self.app.screen_stack if isinstance(one, TracesScreen))
        return found

    @property
    def names(self) -> list[str]:
        """What is listed."""
        return [item.name for item in self.picker.items]

    @property
    def on_top(self) -> str:
        """Which screen is seen."""
        return type(self.app.screen).__name__

    @property
    def line(self) -> str:
        """The selected row."""
        (found,) = (line for line in self.read("items").splitlines() if line.startswith("▸"))
        return found

    @property
    def marked(self) -> list[str]:
        """Names of the rows with a mark."""
        lines = self.read("items").splitlines()
        return [line[3:].split()[0] for line in lines if line[1:2] == "●"]

    async def listed(self) -> None:
        """Wait until all is found."""
        await self.until(lambda: not self.picker._looking)
        await self.settle()

    async def shown(self) -> list[str]:
        """Wait until traces are shown: which."""
        await self.until(lambda: main_screen(self.app))
        await self.settle()
        assert isinstance(self.app, FlameApp)
        return [str(path) for path in self.app.inputs.paths]

    async def refused(self) -> str:
        """Wait until the list is back: what it says."""
        await self.until(lambda: self.app.screen is self.picker and self.picker._error)
        await self.settle()
        return self.read("about")


@asynccontextmanager
async def picking(
    folder: Path = Path(),
    with_recent: bool = True,
    size: tuple[int, int] = (100, 30),
    config: Config = DEFAULTS,
    selection: Selection = USUAL,
    wait: bool = True,
) -> AsyncIterator[PickerUser]:
    app = PickingApp(folder, with_recent, LoadOptions(), selection, config=config)
    async with app.run_test(size=size) as pilot:
        user = PickerUser(app, pilot)
        await user.settle()
        if wait:
            await user.listed()
        yield user
