"""The search box: always there, typed into while it has the focus."""

from __future__ import annotations

from textual.widgets import Input

from flame.tui.query import Query
from flame.tui.text import printable


class SearchBox(Input):
    """A line to type a search into; it never moves, so that a search redraws nothing around it."""

    def __init__(self, *, id: str) -> None:
        super().__init__(placeholder="/ search", compact=True, id=id)
        self.cursor_blink = False

    def validate_value(self, value: str) -> str:
        """What is pasted becomes printable."""
        return printable(value)

    def show(self, query: Query | None) -> None:
        """Show ``query`` as if it had been typed."""
        with self.prevent(Input.Changed):
            self.value = query.text if query else ""
