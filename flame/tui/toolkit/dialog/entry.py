"""Take one line of text."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import Input

from flame.tui.toolkit.text import printable


class TextEntry(Input):
    """Take one line of text; what is pasted becomes printable."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+u", "clear", "empty the line", show=False, key_display="ctrl+u")
    ]

    def __init__(self, *, id: str = "entry") -> None:
        super().__init__(compact=True, id=id)
        self.cursor_blink = False

    def validate_value(self, value: str) -> str:
        return printable(value)

    def action_clear(self) -> None:
        """Empty the line."""
        self.clear()
