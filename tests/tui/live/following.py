"""A user who watches a recording that goes on, with updates that come quickly."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from flame.core.live.window import ALL, LiveWindow
from flame.core.model.tree import TreeLayout
from flame.core.options import LoadOptions
from flame.core.projection.selection import Selection
from flame.options.config import DEFAULTS, Config
from flame.tui.live import worker as live_worker
from flame.tui.live.app import LiveApp
from flame.tui.live.screen import LiveScreen
from tests.support.waiting import PATIENCE
from tests.tui.conftest import User
from tests.tui.recording import Recording

ATTN, SOFTMAX, MLP = ("step", "attn", "gemm"), ("step", "attn", "softmax"), ("step", "mlp", "gemm")
BY_NAME = Selection(("nvtx", "kernel"), layout=TreeLayout(order="name"))


class Viewer(User):
    """A user who watches a recording."""

    recording: Recording

    @property
    def live(self) -> LiveScreen:
        """The screen that follows."""
        assert isinstance(self.screen, LiveScreen)
        return self.screen

    @property
    def total(self) -> int:
        """The metric over everything that is shown."""
        return int(self.screen.shown.view.tree.total[0])

    async def shows(self, total: int) -> None:
        """Wait until what is shown weighs ``total``, and is drawn."""
        await self.until(lambda: self.total == total)
        await self.settle()

    async def stays(self, total: int) -> None:
        """Give the app the time for some updates: what is shown weighs ``total`` all the time."""
        updates, end = self.recording.updates, time.monotonic() + PATIENCE
        while self.recording.updates < updates + 3:
            assert self.total == total and time.monotonic() < end
            await self.settle()


@pytest.fixture(autouse=True)
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Updates come quickly, however much of the machine the tests take."""
    monkeypatch.setattr(live_worker, "STEP", 0.05)
    monkeypatch.setattr(live_worker, "_SHARE", 0)


@asynccontextmanager
async def follow(
    recording: Recording,
    window: LiveWindow = ALL,
    size: tuple[int, int] = (120, 40),
    config: Config = DEFAULTS,
    selection: Selection = BY_NAME,
) -> AsyncIterator[Viewer]:
    """The app on ``recording``, once it shows anything."""
    app = LiveApp(recording, None, "train.py", LoadOptions(), selection, window, config)
    async with app.run_test(size=size) as pilot:
        user = Viewer(app, pilot)
        user.recording = recording
        if recording.now:
            await user.until(lambda: isinstance(app.screen, LiveScreen))
        await user.settle()
        yield user
        app.worker.stop()
