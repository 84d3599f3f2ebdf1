"""Show what is waited for until something has been recorded, and what to do about it."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.screen import Screen

from flame.core.live.status import LiveStatus
from flame.core.units import format_count
from flame.tui.live.status_line import clock
from flame.tui.toolkit.lines import Line, Lines, Piece
from flame.tui.toolkit.text import cut, printable, wrap

_RECORDED = (
    "Python frames and ranges appear with the first CUDA call or NVTX range.",
    "If that has been long ago: only programs that were started with the library are seen whole "
    "(flame record -- CMD); what is loaded late sees CUDA from then on, and no NVTX.",
)
_SAMPLED = ("Samples come about every 2 s, of threads that run: of one that waits there are none.",)


class WaitingScreen(Screen[None]):
    """Say that nothing has been recorded yet, and how long that has been so."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "leave")]

    class Left(Message):
        """Say that the user does not want to wait."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title
        self._status: LiveStatus | None = None
        self._over = False

    def compose(self) -> ComposeResult:
        yield Lines(self._lines, id="loading")

    def tell(self, status: LiveStatus, over: bool) -> None:
        """Show how the recording is doing; ``over``: there will be none."""
        self._status = status
        self._over = over or bool(status.sources and not status.running)
        for lines in self.query(Lines):
            lines.update()

    def _lines(self, width: int, height: int) -> list[Line]:
        title: Line = [Piece(" flame ", "accent"), Piece(f" {cut(self._title, width - 9)}")]
        tips = () if self._over else _SAMPLED if self._sampled else _RECORDED
        about: list[Line] = [[Piece(part, "dim")] for tip in tips for part in wrap(tip, width, 4)]
        return [title, [], [Piece(cut(self._said, width), "strong")], *about, [], *self._end(width)]

    @property
    def _said(self) -> str:
        status = self._status
        if status is None:
            return "looking for what it records …"
        what = "Python stack" if self._sampled else "CUDA call and no NVTX range"
        if self._over:
            return f"It has ended, and no {what} was recorded."
        if not status.sources:
            return f"No {what} yet …"
        who = f" of {format_count(len(status.sources))} processes" if status.sources[1:] else ""
        return f"No {what}{who} yet, {clock(status.elapsed / 1e9)} …"

    @property
    def _sampled(self) -> bool:
        """Whether py-spy does it: then nobody knows of any launch."""
        return self._status is not None and not len(self._status.rates.launches)

    def _end(self, width: int) -> list[Line]:
        notes = self._status.notes if self._status else ()
        lines: list[Line] = [
            [Piece(part, "warning")] for note in notes for part in wrap(printable(note), width, 3)
        ]
        leave = "q leaves" if self._over else "q leaves; the process goes on"
        return [*lines, [Piece(leave, "dim")]]

    def action_leave(self) -> None:
        self.post_message(self.Left())
