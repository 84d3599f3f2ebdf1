"""List the steps of a trace with how long each took, and ask which of them are to be shown."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
from textual.binding import Binding, BindingType

from flame.core.analysis.iterations import measure_iterations
from flame.core.analysis.words.iterations import count_words, length_words, outside_words
from flame.core.columns import I8, Bool
from flame.core.lazy_dataclass import dataclass
from flame.core.model.profile import Profile
from flame.core.projection.filter_options import kind_of
from flame.core.projection.filters import Filter, Steps
from flame.core.units import format_count
from flame.tui.dialogs.step_rows import StepRows
from flame.tui.toolkit.dialog import Dialog
from flame.tui.toolkit.dialog.row_list import LazyLines
from flame.tui.toolkit.lines import Line, Piece, SomeLines
from flame.tui.toolkit.text import wrap

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


class _Range(NamedTuple):
    """Rows that shift marks, from ``begin`` to ``end``, and what was marked ``before``."""

    begin: int
    end: int
    before: Bool


class _Digits(NamedTuple):
    """What was typed, and the row where it led."""

    row: int
    text: str


class StepsDialog(Dialog[Steps | None]):
    """Return the steps to show, those of no span for all; None if the user left.

    Those of ``chosen`` are marked at first.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "apply", "show the steps that are marked, or the selected one"),
        Binding("space", "mark", "mark the step, or no longer"),
        Binding("shift+up", "extend(-1)", "mark all on the way", key_display="shift+↑ ↓"),
        Binding("shift+down", "extend(1)"),
        Binding("s", "sort", "the slowest first, or in order of time"),
        Binding("r", "all", "show all steps again"),
        Binding("0", "type(0)", "go to the step of that number", key_display="0 … 9"),
        *(Binding(str(digit), f"type({digit})") for digit in range(1, 10)),
        Binding("backspace", "untype", "take back the last digit"),
        Binding("escape,q,p", "leave", "leave without a change", key_display="esc q p"),
    ]

    def __init__(self, profile: Profile, chosen: Steps | None = None) -> None:
        super().__init__()
        self._table = measure_iterations(profile)
        self._drawn = StepRows(profile, self._table)
        self._profile = profile
        self._by_time: I8 = np.arange(len(self._table))
        self._order = self._by_time
        self._marked = np.zeros(len(self._table), bool)
        if chosen is not None:
            self._marked = chosen.chosen(self._table.number)
            self.cursor = int(np.argmax(self._marked))
        self._range: _Range | None = None
        self._digits = _Digits(self.cursor, "")
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

    def rows(self, width: int) -> SomeLines:
        return LazyLines(len(self._order), lambda row: self._row(row, width))

    def _row(self, row: int, width: int) -> Line:
        place = int(self._order[row])
        return self._drawn.row(place, row == self.cursor, bool(self._marked[place]), width)

    def tail(self, width: int) -> list[Line]:
        order = "slowest first" if self._order is not self._by_time else "in order of time"
        number, whole = len(self._chosen), format_count(len(self._order))
        place = f"{format_count(self.cursor + 1)} of {whole}, {order}"
        alone = number == 1 and self._chosen[0] == self._here
        marked = "one" if number == 1 else format_count(number)
        what = "this one" if alone else f"the {marked} marked"
        apply = [Piece(" show ", "key", "screen.apply"), Piece(f" {what} · ", "dim")]
        return [[], [*apply, Piece(place, "dim")]]

    def hint(self) -> str:
        if self._typed:
            return f"step {self._typed}▏ · enter show it · backspace"
        return "enter show · space mark · 0-9 go to · s slowest · r all steps · esc leave"

    # Moving

    @property
    def _here(self) -> int:
        """The place of the selected step in the table."""
        return int(self._order[self.cursor])

    def _go_to(self, row: int) -> None:
        self.cursor = row
        self.draw()

    def action_sort(self) -> None:
        """Put the slowest first and go there, or the steps back in order of time."""
        here = self._here
        if self._order is self._by_time:
            self._order = np.argsort(-self._table.duration, kind="stable")
            self._go_to(0)
        else:
            self._order = self._by_time
            self._go_to(here)

    # Typing a number

    @property
    def _typed(self) -> str:
        """The digits typed, until the cursor is moved otherwise."""
        return self._digits.text if self._digits.row == self.cursor else ""

    def action_type(self, digit: int) -> None:
        """Go to the step whose number is typed."""
        self._type(f"{self._typed}{digit}")

    def action_untype(self) -> None:
        """Take back the digit that was typed last."""
        self._type(self._typed[:-1])

    def _type(self, text: str) -> None:
        found = self._step_of(text) if text else None
        if found is not None:
            self.cursor = int(np.flatnonzero(self._order == found)[0])
        self._digits = _Digits(self.cursor, text)
        self.note = "" if found is not None or not text else f"no step has {text} in its number"
        self.draw()

    def _step_of(self, text: str) -> int | None:
        """The place of the number ``text``; else of one that begins, ends or has it in itself."""
        texts = self._table.number.astype(str)
        typed = text.lstrip("0") or "0"
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
        self.action_mark()

    def action_mark(self) -> None:
        """Mark the selected step, or no longer."""
        self._range, self._digits = None, _Digits(self.cursor, "")
        self._marked[self._here] ^= True
        self._has_marked = True
        self.draw()

    def action_extend(self, step: int) -> None:
        """Mark all from where this was begun to one row further."""
        if self._range is None or self._range.end != self.cursor:
            self._range = _Range(self.cursor, self.cursor, self._marked.copy())
        begin, before = self._range.begin, self._range.before
        self.cursor = end = min(max(self.cursor + step, 0), len(self._order) - 1)
        self._range = _Range(begin, end, before)
        self._marked, self._has_marked = before.copy(), True
        self._marked[self._order[min(begin, end) : max(begin, end) + 1]] = True
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
