"""What is drawn in several goes is sent as one picture, and never held back for long."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile
from threading import Event

import pytest
from textual._compositor import CompositorUpdate
from textual.app import App
from textual.drivers._writer_thread import WriterThread
from textual.drivers.linux_driver import LinuxDriver

from flame.tui.details import details_pane
from flame.tui.shell import base_app
from flame.tui.shell.base_app import BaseApp, is_behind
from flame.tui.timeline import layouts
from flame.tui.timeline import pane as timeline_pane
from flame.tui.timeline.prepare import TimelineWork
from flame.tui.views import sandwich_pane
from flame.tui.views.top_pane import TopPane
from tests.support.waiting import PATIENCE
from tests.tui.conftest import open_app


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[CompositorUpdate]]:
    """The pictures that are sent."""
    pictures: list[CompositorUpdate] = []

    def display(self: App[None], screen: object, renderable: object) -> None:
        if isinstance(renderable, CompositorUpdate):
            pictures.append(renderable)

    monkeypatch.setattr(App, "_display", display)
    yield pictures


async def test_a_view_is_sent_as_one_picture(
    decode: Path, sent: list[CompositorUpdate], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_app(decode, (200, 50)) as user:
        await user.rest()
        # What comes later is a picture of its own: details, columns that take long, and why
        # nothing ran over time.
        monkeypatch.setattr(details_pane, "REST", 1000.0)
        monkeypatch.setattr(timeline_pane, "DRAWN", 1000.0)
        monkeypatch.setattr(TopPane, "_work", lambda pane, work: None)
        monkeypatch.setattr(base_app, "_LONGEST_HOLD", 1000.0)
        for key in ("tab", "tab", "tab", "shift+tab"):  # the report comes section by section
            sent.clear()
            await user.pilot.press(key)
            await user.until(lambda: not user.app._held_until)
            assert len(sent) == 1, key


async def test_what_changes_meanwhile_is_drawn_at_the_end(
    decode: Path, sent: list[CompositorUpdate], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base_app, "_LONGEST_HOLD", 1000.0)
    async with open_app(decode) as user:
        await user.press("down")
        await user.rest()
        sent.clear()
        user.app.hold()
        await user.press("down")
        await user.rest()
        assert sent == []
        user.app.release()
        (picture,) = sent
        assert user.selected in picture.render_segments(user.app.console)
        await user.press("up")
        assert len(sent) > 1


async def test_nothing_is_held_for_long(
    decode: Path, sent: list[CompositorUpdate], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_app(decode) as user:
        await user.rest()
        sent.clear()
        user.app.hold()
        await user.press("down")
        await user.until(lambda: sent)


async def test_while_the_terminal_is_behind_nothing_is_drawn_and_then_the_last(
    decode: Path, sent: list[CompositorUpdate], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_app(decode) as user:
        await user.rest()
        behind = Event()
        behind.set()
        monkeypatch.setattr(base_app, "is_behind", lambda _: behind.is_set())
        sent.clear()
        await user.press("down", "down", "down")
        await user.rest()
        assert sent == []
        behind.clear()
        await user.until(lambda: sent)
        assert user.selected in sent[0].render_segments(user.app.console)
        sent.clear()
        await user.press("up")
        assert sent


def test_a_terminal_is_behind_until_it_takes_what_is_sent() -> None:
    driver = LinuxDriver.__new__(LinuxDriver)
    with TemporaryFile("w") as file:
        writer = driver._writer_thread = WriterThread(file)
        assert not is_behind(driver)
        writer.write("a picture")
        assert is_behind(driver)
        writer.start()
        writer.stop()
        assert not is_behind(driver)
    assert not is_behind(None)


def delay_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the rows of a timeline worked out once all else could be drawn."""
    is_ready, run, else_ready = BaseApp._is_ready, TimelineWork.run, Event()

    def is_ready_seen(self: BaseApp) -> bool:
        if ready := is_ready(self):
            else_ready.set()
        return ready

    def run_then(self: TimelineWork) -> None:
        else_ready.clear()
        assert else_ready.wait(PATIENCE)
        run(self)

    monkeypatch.setattr(layouts, "TIMEOUT", 0)
    monkeypatch.setattr(BaseApp, "_is_ready", is_ready_seen)
    monkeypatch.setattr(TimelineWork, "run", run_then)


async def test_what_is_worked_out_in_a_thread_is_waited_for(
    decode: Path, sent: list[CompositorUpdate], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base_app, "_LONGEST_HOLD", 1000.0)
    monkeypatch.setattr(sandwich_pane, "AT_ONCE", 0)
    delay_rows(monkeypatch)
    async with open_app(decode, (200, 50)) as user:
        await user.press("down", "down")
        await user.rest()
        monkeypatch.setattr(details_pane, "REST", 1000.0)
        monkeypatch.setattr(timeline_pane, "DRAWN", 1000.0)
        monkeypatch.setattr(TopPane, "_work", lambda pane, work: None)
        for key, shown in (("x", user.selected), ("tab", "Top"), ("tab", "GPU0 stream 7")):
            sent.clear()
            await user.pilot.press(key)
            await user.until(lambda: not user.app._held_until)
            (picture,) = sent
            assert not user.screen.pane.awaits_rows
            assert shown in picture.render_segments(user.app.console)


async def test_a_view_does_not_wait_for_the_clock_of_textual(
    decode: Path, sent: list[CompositorUpdate], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(details_pane, "REST", 1000.0)
    monkeypatch.setattr(base_app, "_LONGEST_HOLD", 1000.0)
    async with open_app(decode, (200, 50)) as user:
        await user.rest()
        sent.clear()
        user.screen._update_timer.stop()
        await user.pilot.press("down")
        user.app.hold()
        user.screen.refresh(layout=True)
        user.app.release_when_ready()
        await user.until(lambda: not user.app._held_until)
        assert len(sent) == 1
