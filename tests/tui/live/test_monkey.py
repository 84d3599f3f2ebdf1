"""Random walks through the app while a recording goes on, stops, empties and ends."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import ClassVar

import pytest

from flame.core.live.status import SourceState
from flame.core.live.window import SECOND, WINDOWS
from flame.tui.live import worker as live_worker
from flame.tui.shell.commands import LIVE_COMMANDS
from tests.support.tiers import deep_except
from tests.tui.live.following import Viewer, follow
from tests.tui.monkey import SIZES, Monkey, stay
from tests.tui.monkey import _elsewhere as _elsewhere
from tests.tui.recording import MS, Recording

pytestmark = pytest.mark.deep

NAMES = ("step", "attn", "mlp", "\x1b[2J", "絵🚀", "x" * 300, "layers.1", "layers.10", "gemm")


class LiveMonkey(Monkey):
    """Has things recorded between what it does."""

    WAYS: ClassVar[tuple[str, ...]] = (*Monkey.WAYS, *["record"] * 10)

    def __init__(self, user: Viewer, seed: str) -> None:
        super().__init__(user, seed)
        self.recording = user.recording
        bound = [key for one in LIVE_COMMANDS for key in one.keys.split(",") if key]
        self.keys = [*(key for key in bound if key not in ("q", "o")), *"pWMpWM"]

    async def _record(self) -> None:
        self.done.append("record")
        if self.random.random() < 0.2:
            self.recording.wait(self.random.choice((SECOND, 9 * SECOND, 20 * SECOND, 70 * SECOND)))
        for _ in range(self.random.randrange(4)):
            stack = self.random.choices(NAMES, k=self.random.randrange(1, 6))
            self.recording.run(tuple(stack), each=self.random.choice((1, MS, 300 * MS)))
        if self.random.random() < 0.02:
            self.recording.end(self.random.choice(list(SourceState)))

    def _check(self) -> None:
        self.totals.clear()  # What a selection shows changes all the time.
        super()._check()


async def walk(folder: Path, seed: int, steps: int) -> None:
    """A walk of ``steps`` steps on a recording of its own."""
    recording, random = Recording(folder), Random(f"live {seed}")
    recording.run(("step", "gemm"))
    window, size = random.choice(WINDOWS[:3]), random.choice(SIZES)
    async with follow(recording, window, size) as user:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(user.app, "action_quit", stay)
            await LiveMonkey(user, f"live {seed}").walk(steps)
    assert user.app.crash is None


@pytest.mark.parametrize("seed", deep_except([0], range(3)))
async def test_whatever_is_typed_while_it_goes_on(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_worker, "STEP", 0.02)
    monkeypatch.setattr(live_worker, "_SHARE", 0)
    await walk(tmp_path, seed, steps=30)
