"""What a key sends to the terminal: over a slow link that is how long its answer takes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from textual._compositor import CompositorUpdate
from textual.app import App

from tests.support.paths import SAMPLES
from tests.tui.conftest import User, open_app

SIZE = (200, 50)
ROW, FRAME, DIALOG, VIEW = 1_000, 6_000, 7_000, 20_000
"""Bytes of a picture: of another row of a list; of another frame, with its details; of a dialog
that opens or closes; of a view, of which 20 KB take a second over a link that people call slow. A
third to two thirds of them are sent. How many pictures an answer is depends on the load. Drawn in
full a view takes 60 to 100 KB, and so does a dialog that dims what is below it; colours that are
set for each piece double that."""

KEYS = (
    *(("down", FRAME), ("down", FRAME), ("enter", VIEW), ("u", VIEW), ("i", VIEW)),
    *(("question_mark", VIEW), ("escape", VIEW), ("ctrl+p", DIALOG), ("escape", DIALOG)),
    *(("L", DIALOG), ("down", ROW), ("escape", DIALOG), ("p", DIALOG), ("escape", DIALOG)),
    *(("tab", VIEW), ("tab", VIEW), ("down", FRAME), ("pagedown", VIEW)),
    *(("tab", VIEW), ("plus", VIEW), ("T", VIEW)),
    *(("tab", VIEW), ("down", FRAME), ("right", FRAME), ("enter", VIEW), ("escape", VIEW)),
)
"""Keys, and what each may send at once: in the icicle, over it, Top, the timeline, the report."""


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The bytes of each picture that goes to the terminal."""
    pictures: list[int] = []

    def display(self: App[None], screen: object, renderable: object) -> None:
        if isinstance(renderable, CompositorUpdate):
            pictures.append(len(renderable.render_segments(self.console).encode()))

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(App, "_display", display)
    yield pictures


async def test_no_key_takes_a_second_at_20_kb_a_second(sent: list[int]) -> None:
    async with open_app(SAMPLES / "decode_small.sqlite", SIZE) as user:
        await all_drawn(user)
        assert sum(sent) < VIEW
        for place, (key, most) in enumerate(KEYS):
            sent.clear()
            await user.press(key)
            await all_drawn(user)
            assert 0 < max(sent, default=0) <= most, (place, key)
            assert sum(sent) <= VIEW, (place, key)


async def all_drawn(user: User) -> None:
    """Wait until nothing more comes: of a frame, of the report, of a view that is drawn as one."""
    await user.rest()
    await user.until(lambda: not user.screen.reports.busy)
    await user.rest()
    await user.until(lambda: not user.app._held_until)
