"""Show lines of which one is selected: they scroll, and are clicked."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import events
from textual.message import Message
from textual.strip import Strip

from flame.tui.toolkit.lines import Line, Lines, SomeLines


class ChosenLines(Lines):
    """Show lines; where ``pinned`` says so, the first in sight is a head in place of a row."""

    DEFAULT_CSS: ClassVar[str] = "ChosenLines { height: 1fr; }"

    class Clicked(Message):
        """The user clicked a line, twice where it ``opens``."""

        def __init__(self, lines: ChosenLines, line: int, opens: bool) -> None:
            super().__init__()
            self.lines = lines
            self.line = line
            self.opens = opens

    class Asked(Message):
        """The user clicked what a line offers: ``what`` is to be done, with ``arguments``."""

        def __init__(self, what: str, *arguments: int | str) -> None:
            super().__init__()
            self.what = what
            self.arguments = arguments

    def __init__(
        self,
        source: Callable[[int, int], SomeLines],
        pinned: Callable[[int], Line | None] | None = None,
        *,
        id: str,
    ) -> None:
        super().__init__(source, id=id)
        self._pinned = pinned
        self._revealed: tuple[object, ...] = ()

    def reveal(self, line: int, subject: object) -> None:
        """Scroll a newly selected line of ``subject`` into sight, below what is pinned."""
        revealed = (line, self.size, subject)
        if revealed == self._revealed or not self.inner.height:
            return
        other = self._revealed[2:] != (subject,)
        self._revealed = revealed
        height, top = self.inner.height, 0 if other else int(self.scroll_offset.y)
        above = 2 if self._pinned else 1
        if line < top + above:
            top = max(line - above, 0)
        elif line >= top + height:
            top = line - height + 1
        self.scroll_to_row(top)

    def turn_page(self, step: int) -> bool:
        """Scroll by what is in sight, down above 0; False where there is no more."""
        before = int(self.scroll_offset.y)
        y = min(max(before + step * max(self.inner.height - 1, 1), 0), int(self.max_scroll_y))
        self.scroll_to_row(y)
        return y != before

    def strip(self, row: int) -> Strip:
        head = self._pinned(row) if self._pinned and row == int(self.scroll_offset.y) else None
        return super().strip(row) if head is None else self.drawn(head)

    def on_click(self, event: events.Click) -> None:
        line = int(self.scroll_offset.y) + event.y
        if self._pinned and not event.y and self._pinned(line) is not None:
            return
        self.post_message(self.Clicked(self, line, opens=event.chain == 2))

    def action_sort(self, table: int, column: int) -> None:
        self.post_message(self.Asked("sort", table, column))

    def action_turn(self, section: str) -> None:
        self.post_message(self.Asked("turn", section))

    def action_enter(self) -> None:
        self.post_message(self.Asked("enter"))
