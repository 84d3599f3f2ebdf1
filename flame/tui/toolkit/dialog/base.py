"""Show a dialog: rows to choose from, a line to type into, hints below, and its help."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, TypeVar

from textual import events, on
from textual.actions import parse
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.reactive import Reactive
from textual.widget import Widget
from textual.widgets import OptionList, SelectionList

from flame.tui.toolkit.dialog.entry import TextEntry
from flame.tui.toolkit.dialog.modal import Modal
from flame.tui.toolkit.dialog.page import Page, bindings_of, key_help
from flame.tui.toolkit.dialog.row_list import RowList
from flame.tui.toolkit.lines import Line, Lines, Piece, SomeLines
from flame.tui.toolkit.text import cut, width_of

T = TypeVar("T")

CURSOR = "▸"

_PADDING = 2
_FEWEST = 3
_BETWEEN = " · "


class Dialog(Modal[T]):
    """Show lines, rows of which one is selected, an entry where text is typed, and a hint.

    Rows that do not fit scroll with the cursor, so that the title and the hint stay in sight. The
    help is made of the descriptions of the bindings; `check_action` leaves out, and switches off,
    those that mean nothing at the moment.
    """

    AUTO_FOCUS = "#dialog"
    TYPES: ClassVar[bool] = False
    """Whether there is something to type from the beginning."""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "previous, next row", key_display="↑ ↓  k j"),
        Binding("down,j", "move(1)"),
        Binding("pageup", "page(-1)", "a page up, down", key_display="pgup pgdn"),
        Binding("pagedown", "page(1)"),
        Binding("home,g", "end(-1)", "first, last row", key_display="home end  g G"),
        Binding("end,G", "end(1)"),
        Binding("question_mark,f1", "help", "this help (f1 also while typing)", key_display="?"),
    ]

    # As Screen has it, but for the repaint of all cells whenever the entry is entered or left.
    focused: Reactive[Widget | None] = Reactive(None, repaint=False)

    def __init__(self) -> None:
        super().__init__()
        self.note = ""
        self.row_list = RowList(lambda width, height: self.rows(width), id="dialog")

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Lines(lambda width, height: self.head(width), id="head")
            yield from self.compose_rows()
            yield Lines(lambda width, height: self.tail(width), id="tail")
            entry = TextEntry()
            entry.display = self.TYPES
            yield entry
            yield Lines(lambda width, height: self._last(width), id="hint")

    def compose_rows(self) -> ComposeResult:
        """Yield what there is between head and tail."""
        yield self.row_list

    # What a dialog says

    def head(self, width: int) -> list[Line]:
        """Return the lines above the rows."""
        raise NotImplementedError

    def rows(self, width: int) -> SomeLines:
        """Return one line for everything that can be selected."""
        raise NotImplementedError

    def tail(self, width: int) -> list[Line]:
        """Return the lines below the rows."""
        return []

    def foot(self, width: int) -> list[Line]:
        """Return the lines below the entry; always as many."""
        return []

    def hint(self) -> str:
        """Tell which keys do what, joined by ``·``, the most important first."""
        raise NotImplementedError

    def terms(self) -> Sequence[tuple[str, str]]:
        """Return words of the dialog, and what they mean, for its help."""
        return ()

    def clicked(self) -> None:
        """Act on a click on the row under the cursor."""

    # Drawing

    @property
    def cursor(self) -> int:
        """The selected row."""
        return self.shown_list.cursor

    @cursor.setter
    def cursor(self, row: int) -> None:
        self.shown_list.cursor = row

    @property
    def shown_list(self) -> RowList:
        """The list that is shown, where a dialog has several."""
        return self.row_list

    @property
    def entry(self) -> TextEntry:
        """Where text is typed."""
        return self.query_one(TextEntry)

    def draw(self) -> None:
        """Show what has changed."""
        for lines in self.query(Lines):
            if lines.display:
                self._draw(lines)

    def _draw(self, lines: Lines) -> None:
        """Show what has changed of ``lines``, in more or fewer of them if need be."""
        wanted = lines.wanted
        if isinstance(lines, RowList):
            lines.styles.max_height = room = self._room
            wanted = min(wanted, room)
        if wanted == lines.size.height:
            lines.update()
        else:
            lines.refresh(layout=True)
            self.call_after_refresh(lines.update)

    @property
    def _room(self) -> int:
        """Lines there is room for between the head and the tail."""
        width = max(self.query_one("#head", Lines).inner.width, 1)
        return max(self._spare(width) - len(self._last(width)), _FEWEST)

    def _spare(self, width: int) -> int:
        """Lines that neither head, tail nor entry take."""
        around = len(self.head(width)) + len(self.tail(width)) + self.entry.display
        return self.size.height - _PADDING - around

    def on_resize(self) -> None:
        self.draw()

    def _last(self, width: int) -> list[Line]:
        """Foot, note and hint; on a small screen less of the foot."""
        note: Line = [Piece(cut(self.note, width), "warning")]
        hint: Line = [Piece(self._hint(width), "dim")]
        room = self._spare(width) - _FEWEST - 2
        return [*self.foot(width)[: max(room, 0)], note, hint]

    def _hint(self, width: int) -> str:
        """The hint, of which the end goes first where it is narrow, but never the help."""
        *parts, last = [*self.hint().split(_BETWEEN), f"{self._help_key} help"]
        while parts and width_of(_BETWEEN.join([*parts, last])) > width:
            parts.pop()
        return cut(_BETWEEN.join([*filter(None, parts), last]), width)

    @property
    def _help_key(self) -> str:
        return "f1" if self.focused is self.entry else "?"

    # Help

    def action_help(self) -> None:
        """Show what all keys do, and what the words of the dialog mean."""
        self.app.push_screen(Page(self._help))

    def _help(self, width: int) -> list[Line]:
        return key_help(self.head(width)[:1], self._usable(), self.terms(), width)

    def _usable(self) -> Iterator[Binding]:
        """The bindings that mean something at the moment."""
        typing = bindings_of(TextEntry, TextEntry) if self.entry.display else ()
        for one in (*bindings_of(type(self), Dialog), *typing):
            _, name, parameters = parse(one.action)
            if self.check_action(name, parameters):
                yield one

    # Moving

    def action_move(self, step: int) -> None:
        self.shown_list.move(step)
        self.draw()

    def action_page(self, way: int) -> None:
        """Move by as many rows as are in sight."""
        self.action_move(way * max(self.shown_list.size.height, 1))

    def action_end(self, way: int) -> None:
        """Move to the first (-1), or the last (1), row."""
        self.action_move(way * self.shown_list.option_count)

    @on(OptionList.OptionHighlighted)
    @on(SelectionList.SelectionHighlighted)
    @on(SelectionList.SelectedChanged)
    def _moved(self) -> None:
        if self.is_current:
            self.draw()

    @on(OptionList.OptionSelected)
    def _row_clicked(self, event: OptionList.OptionSelected) -> None:
        """Act, but not where the second of two quick clicks hits what the first has put away."""
        if event.option_list.display:
            self.cursor = event.option_index
            self.clicked()

    def on_click(self, event: events.Click) -> None:
        """Leave where it was beside the dialog."""
        if event.widget is self:
            self.action_leave()

    def action_leave(self) -> None:
        """Leave without a change."""
        self.dismiss(None)
