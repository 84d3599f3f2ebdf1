"""Pictures of whole screens, compared cell by cell and colour by colour."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from flame.core.options import LoadOptions
from flame.core.selection import Selection
from flame.tui.app import FlameApp
from flame.tui.screen import MainScreen
from tests.tui.conftest import User

Compare = Callable[..., bool]

SCENES = {
    "opened": (),
    "selected": ("down", "down", "down", "right", "down"),
    "narrow": (*["down"] * 3, "right", "right", "down", "right", "enter"),
    "searched": ("slash", *"gemm", "enter"),
    "levels": ("L", "down", "down"),
}


@pytest.mark.parametrize("size", [(120, 40), (80, 24)], ids=lambda size: "{}x{}".format(*size))
@pytest.mark.parametrize("scene", list(SCENES))
def test_scene(decode: Path, snap_compare: Compare, scene: str, size: tuple[int, int]) -> None:
    async def play(pilot: Pilot[None]) -> None:
        assert isinstance(pilot.app, FlameApp)
        user = User(pilot.app, pilot)
        await user.until(lambda: isinstance(pilot.app.screen, MainScreen))
        await user.press(*SCENES[scene])

    app = FlameApp(decode, LoadOptions(), Selection())
    assert snap_compare(app, terminal_size=size, run_before=play)
