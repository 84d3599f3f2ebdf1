"""The levels dialog: which levels the stacks have, and in which order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from flame.core.frames import Kind
from flame.core.project import LEVELS
from flame.tui.keys import DIGITS
from flame.tui.lines import Line, Lines, Piece, palette_of
from flame.tui.text import cut_start

ABOUT = {
    "process": "the process that launched it",
    "thread": "the thread that launched it",
    "device": "the GPU it ran on",
    "stream": "the CUDA stream it ran on",
    "python": "Python frames of the launch",
    "native": "C and C++ frames of the launch",
    "launch": "the CUDA API call",
    "nvtx": "NVTX ranges open at the launch",
    "shapes": "tensor shapes of the innermost range",
    "kernel": "kernel, copy, memset or graph",
}

_HEAD = 2


def toggled(levels: tuple[str, ...], level: str) -> tuple[str, ...]:
    """``levels`` without ``level``, or with it before the first that naturally comes after it."""
    if level in levels:
        return tuple(one for one in levels if one != level)
    later = LEVELS[LEVELS.index(level) :]
    place = next((place for place, one in enumerate(levels) if one in later), len(levels))
    return (*levels[:place], level, *levels[place:])


@dataclass
class Choice:
    """All levels in the order of the dialog, those that are on, and the selected one."""

    levels: tuple[str, ...]
    order: list[str] = field(init=False)
    on: set[str] = field(init=False)
    cursor: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.set(self.levels)

    def set(self, levels: tuple[str, ...]) -> None:
        """Switch on exactly ``levels``, in this order; the others follow."""
        self.order = [*levels, *(level for level in LEVELS if level not in levels)]
        self.on = set(levels)

    @property
    def result(self) -> tuple[str, ...]:
        """The levels that are on, in order."""
        return tuple(level for level in self.order if level in self.on)

    def toggle(self) -> None:
        """Switch the selected level on or off."""
        self.on ^= {self.order[self.cursor]}

    def select(self, step: int) -> None:
        """Select another level."""
        self.cursor = min(max(self.cursor + step, 0), len(self.order) - 1)

    def shift(self, step: int) -> None:
        """Move the selected level up (-1) or down (+1) in the order."""
        level, old = self.order[self.cursor], self.cursor
        self.select(step)
        del self.order[old]
        self.order.insert(self.cursor, level)


class LevelsDialog(ModalScreen[tuple[str, ...] | None]):
    """Returns the chosen levels, or None if the user left without choosing."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)"),
        Binding("down,j", "move(1)"),
        Binding("space", "flip"),
        Binding("shift+up,K", "shift(-1)"),
        Binding("shift+down,J", "shift(1)"),
        Binding("r", "reset"),
        Binding("enter", "apply"),
        Binding("escape,q,L", "dismiss(None)"),
        *(Binding(key, f"switch('{level}')") for key, level in zip(DIGITS, LEVELS, strict=True)),
    ]

    def __init__(
        self, levels: tuple[str, ...], usual: tuple[str, ...], recorded: Iterable[str]
    ) -> None:
        super().__init__()
        self._choice = Choice(levels)
        self._usual = usual
        self._recorded = frozenset(recorded)
        self._warning = ""

    def compose(self) -> ComposeResult:
        yield Lines(self._compose_lines, id="dialog")

    def _compose_lines(self, width: int, height: int) -> list[Line]:
        hint = "space on/off · shift+↑ ↓ order · r usual · enter apply · esc leave"
        return [
            [Piece("Levels, from the root down", "strong")],
            [],
            *(self._level(place, width) for place in range(len(LEVELS))),
            [],
            [Piece(cut_start(self._warning or hint, width), "warning" if self._warning else "dim")],
        ]

    def _level(self, place: int, width: int) -> Line:
        level = self._choice.order[place]
        on = level in self._choice.on
        about = ABOUT[level] if level in self._recorded else "not in this trace"
        name = f" {level} ".ljust(10)
        palette = palette_of(self.query_one(Lines))
        selected = place == self._choice.cursor
        return [
            Piece(f"{'▸' if selected else ' '} {DIGITS[LEVELS.index(level)]} ", "strong"),
            Piece("[x] " if on else "[ ] ", "strong" if on else "dim"),
            Piece(name, palette.kind(Kind[level.upper()]) if on else "dim"),
            Piece(cut_start(f"  {about}", width - 18), "" if selected else "dim"),
        ]

    def _changed(self) -> None:
        self._warning = "" if self._choice.on else "switch at least one level on"
        self.query_one(Lines).update()

    def on_click(self, event: events.Click) -> None:
        """Switch the level under the mouse; a click beside the dialog leaves it."""
        lines = self.query_one(Lines)
        if event.widget is not lines:
            self.dismiss(None)
            return
        place = event.y + lines.scroll_offset.y - lines.content_offset.y - _HEAD
        if 0 <= place < len(LEVELS):
            self._choice.cursor = place
            self.action_flip()

    def action_move(self, step: int) -> None:
        self._choice.select(step)
        self._changed()

    def action_shift(self, step: int) -> None:
        self._choice.shift(step)
        self._changed()

    def action_flip(self) -> None:
        self._choice.toggle()
        self._changed()

    def action_switch(self, level: str) -> None:
        self._choice.cursor = self._choice.order.index(level)
        self.action_flip()

    def action_reset(self) -> None:
        self._choice.set(self._usual)
        self._changed()

    def action_apply(self) -> None:
        if self._choice.on:
            self.dismiss(self._choice.result)
