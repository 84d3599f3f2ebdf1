"""Show on one line how a recording is doing: state, window, sparklines, drops and lag."""

from __future__ import annotations

from time import monotonic
from typing import NamedTuple

import numpy as np
from rich.style import Style

from flame.core.columns import Column
from flame.core.lazy_dataclass import dataclass
from flame.core.live.status import LiveStatus, Rates, SourceState
from flame.core.live.window import SECOND, LiveWindow
from flame.core.model.frames import Kind
from flame.core.units import (
    BLOCKS,
    format_bytes,
    format_counted,
    format_ns,
    format_short,
    format_whole_percent,
)
from flame.tui.shell.actions import Action
from flame.tui.toolkit.lines import Line, Piece, line_width
from flame.tui.toolkit.palette import Palette
from flame.tui.toolkit.text import cut_start

LATE = SECOND
"""ns of lag from which on it is said: what is fresher than that is fresh."""

_MUCH = 32 << 20
"""Bytes to be read from which on they are said: it takes a while, however old they are."""

_EIGHTHS = len(BLOCKS) - 1
_FEWEST = 5
"""Bars of which a sparkline has at least so many, or is left out."""

_GAP = 3
_NUMBER = 8
"""Cells of the number of now, the same for all of them so that nothing moves."""

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
class LiveStatusLine:
    """Hold how a recording is doing, and say it on a line.

    ``paused`` is since when (monotonic seconds); None: it goes on.
    """

    status: LiveStatus
    window: LiveWindow
    paused: float | None = None
    gpus: bool = True

    def line(self, palette: Palette, width: int) -> Line:
        """Return all of it, in ``width`` cells."""
        state = [self._state(), *self._shown()]
        room = width - line_width(state)
        if room < 0:
            return [Piece(cut_start("".join(piece.text for piece in state), width))]
        return [*state, *rates_line(self.status, palette, room, self.gpus)]

    def _state(self) -> Piece:
        if self.paused is not None:
            behind = clock(monotonic() - self.paused)
            return Piece(
                f" paused · {behind} behind ".ljust(_STATES), "warning", Action.PAUSE.click()
            )
        if self.status.halted:
            return Piece(" halted ".ljust(_STATES), "warning", Action.PAUSE.click())
        if self.status.running:
            return Piece(" ● live ", "accent", Action.PAUSE.click())
        return Piece(f" {self._end} ", "strong")

    @property
    def _end(self) -> str:
        """How it has ended: as the processes have that ended worst."""
        states = {source.state for source in self.status.sources}
        return next((word for state, word in reversed(_ENDS.items()) if state in states), "waiting")

    def _shown(self) -> Line:
        elapsed = clock(self.status.elapsed / 1e9)
        window = Piece(f" {self.window.title} ▾", "key", Action.WINDOW.click(1))
        return [window, Piece(f" · {elapsed} ", "dim")]


