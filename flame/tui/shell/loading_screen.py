"""Show how far the loading of a trace is, and what went wrong."""

from __future__ import annotations

from time import monotonic
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.screen import Screen
from textual.widgets import ProgressBar

from flame.core.load_progress import WHOLE
from flame.tui.toolkit.lines import Line, Lines, Piece
from flame.tui.toolkit.text import cut, wrap


class LoadingScreen(Screen[None]):
    """Show progress until another screen takes its place; leaving it cancels the load."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter", "leave")]

    class Left(Message):
        """Say that the user does not want to wait, or has read the error."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title
        self._stage = "opening"
        self._error = ""
        self._begin = monotonic()

    def compose(self) -> ComposeResult:
        with Vertical(id="loading-box"):
            yield Lines(self._compose_lines, id="loading")
            yield ProgressBar(WHOLE, id="loading-bar")
            yield Lines(self._compose_end, id="loading-end")

    def on_mount(self) -> None:
        self._clock = self.set_interval(1, self._update)

    def on_screen_suspend(self) -> None:
        """Draw no more, nor have the bar do so: another screen has taken the place for good."""
        self._clock.stop()
        self.query("#loading-box").remove()

    def report(self, stage: str, done: int, expected: int) -> None:
        """Show how far the load is, of `WHOLE`; of an ``expected`` 0 it is unknown."""
        self._stage = stage
        self.set_class(not expected, "-unknown")
        for bar in self.query(ProgressBar):
            bar.update(progress=done)
        self._update()

    def fail(self, error: str) -> None:
        """Show why the load has ended."""
        self._error = error
        self.add_class("-failed")
        self._update()

    def _update(self) -> None:
        for lines in self.query(Lines):
            lines.update()

    def _compose_lines(self, width: int, height: int) -> list[Line]:
        title: Line = [Piece(" flame ", "accent"), Piece(f" {cut(self._title, width - 9)}")]
        return [title, [], *(self._failure(width) if self._error else self._progress(width))]

    def _failure(self, width: int) -> list[Line]:
        error: list[Line] = [[Piece(part, "warning")] for part in wrap(self._error, width, 12)]
        return [*error, [], [Piece("q leaves", "dim")]]

    def _progress(self, width: int) -> list[Line]:
        return [[Piece(cut(self._stage, width))]]

    def _compose_end(self, width: int, height: int) -> list[Line]:
        minutes, seconds = divmod(int(monotonic() - self._begin), 60)
        so_far = f"{minutes}:{seconds:02} so far"
        left = "" if self.has_class("-unknown") else f"{'left':>{max(width - len(so_far), 0)}}"
        return [[Piece(f"{so_far}{left}", "dim")], [], [Piece("esc cancels", "dim")]]

    def action_leave(self) -> None:
        self.post_message(self.Left())
