"""What is drawn in several goes is sent as one picture, and never held back for long."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console
from textual._compositor import CompositorUpdate
from textual.app import App

from flame.tui.details import details_pane
from flame.tui.shell import base_app
from tests.tui.conftest import User, open_app


class Text(CompositorUpdate):
    """An update that writes ``text``."""

    def __init__(self, text: str) -> None:
        self.text = text

    def render_segments(self, console: Console) -> str:
        return self.text


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[CompositorUpdate]]:
    """The pictures that are sent."""
    pictures: list[CompositorUpdate] = []

    def display(self: App[None], screen: object, renderable: object) -> None:
        if isinstance(renderable, CompositorUpdate):
            pictures.append(renderable)

    monkeypatch.setattr(App, "_display", display)
    yield pictures


def written(user: User, picture: CompositorUpdate) -> str:
    return picture.render_segments(user.app.console)


async def test_a_view_is_sent_as_one_picture(
    decode: Path, sent: list[CompositorUpdate], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_app(decode, (200, 50)) as user:
        monkeypatch.setattr(details_pane, "REST", 1000.0)
        monkeypatch.setattr(base_app, "_LONGEST_HOLD", 1000.0)
        for key in ("tab", "tab", "tab", "tab", "shift+tab"):
            sent.clear()
            await user.pilot.press(key)
            await user.until(lambda: not user.app._held_until)
            assert len(sent) == 1, key
            if user.screen.parts.details._timer is not None:
                user.screen.parts.details._wake()


async def test_what_is_held_is_sent_in_its_order(
    decode: Path, sent: list[CompositorUpdate], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base_app, "_LONGEST_HOLD", 1000.0)
    async with open_app(decode) as user:
        await user.rest()
        sent.clear()
        user.app.hold()
        for text in ("\x1b[1;1Hab", "\x1b[1;2Hc"):
            user.app._display(user.app.screen, Text(text))
        assert sent == []
        user.app.release()
        assert [written(user, picture) for picture in sent] == ["\x1b[1;1Hab\x1b[1;2Hc"]
        user.app._display(user.app.screen, Text("\x1b[1;1Hab"))
        assert len(sent) == 2


async def test_nothing_is_held_for_long(
    decode: Path, sent: list[CompositorUpdate], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_app(decode) as user:
        await user.rest()
        sent.clear()
        user.app.hold()
        user.app._display(user.app.screen, Text("\x1b[1;1Hab"))
        await user.until(lambda: sent)