def clock(seconds: float) -> str:
    """``3:07`` of 187 seconds, ``1:02:33`` from an hour on."""
    minutes, seconds = divmod(int(max(seconds, 0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def news(before: LiveStatus, status: LiveStatus) -> str:
    """Return what has become of the processes since ``before``: one short sentence, mostly none."""
    states = {(source.pid, source.label): source.state for source in before.sources}
    ended = [
        now for now in status.sources if states.get((now.pid, now.label)) is SourceState.RUNNING
    ]
    ended = [now for now in ended if now.state is not SourceState.RUNNING]
    if ended and not status.running:
        return _all_ended(ended[-1].state, len(status.sources))
    if ended:
        return _became(_named(ended[0].label, len(ended)), ended[0].state)
    pids = {source.pid for source in before.sources}
    new = [source for source in status.sources if source.pid not in pids]
    return f"{_named(new[0].label, len(new))} joined" if new and before.sources else ""


def _all_ended(state: SourceState, number: int) -> str:
    who = "the process" if number == 1 else f"all {number} processes"
    return f"{_became(who, state)}; what is shown stays, S saves it"


def _became(who: str, state: SourceState) -> str:
    gone = state in (SourceState.ENDED, SourceState.KILLED)
    return f"{who} {state.value}" if gone else f"{who}: {state.value}"


def _named(label: str, number: int) -> str:
    return label if number == 1 else f"{label} and {number - 1} more"


class _StatusPart(NamedTuple):
    """A title, a sparkline of ``values``, and the number of now; ``top`` 0: the highest bar's."""

    title: str
    values: Column
    number: int
    top: float
    tone: Style
    now: str

    @property
    def least(self) -> int:
        """Cells that it takes without its sparkline."""
        return len(self.title) + _NUMBER

    def line(self, cells: int) -> Line:
        """With a sparkline of at most ``cells``."""
        bars = sparkline(self.values, cells, self.top, self.number)
        return [
            Piece(f"{self.title} ", "dim"),
            Piece(bars, self.tone),
            Piece(self.now.rjust(_NUMBER - (not bars))),
        ]


def rates_line(status: LiveStatus, palette: Palette, width: int, gpus: bool = True) -> Line:
    """Return what GPUs and program did within the last minute and do now, and what goes wrong.

    ``gpus``: whether anything has run on a GPU. Nothing is said of rates that nobody knows, as of
    a process that is sampled. Where there are few cells sparklines get shorter
    and go, then the launches go, then the GPUs; what goes wrong stays.
    """
    wrong = _wrong(status)
    parts = [_busy(status.rates, palette)] if gpus else []
    parts += [_launches(status.rates, palette)]
    parts = [part for part in parts if len(part.values)]
    left = _fitting(parts, width - 1 - line_width(wrong) - (_GAP if wrong else 0))
    if left:
        return [Piece(" "), *left, Piece(" " * _GAP), *wrong] if wrong else [Piece(" "), *left]
    text = "".join(piece.text for piece in wrong)
    return [Piece(cut_start(f" {text}", width), "warning")] if text else []


def sparkline(values: Column, cells: int, top: float = 0, number: int = 0) -> str:
    """``values``, oldest first, as at most ``cells`` bars; ``top`` (0: the highest) is a full one.

    A bar is the mean of as many values as it stands for; above zero it is never drawn as nothing.
    ``number`` of the step after the last: with it bars begin at the same steps at every look, and
    what has been drawn moves on without changing. The newest then stands for what there is of it.
    """
    if cells < 1 or not len(values):
        return ""
    each = -(-len(values) // cells)
    newest = number % each or each
    # The oldest values are left out where they are too few for a bar of their own.
    bars = len(values) // each
    first = len(values) - newest - (bars - 1) * each
    sizes = np.array([*[each] * (bars - 1), newest])
    means = np.add.reduceat(values, first + each * np.arange(bars)) / sizes
    full = top or max(float(means.max()), 1e-9)
    heights = np.ceil(np.clip(means / full, 0.0, 1.0) * _EIGHTHS).astype(int)
    return "".join(BLOCKS[height] for height in heights.tolist())


def _busy(rates: Rates, palette: Palette) -> _StatusPart:
    now = rates.busy[-_steps_of_now(rates) :]
    percent = 100.0 * min(float(now.mean()), 1.0) if len(now) else 0.0
    now_said, tone = format_whole_percent(percent), palette.ink(Kind.KERNEL)
    return _StatusPart("GPU", rates.busy, rates.number, 1.0, tone, now_said)


def _launches(rates: Rates, palette: Palette) -> _StatusPart:
    now = rates.launches[-_steps_of_now(rates) :]
    each = float(now.sum()) * SECOND / (len(now) * rates.step) if len(now) else 0.0
    now_said, tone = f"{format_short(each)}/s", palette.ink(Kind.LAUNCH)
    return _StatusPart("launches", rates.launches, rates.number, 0.0, tone, now_said)


def _steps_of_now(rates: Rates) -> int:
    """The newest steps, about a second of them."""
    return max(round(SECOND / rates.step), 1)


def _wrong(status: LiveStatus) -> Line:
    """What is missing from the picture, and how old it is."""
    words = []
    if status.dropped:
        words.append(f"{format_counted(status.dropped, 'record', 'records')} dropped")
    full = sum(source.state is SourceState.FULL for source in status.sources)
    if full:
        whose = "" if full == len(status.sources) else f" for {full} of {len(status.sources)}"
        words.append(f"no more room{whose}: recording has stopped")
    if status.lag >= LATE:
        words.append(f"{format_ns(status.lag)} behind")
        if status.behind >= _MUCH:
            words.append(f"{format_bytes(status.behind)} to read")
    return [Piece(", ".join(words), "warning", Action.COVERAGE.click())] if words else []


def _fitting(parts: list[_StatusPart], width: int) -> Line:
    """As many of ``parts`` as fit ``width`` cells, with sparklines of one length if they do."""
    while parts and sum(part.least for part in parts) + _GAP * (len(parts) - 1) > width:
        parts = parts[:-1]
    if not parts:
        return []
    room = width - sum(part.least + 1 for part in parts) - _GAP * (len(parts) - 1)
    cells = room // len(parts)
    lines = [part.line(cells if cells >= _FEWEST else 0) for part in parts]
    return [piece for line in lines for piece in (Piece(" " * _GAP), *line)][1:]
