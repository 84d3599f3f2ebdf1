"""Draw the pictures of the manual: views of the bundled samples, after a few keys."""

from __future__ import annotations

import asyncio
import os
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from textual.pilot import Pilot

from flame.core.loading.inputs import Inputs
from flame.core.options import LoadOptions
from flame.core.projection.labels import Naming
from flame.core.projection.selection import Selection
from flame.options.config import Config
from flame.tui.main.app import FlameApp
from flame.tui.main.screen import MainScreen
from flame.tui.toolkit.themes import NAMES

DOCS = Path(__file__).parent
SAMPLES = DOCS.parent / "samples"
DECODE = SAMPLES / "decode_small.sqlite"
TORCH = SAMPLES / "torch_small.pt.trace.json.gz"
SIX_LEVELS = SAMPLES / "six_levels"
SIZE = (140, 32)
DARK, LIGHT = NAMES[:2]
STACK = ("python", "launch", "nvtx", "kernel")
LAYERS = ("nvtx", "kernel")
STILL = 0.5
"""Seconds after which a screen that does not change is taken to be complete."""


class Scene(NamedTuple):
    """What is shown at the start, and the keys that follow."""

    levels: tuple[str, ...]
    keys: tuple[str, ...]
    theme: str = DARK
    trace: Path = DECODE
    options: LoadOptions = LoadOptions()


SCENES = {
    "screenshot": Scene(STACK, (*["down"] * 8, "right")),
    "sandwich": Scene(STACK, ("slash", *"ncclDev", "enter", "escape", "x")),
    "top": Scene(LAYERS, (*["tab"] * 2, *["down"] * 2)),
    "timeline": Scene(
        LAYERS,
        (*["tab"] * 3, "home", *["plus"] * 4, *["full_stop"] * 3, "d", "b", *["right"] * 12),
    ),
    "report": Scene(LAYERS, ("exclamation_mark",)),
    "torch": Scene(
        ("python", "nvtx", "kernel"), ("space",), trace=TORCH, options=LoadOptions(forward=True)
    ),
    "sass": Scene((*STACK, "sass", "stall"), ("a",), trace=SIX_LEVELS),
    "light": Scene(LAYERS, ("down", "down", "enter", "slash", *"moe|gemm", "enter"), LIGHT),
}


async def picture(scene: Scene) -> str:
    """The app's screen as SVG, at the end of ``scene``."""
    selection = Selection(levels=scene.levels, naming=Naming("short", fold=True))
    app = FlameApp(Inputs((scene.trace,)), scene.options, selection, config=Config(recent=False))
    async with app.run_test(size=SIZE) as pilot:
        app.theme = scene.theme
        while not isinstance(app.screen, MainScreen):
            await pilot.pause(0.05)
        for key in scene.keys:
            await pilot.press(key)
            await still(pilot, scene.trace)
        return await still(pilot, scene.trace)


async def still(pilot: Pilot[None], trace: Path) -> str:
    """The screen on ``trace`` as SVG, once it no longer changes."""
    shots = [""]
    while not shots[-1] or any(one != other for one, other in pairwise(shots[-3:])):
        await pilot.pause(STILL / 3)
        shots.append(pilot.app.export_screenshot(title=f"flame samples/{trace.name}"))
    return shots[-1]


def main() -> None:
    """Draw all of them."""
    os.chdir(SAMPLES.parent)  # from where the recording's source lines are found
    with tempfile.TemporaryDirectory() as empty:
        os.environ |= {"XDG_STATE_HOME": empty, "XDG_CONFIG_HOME": empty}
        for name, scene in SCENES.items():
            svg = asyncio.run(picture(scene))
            (DOCS / f"{name}.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
