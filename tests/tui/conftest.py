"""The app on a small trace, driven as a user would."""

from __future__ import annotations

import asyncio
import gc
import unicodedata
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pytest import TempPathFactory
from textual import events
from textual.keys import _character_to_key
from textual.pilot import Pilot

from flame.core.loading.inputs import Inputs
from flame.core.options import LoadOptions
from flame.core.projection.labels import Naming
from flame.core.projection.selection import Selection
from flame.options.config import DEFAULTS, Config
from flame.tui.details import details_pane
from flame.tui.main.app import FlameApp
from flame.tui.session.joined_rows import ALL_OPEN
from flame.tui.shell.base_app import BaseApp
from flame.tui.shell.start import Start
from flame.tui.toolkit.lines import RowView
from tests.support import tiers
from tests.support.waiting import PATIENCE
from tests.tui import traces
from tests.tui.terminals import Terminal

if TYPE_CHECKING:
    from flame.tui.main.screen import MainScreen

USUAL = Selection(naming=Naming("short", numbers=True))
"""What ``flame view`` shows without options."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Thin out the quick tier of tests that open the app."""
    here = [item for item in items if Path(__file__).parent in item.path.parents]
    opening = list(filter(tiers.drives_app, here))
    tiers.thin_out(opening)
    tiers.halve(opening)


class User:
    """Presses keys and reads the screen."""

    def __init__(self, app: BaseApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot

    @property
    def screen(self) -> MainScreen:
        """The main screen, also while a dialog lies over it."""
        found = main_screen(self.app)
        assert found is not None
        return found

    async def press(self, *keys: str) -> None:
        """Press ``keys`` one after the other and wait until nothing is worked out any more.

        ``Pilot.press`` waits, three times a key, for the whole process to be idle: on a busy
        machine that is half a second. Waiting for the messages is enough.
        """
        for key in keys:
            name = _character_to_key(key) if len(key) == 1 else key
            self.app.post_message(events.Key(name, _character(key)))
            await self.settle()

    async def rest(self) -> None:
        """Wait for everything, also for the facts of the selected frame."""
        await self.settle()
        await self.until(lambda: not self.screen.busy and not self.screen.parts.details.busy)
        await self.settle()

    async def settle(self) -> None:
        """Wait for running projections and for the screen."""
        for _ in range(2):
            handled = asyncio.Event()
            if self.app.call_later(handled.set):
                await asyncio.wait_for(handled.wait(), PATIENCE)
            await self.pilot.pause(0)
            await self.until(self._is_laid_out)
            if main_screen(self.app):
                await self.until(
                    lambda: not self.screen.busy and not self.screen.parts.details.waits
                )

    def _is_laid_out(self) -> bool:
        """Whether no widget waits for its new place: what has just appeared has no size yet.

        One that waits where the app is being left never has it.
        """
        screen = self.app.screen
        return bool(self.app._exit) or not any(
            widget._layout_required for widget in (screen, *screen.query("*"))
        )

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait for ``condition``."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                await asyncio.sleep(0.01)

    def read(self, name: str) -> str:
        """The text that the widget called ``name`` shows, line by line."""
        widget = self.app.screen.query_one(f"#{name}", RowView)
        lines = (widget.render_line(y).text for y in range(widget.size.height))
        return "\n".join(line.rstrip() for line in lines)

    @property
    def selected(self) -> str:
        """Name of the selected frame."""
        view = self.screen.view
        return view.tree.name(view.cursor.node)

    def open_chains(self) -> None:
        """Have a row for every frame."""
        self.screen.shown.view.viewport.lay_out(ALL_OPEN)
        self.screen._show()

    @property
    def levels(self) -> str:
        """The levels shown, comma-separated."""
        return ",".join(self.screen.view.tree.levels)

    @property
    def zoomed(self) -> str:
        """Name of the zoomed frame."""
        view = self.screen.view
        return view.tree.name(view.viewport.zoom.node)


def main_screen(app: BaseApp) -> MainScreen | None:
    """The main screen of ``app``, once there is one."""
    from flame.tui.main.screen import MainScreen

    return next((one for one in app.screen_stack if isinstance(one, MainScreen)), None)


def _character(key: str) -> str | None:
    """What a key called so types."""
    if len(key) == 1:
        return key
    try:
        return unicodedata.lookup(key.replace("_", " ").upper())
    except KeyError:
        return None


@asynccontextmanager
async def open_app(
    path: Path,
    size: tuple[int, int] = (120, 40),
    selection: Selection | None = None,
    config: Config = DEFAULTS,
    more: Sequence[Path] = (),
    options: LoadOptions | None = None,
    start: Start | None = None,
) -> AsyncIterator[User]:
    """The app on ``path``, and on ``more`` with it, loaded (or failed)."""
    read = options or LoadOptions()
    app = FlameApp(Inputs((path, *more)), read, selection or USUAL, None, config, start)
    async with app.run_test(size=size) as pilot:
        user = User(app, pilot)
        await user.until(lambda: app.failure or main_screen(app))
        await user.settle()
        yield user


@pytest.fixture(autouse=True)
def _at_nobodys_home(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: TempPathFactory) -> None:
    """What the developer's terminal, configuration and history are makes no difference."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("COLORTERM", "truecolor")
    for name in ("NO_COLOR", "FLAME_ASCII", "FLAME_CONFIG", "COLORFGBG"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def _cursor_rests_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for the details of each frame that a test passes."""
    monkeypatch.setattr(details_pane, "REST", 0.001)
    monkeypatch.setattr(details_pane, "TIMEOUT", 0.001)


@pytest.fixture
def decode(tmp_path: Path) -> Path:
    """See `traces.decode`."""
    return traces.decode(tmp_path / "decode.sqlite")


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    """Processes to be ended with the test."""
    started: list[Terminal] = []
    yield started
    for terminal in started:
        terminal.close()
    # So that what a process leaks is told here: see tests.support.garbage. It is young, and all
    # that earlier apps have left behind takes a second to look through.
    gc.collect(1)
