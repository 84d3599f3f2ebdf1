"""What lies below a dialog is seen as it is, and cannot be clicked."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.color import Color
from rich.segment import Segment
from textual._context import visible_screen_stack

from tests.tui.conftest import User, open_app


def cells(user: User, below: bool) -> list[list[tuple[str, Color | None, Color | None]]]:
    """Characters and colours of the screen on top, or of the one ``below``."""
    screen = user.app.screen_stack[-2] if below else user.app.screen
    visible_screen_stack.set([] if below else user.app._background_screens)
    rows = []
    for strip in screen._compositor.render_strips():
        row: list[tuple[str, Color | None, Color | None]] = []
        for text, style, _ in strip:
            assert style is not None
            row += [(one, style.color if one != " " else None, style.bgcolor) for one in text]
        rows.append(row)
    return rows


@pytest.mark.parametrize("key", ["L", "m", "w"])
async def test_the_screen_below_looks_as_it_is(decode: Path, key: str) -> None:
    async with open_app(decode) as user:
        await user.press("down", "down")
        await user.rest()
        await user.press(key)
        await user.rest()
        box = user.app.screen.query("#box, #page").first().region
        for y, (above, below) in enumerate(
            zip(cells(user, below=False), cells(user, below=True), strict=True)
        ):
            assert len(above) == len(below) == user.app.size.width
            for x, (one, other) in enumerate(zip(above, below, strict=True)):
                assert box.contains(x, y) or one == other


async def test_nothing_below_a_dialog_can_be_clicked(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("L")
        box = user.app.screen.query_one("#box").region
        styles = {
            user.app.screen.get_style_at(x, y).meta.get("@click")
            for y in range(user.app.size.height)
            for x in range(user.app.size.width)
            if not box.contains(x, y)
        }
        below = [
            segment.style.meta.get("@click")
            for strip in user.screen._compositor.render_strips()
            for segment in strip
            if isinstance(segment, Segment) and segment.style is not None
        ]
        assert any(below)
        assert styles == {None}
