"""The search box: always there, typed into while it has the focus."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.widgets import Input

from flame.tui.session.query import Query
from flame.tui.toolkit.text import printable
from flame.tui.widgets.search_box import History


class SearchBox(Input):
    """A line to type a search into; it never moves, so that a search redraws nothing around it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "recall(1)", show=False),
        Binding("down", "recall(-1)", show=False),
        Binding("ctrl+u", "clear", show=False),
    ]

    def __init__(self, *, id: str, history: History | None = None) -> None:
        super().__init__(placeholder="/ search", compact=True, id=id)
        self.cursor_blink = False
        self._history = history or History()

    def validate_value(self, value: str) -> str:
        """What is pasted becomes printable."""
        return printable(value)

    def show(self, query: Query | None) -> None:
        """Show ``query`` as if it had been typed."""
        with self.prevent(Input.Changed):
            self.value = query.text if query else ""

    @on(Input.Submitted)
    def _remember(self) -> None:
        self._history.add(self.value)

    def action_recall(self, step: int) -> None:
        """Search again for what was entered before (+1), or after that (-1)."""
        self.value = self._history.go(step, self.value)
        self.action_end()

    def action_clear(self) -> None:
        """Empty the box."""
        self.clear()
