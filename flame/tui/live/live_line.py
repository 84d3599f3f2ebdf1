"""The line that says how a recording goes on: state, window, sparklines, and what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

from flame.core.live.status import LiveStatus, SourceState
from flame.core.live.window import LiveWindow
from flame.tui.live.status_line import live_line
from flame.tui.toolkit.lines import Line, Piece, line_width
from flame.tui.toolkit.palette import Palette
from flame.tui.toolkit.text import cut_start

_STATES = 17
"""Cells that the state keeps, so that what follows it stands still."""

_ENDS = {
    SourceState.ENDED: "ended",
    SourceState.KILLED: "killed",
    SourceState.FULL: "full",
    SourceState.STOPPED: "stopped",
    SourceState.UNREADABLE: "unreadable",
}


@dataclass
class Pulse:
    """How the recording goes on: ``paused`` since when (monotonic seconds), None while it goes."""

    status: LiveStatus
    window: LiveWindow
    paused: float | None = None
    gpus: bool = True

    def line(self, palette: Palette, width: int) -> Line:
        """All of it, in ``width`` cells."""
        state = [self._state(), *self._shown()]
        room = width - line_width(state)
        if room < 0:
            return [Piece(cut_start("".join(piece.text for piece in state), width))]
        return [*state, *live_line(self.status, palette, room, self.gpus)]

    def _state(self) -> Piece:
        if self.paused is not None:
            behind = clock(monotonic() - self.paused)
            return Piece(f" paused · {behind} behind ".ljust(_STATES), "warning", "screen.pause")
        if self.status.halted:
            return Piece(" halted ".ljust(_STATES), "warning", "screen.pause")
        if self.status.running:
            return Piece(" ● live ", "accent", "screen.pause")
        return Piece(f" {self._end} ", "strong")

    @property
    def _end(self) -> str:
        """How it has ended: as the processes have that ended worst."""
        states = {one.state for one in self.status.sources}
        return next((word for state, word in reversed(_ENDS.items()) if state in states), "waiting")

    def _shown(self) -> Line:
        elapsed = clock(self.status.elapsed / 1e9)
        window = Piece(f" {self.window.title} ▾", "key", "screen.window(1)")
        return [window, Piece(f" · {elapsed} ", "dim")]


def clock(seconds: float) -> str:
    """``3:07`` of 187 seconds, ``1:02:33`` from an hour on."""
    minutes, seconds = divmod(int(max(seconds, 0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def news(before: LiveStatus, status: LiveStatus) -> str:
    """What has become of the processes since ``before``: one short sentence, mostly none."""
    known = {(one.pid, one.label): one.state for one in before.sources}
    ended = [
        one for one in status.sources if known.get((one.pid, one.label)) is SourceState.RUNNING
    ]
    ended = [one for one in ended if one.state is not SourceState.RUNNING]
    if ended and not status.running:
        return _all_ended(ended[-1].state, len(status.sources))
    if ended:
        return _became(_named(ended[0].label, len(ended)), ended[0].state)
    pids = {one.pid for one in before.sources}
    new = [one for one in status.sources if one.pid not in pids]
    return f"{_named(new[0].label, len(new))} joined" if new and before.sources else ""


def _all_ended(state: SourceState, number: int) -> str:
    who = "the process" if number == 1 else f"all {number} processes"
    return f"{_became(who, state)}; what is shown stays, S saves it"


def _became(who: str, state: SourceState) -> str:
    gone = state in (SourceState.ENDED, SourceState.KILLED)
    return f"{who} {state.value}" if gone else f"{who}: {state.value}"


def _named(label: str, number: int) -> str:
    return label if number == 1 else f"{label} and {number - 1} more"
