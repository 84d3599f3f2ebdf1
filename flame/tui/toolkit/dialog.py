"""Share what all dialogs have: rows to choose from, a line to type into, hints below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from flame.tui.toolkit.lines import Line, Lines, Piece
from flame.tui.toolkit.text import cut, cut_start, printable

T = TypeVar("T")

CURSOR = "▸"

_PADDING = 2
_FEWEST = 3


def label(text: str, selected: bool) -> Piece:
    """Return what a row is about, marked where it is ``selected``."""
    return Piece(f"{CURSOR if selected else ' '} {text.ljust(8)}", "strong" if selected else "")


def options(titles: Sequence[str], chosen: int, row: int, off: bool = False) -> Line:
    """Draw the choices of a ``row`` side by side, the ``chosen`` one marked; none if it is ``off``.

    A click on one runs ``pick`` with its row and place.
    """
    line: Line = []
    for place, title in enumerate(titles):
        here = place == chosen and not off
        tone = "dim" if off else "strong" if here else ""
        text = f" ({'x' if here else ' '}) {title} "
        line.append(Piece(text, tone, f"screen.pick({row}, {place})"))
    return line


class Entry(Input):
    """Take one line of text; what is pasted becomes printable."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+u", "clear", show=False)]

    def __init__(self, *, id: str = "entry") -> None:
        super().__init__(compact=True, id=id)
        self.cursor_blink = False

    def validate_value(self, value: str) -> str:
        return printable(value)

    def action_clear(self) -> None:
        """Empty the line."""
        self.clear()


class Dialog(ModalScreen[T]):
    """Show lines, rows of which one is selected, an entry where text is typed, and a hint.

    Rows that do not fit scroll with the cursor, so that the title and the hint stay in sight.
    """

    AUTO_FOCUS = ""
    TYPES: ClassVar[bool] = False
    """Whether there is something to type from the beginning."""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)"),
        Binding("down,j", "move(1)"),
        Binding("pageup", "move(-10)"),
        Binding("pagedown", "move(10)"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.cursor = 0
        self.note = ""
        self._top = 0
        self._seen = range(0)
        self._current = False

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Lines(self._lines, id="dialog")
            entry = Entry()
            entry.display = self.TYPES
            yield entry
            yield Lines(lambda width, height: self._last(width), id="hint")

    # What a dialog says

    def head(self, width: int) -> list[Line]:
        """Return the lines above the rows."""
        raise NotImplementedError

    def rows(self, width: int) -> list[Line]:
        """Return one line for everything that can be selected."""
        raise NotImplementedError

    def tail(self, width: int) -> list[Line]:
        """Return the lines below the rows."""
        return []

    def foot(self, width: int) -> list[Line]:
        """Return the lines below the entry; always as many."""
        return []

    def hint(self) -> str:
        """Tell which keys do what."""
        raise NotImplementedError

    def clicked(self) -> None:
        """Act on a click on the row under the cursor."""

    # Drawing

    @property
    def entry(self) -> Entry:
        """Where text is typed."""
        return self.query_one(Entry)

    def draw(self) -> None:
        """Show what has changed."""
        lines = self.query_one("#dialog", Lines)
        lines.styles.max_height = self._room
        wanted = len(self._lines(max(lines.inner.width, 1), 0))
        self.query_one("#hint", Lines).update()
        if min(wanted, self._room) == lines.size.height:
            lines.update()
        else:
            self._current = False
            lines.refresh(layout=True)
            self.call_after_refresh(lines.update)

    @property
    def _room(self) -> int:
        """Lines there is room for above the entry and the hint."""
        below = len(self._last(self.size.width)) + self.entry.display
        return max(self.size.height - _PADDING - below, _FEWEST)

    def on_resize(self) -> None:
        self.draw()

    def _lines(self, width: int, height: int) -> list[Line]:
        """Head, rows and tail in ``height`` lines, or all of them if that is 0."""
        head, rows, tail = self.head(width), self.rows(width), self.tail(width)
        self.cursor = min(max(self.cursor, 0), max(len(rows) - 1, 0))
        room = height - len(head) - len(tail)
        if not height:
            return [*head, *rows, *tail]
        self._top, more, self._current = len(head), [], True
        if len(rows) <= room:
            self._seen = range(len(rows))
        else:
            self._seen = self._window(len(rows), max(room - 1, 1))
            more = [[Piece(_beyond(self._seen, len(rows)), "dim")]]
        return [*head, *rows[self._seen.start : self._seen.stop], *more, *tail]

    def _window(self, rows: int, room: int) -> range:
        """The rows to show of ``rows``: around the selected one, moved no more than needed."""
        first = max(min(self._seen.start, self.cursor), self.cursor - room + 1)
        first = min(first, rows - room)
        return range(first, first + room)

    def _last(self, width: int) -> list[Line]:
        note = Piece(cut(self.note, width), "warning")
        return [*self.foot(width), [note], [Piece(cut_start(self.hint(), width), "dim")]]

    # Moving

    def action_move(self, step: int) -> None:
        self.cursor += step
        self.draw()

    def on_mouse_scroll_down(self) -> None:
        self.action_move(1)

    def on_mouse_scroll_up(self) -> None:
        self.action_move(-1)

    def on_click(self, event: events.Click) -> None:
        """Select, and act on, the row under the mouse; a click beside the dialog leaves it.

        The second of two quick clicks may come before what the first has opened is drawn.
        """
        if event.widget is self:
            self.action_leave()
        elif event.widget is self.query_one("#dialog", Lines):
            row = event.y - self._top + self._seen.start
            if self._current and row in self._seen:
                self.cursor = row
                self.clicked()

    def action_leave(self) -> None:
        """Leave without a change."""
        self.dismiss(None)


class FileDialog(Dialog[T]):
    """Ask for a file in the entry, which has the focus where the cursor is on its row."""

    FILE: ClassVar[int]
    """The row that the entry belongs to."""

    def action_move(self, step: int) -> None:
        super().action_move(step)
        self.set_focus(self.entry if self.cursor == self.FILE else None)

    def clicked(self) -> None:
        self.action_move(0)

    def on_descendant_focus(self) -> None:
        """Follow a click into the entry."""
        self.cursor = self.FILE
        self.draw()


def _beyond(seen: range, rows: int) -> str:
    ways = (("↑", seen.start), ("↓", rows - seen.stop))
    return "".join(f"  {arrow} {number} more" for arrow, number in ways if number)
