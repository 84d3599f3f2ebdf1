"""Pictures of whole screens, compared cell by cell and colour by colour."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from flame.core.loading.inputs import Inputs
from flame.core.options import LoadOptions
from flame.core.projection.selection import Selection
from flame.options.config import Config
from flame.tui.main.app import FlameApp
from tests.support.tiers import deep_except
from tests.tui.conftest import User, main_screen

Compare = Callable[..., bool]

SCENES = {
    "opened": (),
    "selected": ("down", "down", "down", "right", "down"),
    "narrow": (*["down"] * 3, "right", "right", "down", "right", "enter"),
    "searched": ("slash", *"gemm", "enter"),
    "filtered": (*["down"] * 3, "A", "i"),
    "sandwich": (*["down"] * 5, "x", "down"),
    "top": ("tab", "tab", "down", "s"),
    "timeline": ("tab", "tab", "tab", "right", "right", "b", "right"),
    "levels": ("L", "down", "down"),
    "filters": (*["down"] * 3, "f", "down"),
    "export": ("e", "down"),
    "help": ("question_mark",),
}
SIZES = ((80, 24), (120, 40))
LARGE = ("opened", "selected", "sandwich", "top", "timeline")
THEMES = ("flame-light", "flame-contrast", "flame-ansi")
THEMED = ("selected", "searched", "top", "timeline")


def taken(path: Path, compare: Compare, scene: str, size: tuple[int, int], theme: str) -> bool:
    """Whether ``scene`` looks as it did when its picture was taken."""

    async def play(pilot: Pilot[None]) -> None:
        assert isinstance(pilot.app, FlameApp)
        user = User(pilot.app, pilot)
        await user.until(lambda: main_screen(user.app))
        await user.press(*SCENES[scene])
        await user.rest()

    app = FlameApp(Inputs((path,)), LoadOptions(), Selection(), config=Config(theme=theme))
    return compare(app, terminal_size=size, run_before=play)


@pytest.fixture(autouse=True)
def _in_one_folder(decode: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The export dialog names the current folder, which has to be the same everywhere."""
    monkeypatch.setattr(Path, "cwd", lambda: Path("/home/user"))


@pytest.mark.parametrize(
    "size", deep_except(SIZES[-1:], SIZES), ids=lambda size: "{}x{}".format(*size)
)
@pytest.mark.parametrize("scene", list(SCENES))
def test_scene(decode: Path, snap_compare: Compare, scene: str, size: tuple[int, int]) -> None:
    assert taken(decode, snap_compare, scene, size, "flame-dark")


@pytest.mark.parametrize("scene", deep_except(LARGE[:2], LARGE))
def test_large(decode: Path, snap_compare: Compare, scene: str) -> None:
    assert taken(decode, snap_compare, scene, (250, 70), "flame-dark")


@pytest.mark.parametrize("theme", deep_except(THEMES[:1], THEMES))
@pytest.mark.parametrize("scene", THEMED)
def test_theme(decode: Path, snap_compare: Compare, scene: str, theme: str) -> None:
    assert taken(decode, snap_compare, scene, (120, 40), theme)
