"""Pictures of the report view: what a user sees first, and a section with its rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from flame.core.loading.inputs import Inputs
from flame.core.options import LoadOptions
from flame.options.config import Config
from flame.tui.main.app import FlameApp
from tests.tui.conftest import USUAL, User, main_screen
from tests.tui.report.runs import hungry, turn

Compare = Callable[..., bool]


@pytest.mark.deep
@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=lambda size: "{}x{}".format(*size))
@pytest.mark.parametrize("section", ["findings", "kernels"])
def test_report(tmp_path: Path, snap_compare: Compare, section: str, size: tuple[int, int]) -> None:
    async def play(pilot: Pilot[None]) -> None:
        assert isinstance(pilot.app, FlameApp)
        user = User(pilot.app, pilot)
        await user.until(lambda: main_screen(user.app))
        await user.press("exclamation_mark")
        await turn(user, section, 0)

    path = hungry(tmp_path / "run.sqlite")
    app = FlameApp(Inputs((path,)), LoadOptions(), USUAL, config=Config(theme="flame-dark"))
    assert snap_compare(app, terminal_size=size, run_before=play)
