"""Keep what the terminal answers late from being read as keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from textual._xterm_parser import XTermParser
from textual.app import App
from textual.driver import Driver
from textual.drivers import linux_driver
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

from flame.console.background_colour import TerminalBackground
from flame.tui.toolkit.background import hand_in


class BackgroundTold(Message):
    """Say that the terminal has told its background after all."""


def driver_for(background: TerminalBackground) -> type[Driver] | None:
    """Return the driver of a terminal that may still answer; None, Textual's own, for others."""
    if not (background.pending or background.early):
        return None

    class ListeningDriver(LinuxDriver):
        """Take the answers out of what the terminal sends."""

        def start_application_mode(self) -> None:
            background.release()  # or Textual would leave the terminal as it is now
            super().start_application_mode()  # type: ignore[no-untyped-call]

        def run_input_thread(self) -> None:
            tell = partial(_tell, self._app)
            # Textual has no other way to put something between terminal and keys.
            vars(linux_driver)["XTermParser"] = partial(_Listener, background, tell)
            try:
                super().run_input_thread()
            finally:
                vars(linux_driver)["XTermParser"] = XTermParser

    return ListeningDriver


def _tell(app: App[Any]) -> None:
    hand_in(BackgroundTold(), app.post_message)


class _Listener(XTermParser):
    """Make keys of what is typed, also of what was typed before the app was there."""

    def __init__(
        self, background: TerminalBackground, tell: Callable[[], None], debug: bool = False
    ) -> None:
        super().__init__(debug)
        self._background = background
        self._tell = tell

    def feed(self, data: str) -> Iterable[Message]:
        if not data:  # the end
            return super().feed(data)
        known = self._background.light
        rest = self._background.take(data)
        if self._background.light is not known:
            self._tell()
        return super().feed(rest) if rest else ()

    def tick(self) -> Iterable[Message]:
        early, self._background.early = self._background.early, ""
        if early:
            yield from super().feed(early)
        yield from super().tick()
