"""Share what dialogs that write a file have: choices side by side, and a file name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, TypeVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import RadioButton, RadioSet

from flame.tui.toolkit.dialog import CURSOR, Dialog
from flame.tui.toolkit.lines import Line, Lines, Piece
from flame.tui.toolkit.text import cut

T = TypeVar("T")


class _Choice(RadioButton):
    """One of several things, marked in a way that needs no colours."""

    def render(self) -> Content:
        mark = "x" if self.value and not self.is_disabled else " "
        return Content(f"({mark}) {self.label.plain} ")


class Choices(RadioSet, inherit_bindings=False):
    """Show what there is to choose from side by side, of which exactly one is chosen."""

    def __init__(self, titles: Sequence[str], *, id: str) -> None:
        buttons = (_Choice(title, place == 0) for place, title in enumerate(titles))
        super().__init__(*buttons, id=id, compact=True)

    @property
    def chosen(self) -> int:
        """The place of what is chosen."""
        return max(self.pressed_index, 0)

    def turn(self, step: int) -> None:
        """Choose the next (1) or previous (-1), at once: what is posted comes behind other keys."""
        buttons = list(self.query(RadioButton))
        chosen = buttons[(self.chosen + step) % len(buttons)]
        with self.prevent(RadioButton.Changed):
            for button in buttons:
                button.value = button is chosen
        self._pressed_button = chosen


class FileDialog(Dialog[T]):
    """Ask for ``choices``, a row of titles for each label, and below for a file in the entry."""

    AUTO_FOCUS = "Choices"
    TYPES = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "move(1)"),
        Binding("shift+tab", "move(-1)"),
        Binding("left,h", "turn(-1)", "choose the one before, the next", key_display="← →  h l"),
        Binding("right,l,space", "turn(1)"),
        Binding("enter", "write", "write the file"),
    ]

    def __init__(self, **choices: Sequence[str]) -> None:
        super().__init__()
        self.choices = {label: Choices(titles, id=label) for label, titles in choices.items()}

    def compose_rows(self) -> ComposeResult:
        with Horizontal(id="fields"):
            yield Lines(lambda width, height: self._labels(), id="labels")
            with Vertical():
                yield from self.choices.values()
                yield Lines(lambda width, height: [self._folder(width)], id="folder")

    @property
    def file_word(self) -> str:
        """What is written is called."""
        return "file"

    def turned(self) -> None:
        """Follow a choice."""
        raise NotImplementedError

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action not in ("page", "end")

    # What is shown

    @property
    def _fields(self) -> list[Widget]:
        """What can have the focus, from the top."""
        return [*self.choices.values(), self.entry]

    def _labels(self) -> list[Line]:
        words = (*self.choices, self.file_word)
        pairs = zip(words, self._fields, strict=True)
        return [[_label(word, field is self.focused)] for word, field in pairs]

    def _folder(self, width: int) -> Line:
        return [Piece(cut(f"in {Path.cwd()}", width), "dim")]

    # Choosing

    def action_move(self, step: int) -> None:
        (self.focus_next if step > 0 else self.focus_previous)()

    @on(events.DescendantFocus)
    @on(events.DescendantBlur)
    def _focus_moved(self) -> None:
        self.draw()

    def action_turn(self, step: int) -> None:
        """Choose another of what stands in the row."""
        if isinstance(self.focused, Choices):
            self.focused.turn(step)
            self.turned()

    @on(RadioSet.Changed)
    def _clicked_choice(self) -> None:
        self.turned()

    def on_click(self, event: events.Click) -> None:
        """Go to the row whose label is clicked."""
        if event.widget is self.query_one("#labels"):
            self.set_focus(self._fields[event.y])


def _label(text: str, selected: bool) -> Piece:
    """What a row is about, marked where it is ``selected``."""
    return Piece(f"{CURSOR if selected else ' '} {text}", "strong" if selected else "")
