"""List rows to choose from by Textual's lists, of which only what has changed is drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from textual.geometry import Region, Size
from textual.reactive import Reactive
from textual.strip import Strip
from textual.widgets import OptionList, SelectionList
from textual.widgets.option_list import Option
from textual.widgets.selection_list import Selection

from flame.tui.toolkit.lines import Line, Lines, SomeLines


class LazyLines:
    """Compose each of ``number`` lines when it is asked for: most of thousands are never seen."""

    def __init__(self, number: int, compose: Callable[[int], Line]) -> None:
        self._number = number
        self._compose = compose

    def __len__(self) -> int:
        return self._number

    def __getitem__(self, row: int, /) -> Line:
        return self._compose(row)


_ROW = Option("")
"""Stands for each of the rows: what they show is composed when it is drawn."""


class RowList(Lines, OptionList, can_focus=True, inherit_bindings=False):
    """Show the rows that ``source(width, height)`` composes, one of which is selected.

    Textual's list knows which row is selected, scrolls and takes clicks, of which it
    tells by `OptionList.OptionSelected`. It would draw all rows whenever one changes.
    """

    COMPONENT_CLASSES = OptionList.COMPONENT_CLASSES  # of bases, Textual takes the first one's

    # As OptionList has them, but without a repaint of all rows at each key and move of the mouse.
    highlighted: Reactive[int | None] = Reactive(None, repaint=False)
    _mouse_hovering_over: Reactive[int | None] = Reactive(None, repaint=False)

    def __init__(self, source: Callable[[int, int], SomeLines], *, id: str | None = None) -> None:
        self._cursor = 0
        super().__init__(source, id=id)

    @property
    def cursor(self) -> int:
        """The selected row; it can be set before there are any."""
        return self._cursor

    @cursor.setter
    def cursor(self, row: int) -> None:
        self._cursor = max(row, 0)
        if self._cursor < self.option_count:
            self.highlighted = self._cursor

    def move(self, step: int) -> None:
        """Select the row that is so many further down, the last one at most."""
        self.cursor = min(self.cursor + step, self.option_count - 1)

    def watch_highlighted(self, highlighted: int | None) -> None:
        if highlighted is not None:
            self._cursor = highlighted
            super().watch_highlighted(highlighted)
            self.update()

    # Options

    def reach(self, rows: int) -> None:
        """Have an option for each of ``rows``; the selected one, and what is in sight, stay."""
        if rows != self.option_count:
            self._options = [_ROW] * rows
            self._update_lines()
            self.set_scroll(None, min(self.scroll_offset.y, max(rows - self.size.height, 0)))
        if rows:
            self._cursor = min(self._cursor, rows - 1)
        self.highlighted = self._cursor if rows else None

    def _update_lines(self) -> None:
        """Make all rows scrollable; Textual's list would look at each, a second for 100,000."""
        if self.scrollable_content_region:
            size = Size(self.scrollable_content_region.width, self.option_count)
            if size != self.virtual_size:
                self.virtual_size = size
                self._scroll_update(size)

    def scroll_to_highlight(self, top: bool = False) -> None:
        """Have the selected row in sight."""
        if self.highlighted is not None and self.is_mounted:
            self._update_lines()
            row = Region(0, self.highlighted, self.size.width, 1)
            self.scroll_to_region(row, force=True, animate=False, top=top, immediate=True)

    # Drawing

    def on_resize(self) -> None:
        """Keep the selected row in sight in less room."""
        self.scroll_to_highlight()

    def strip(self, row: int) -> Strip:
        strip = super().strip(row)
        return strip.apply_meta({"option": row}) if row < self.option_count else strip


class _Mark(Selection[int]):
    """Stand for a row that can be marked; without a prompt, which would take most of the time."""

    def __init__(self, value: int, marked: bool) -> None:
        Option.__init__(self, "")
        self._value = value
        self._initial_state = marked


class CheckList(RowList, SelectionList[int], can_focus=True, inherit_bindings=False):
    """Show rows of which several can be marked, each for a value of its own."""

    def offer(self, values: Iterable[int], marked: Iterable[int]) -> None:
        """List a row for each of ``values``, some of them ``marked``; select the first."""
        marked = frozenset(marked)
        self.clear_options()
        self.add_options(_Mark(value, value in marked) for value in values)
        self.cursor = 0

    def reach(self, rows: int) -> None:
        """Leave the options as they are offered."""

    def flip(self) -> None:
        """Mark the selected row, or no longer."""
        if self.option_count:
            self.toggle(self.get_option_at_index(self.cursor))

    def _on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Mark the row that was clicked; Textual's list marks the one selected meanwhile."""
        event.prevent_default().stop()
        self.cursor = event.option_index
        self.flip()
