"""Show how far the loading of a trace is, and what went wrong."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.screen import Screen

from flame.tui.toolkit.fields import progress_bar, progress_text
from flame.tui.toolkit.lines import Line, Lines, Piece
from flame.tui.toolkit.text import cut, wrap

_BAR = 40


class LoadingScreen(Screen[None]):
    """Show progress until another screen takes its place; leaving it cancels the load."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter", "leave")]

    class Left(Message):
        """Say that the user does not want to wait, or has read the error."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title
        self._stage = "opening"
        self._done = 0
        self._expected = 0
        self._error = ""

    def compose(self) -> ComposeResult:
        yield Lines(self._compose_lines, id="loading")

    def report(self, stage: str, done: int, expected: int) -> None:
        """Show how far the load is; ``expected`` 0 is unknown."""
        self._stage, self._done, self._expected = stage, done, expected
        self._update()

    def fail(self, error: str) -> None:
        """Show why the load has ended."""
        self._error = error
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
        return [
            [Piece(cut(self._stage, width))],
            [Piece(progress_bar(self._done, self._expected, min(width, _BAR)), "key")],
            [Piece(progress_text(self._done, self._expected), "dim")],
            [],
            [Piece("esc cancels", "dim")],
        ]

    def action_leave(self) -> None:
        self.post_message(self.Left())
