"""List the steps of a trace with how long each took, and ask which of them are to be shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from textual import events
from textual.binding import Binding, BindingType

from flame.core.analysis.iteration_words import count_words, length_words, outside_words
from flame.core.analysis.iterations import measure_iterations
from flame.core.columns import I8, Bool
from flame.core.model.profile import Profile
from flame.core.projection.filter_options import kind_of
from flame.core.projection.filters import Filter, Steps
from flame.core.units import format_count
from flame.tui.dialogs.step_rows import StepRows
from flame.tui.toolkit.dialog import Dialog
from flame.tui.toolkit.lines import Line, Piece
from flame.tui.toolkit.text import wrap

_AROUND = 12
"""Lines of the screen that rows never take: padding, head, tail and hints."""

_FEWEST = 3
_ABOUT = 2


@dataclass(frozen=True)
class StepsField:
    """The kind of filter that is chosen from the list of steps."""

    type: type[Filter] = Steps
    several: bool = False

    @property
    def title(self) -> str:
        """What such filters are called."""
        return kind_of(self.type).title

    def applies(self, profile: Profile) -> bool:
        """Tell whether the trace has any steps."""
        return len(profile.iterations) > 0


STEPS_FIELD = StepsField()


class StepsDialog(Dialog[Steps | None]):
    """Return the steps to show, those of no span for all; None if the user left.

    Only the rows in sight are made, so that a list of 100,000 steps is as quick as one of ten.
    Those of ``chosen`` are marked at first.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "apply"),
        Binding("space", "mark"),
        Binding("shift+up", "extend(-1)"),
        Binding("shift+down", "extend(1)"),
        Binding("home,g", "go(0)"),
        Binding("end,G", "go(-1)"),
        Binding("s", "sort"),
        Binding("r", "all"),
        Binding("backspace", "untype"),
        Binding("escape,q,p", "leave"),
    ]

    def __init__(self, profile: Profile, chosen: Steps | None = None) -> None:
        super().__init__()
        self._table = measure_iterations(profile)
        self._drawn = StepRows(profile, self._table)
        self._profile = profile
        self._by_time: I8 = np.arange(len(self._table))
        self._order = self._by_time
        self._at = 0
        self._first = 0
        self._marked = np.zeros(len(self._table), bool)
        if chosen is not None:
            self._marked = chosen.chosen(self._table.number)
            self._at = int(np.argmax(self._marked))
        self._anchor: tuple[int, Bool] | None = None
        self._typed = ""
        self._has_marked = False

    # What is shown

    def head(self, width: int) -> list[Line]:
        table = self._table
        title: Line = [
            Piece("Steps: ", "dim"),
            Piece(count_words(self._profile, table), "strong"),
        ]
        outside = outside_words(table)
        texts = [length_words(table), *([f"outside of them {outside}"] if outside else [])]
        about = [part for text in texts for part in wrap(text, width, _ABOUT)]
        return [title, *([Piece(part, "dim")] for part in about), self._drawn.head(width)]

    def rows(self, width: int) -> list[Line]:
        height = max(self.size.height - _AROUND, _FEWEST)
        last = max(len(self._order) - height, 0)
        self._first = min(max(min(self._first, self._at), self._at - height + 1), last)
        self.cursor = self._at - self._first
        seen = self._order[self._first : self._first + height].tolist()
        return [
            self._drawn.row(place, place == self._here, bool(self._marked[place]), width)
            for place in seen
        ]

    def tail(self, width: int) -> list[Line]:
        order = "slowest first" if self._order is not self._by_time else "in order of time"
        number, whole = len(self._chosen), format_count(len(self._order))
        place = f"{format_count(self._at + 1)} of {whole}, {order}"
        alone = number == 1 and self._chosen[0] == self._here
        marked = "one" if number == 1 else format_count(number)
        what = "this one" if alone else f"the {marked} marked"
        apply = [Piece(" show ", "key", "screen.apply"), Piece(f" {what} · ", "dim")]
        return [[], [*apply, Piece(place, "dim")]]

    def hint(self) -> str:
        if self._typed:
            return f"step {self._typed}▏ · enter show it · backspace"
        return "enter show · space mark · 0-9 go to · s slowest · r all steps · esc"

    # Moving

    @property
    def _here(self) -> int:
        """The place of the selected step in the table."""
        return int(self._order[self._at])

    def _go_to(self, at: int) -> None:
        self._at = min(max(at, 0), len(self._order) - 1)
        self.draw()

    def action_move(self, step: int) -> None:
        self._anchor, self._typed = None, ""
        self._go_to(self._at + step)

    def action_go(self, at: int) -> None:
        """Go to the first row, or the last (-1)."""
        self._anchor, self._typed = None, ""
        self._go_to(at % len(self._order))

    def action_sort(self) -> None:
        """Put the slowest first and go there, or the steps back in order of time."""
        here, self._anchor, self._typed = self._here, None, ""
        if self._order is self._by_time:
            self._order = np.argsort(-self._table.duration, kind="stable")
            self._go_to(0)
        else:
            self._order = self._by_time
            self._go_to(here)

    def on_key(self, event: events.Key) -> None:
        """Go to the step whose number is typed."""
        digit = event.character or ""
        if digit.isascii() and digit.isdigit():
            event.stop()
            self._type(self._typed + digit)

    def action_untype(self) -> None:
        """Take back the digit that was typed last."""
        self._type(self._typed[:-1])

    def _type(self, digits: str) -> None:
        self._anchor, self._typed = None, digits
        found = self._typed_step() if digits else None
        if found is not None:
            self._at = int(np.flatnonzero(self._order == found)[0])
        self.note = "" if found is not None or not digits else f"no step has {digits} in its number"
        self.draw()

    def _typed_step(self) -> int | None:
        """The place of the number typed; else of one that begins, ends or has it in itself."""
        texts = self._table.number.astype(str)
        typed = self._typed.lstrip("0") or "0"
        for found in (
            texts == typed,
            np.char.startswith(texts, typed),
            np.char.endswith(texts, typed),
            np.char.find(texts, typed) >= 0,
        ):
            if found.any():
                return int(np.argmax(found))
        return None

    # Choosing

    def clicked(self) -> None:
        self._at = self._first + self.cursor
        self.action_mark()

    def action_mark(self) -> None:
        """Mark the selected step, or no longer."""
        self._anchor, self._typed = None, ""
        self._marked[self._here] ^= True
        self._has_marked = True
        self.draw()

    def action_extend(self, step: int) -> None:
        """Mark all from where this was begun to one row further."""
        if self._anchor is None:
            self._anchor = self._at, self._marked.copy()
        begin, before = self._anchor
        self._at = min(max(self._at + step, 0), len(self._order) - 1)
        self._marked, self._has_marked = before.copy(), True
        self._marked[self._order[min(begin, self._at) : max(begin, self._at) + 1]] = True
        self.draw()

    def action_all(self) -> None:
        """Show all steps again."""
        self.dismiss(Steps(()))

    def action_apply(self) -> None:
        """Show the steps that are marked, or the selected one."""
        self.dismiss(Steps.of(self._table.number[self._chosen].tolist()))

    @property
    def _chosen(self) -> I8:
        """The places of what is marked; of the selected step if nothing is.

        Nor do marks from before count, where another step is selected and none has been marked.
        """
        if self._marked.any() and (self._has_marked or self._marked[self._here]):
            return np.flatnonzero(self._marked)
        return np.array([self._here])
