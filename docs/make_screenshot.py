"""Draws docs/screenshot.svg: the app on the bundled sample, after a few keys."""

from __future__ import annotations

import asyncio
from pathlib import Path

from flame.core.labels import Naming
from flame.core.names import parse_rename
from flame.core.options import LoadOptions
from flame.core.selection import Selection
from flame.tui.app import FlameApp
from flame.tui.screen import MainScreen

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "samples" / "decode_small.sqlite"
SIZE = (150, 34)
LEVELS = ("python", "launch", "nvtx", "kernel")
FOLDED = Naming(rename=(parse_rename(r"layers\.\d+=layers.*"),))
KEYS = ("down",) * 8 + ("right",)


async def screenshot() -> str:
    """The app's screen as SVG."""
    app = FlameApp(SAMPLE, LoadOptions(), Selection(levels=LEVELS, naming=FOLDED))
    async with app.run_test(size=SIZE) as pilot:
        while not isinstance(app.screen, MainScreen):
            await pilot.pause(0.05)
        await pilot.press(*KEYS)
        await pilot.pause()
        return app.export_screenshot(title="flame samples/decode_small.sqlite")


if __name__ == "__main__":
    (ROOT / "docs" / "screenshot.svg").write_text(asyncio.run(screenshot()), encoding="utf-8")
