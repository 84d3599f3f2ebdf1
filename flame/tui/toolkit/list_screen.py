"""Share what screens with a list to choose from have: its parts, an entry that filters it, keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Generic, NamedTuple, TypeVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Input

from flame.tui.toolkit.dialog import TextEntry
from flame.tui.toolkit.dialog.page import Page, bindings_of, key_help
from flame.tui.toolkit.dialog.row_list import LazyLines
from flame.tui.toolkit.lines import Line, Lines, Piece, SomeLines, line_width, palette_of
from flame.tui.toolkit.palette import Palette
from flame.tui.toolkit.text import cut, cut_start, printable, width_of, wrap

T = TypeVar("T")

_NOTES = 3
_PAGE = 10


class Column(NamedTuple, Generic[T]):
    """A column behind the name; ``width`` includes a gap on its left."""

    title: str
    width: int
    cell: Callable[[T], str]


def fitting(columns: Sequence[Column[T]], wanted: Sequence[int], room: int) -> list[Column[T]]:
    """Return those of ``columns`` that fit ``room`` cells; ``wanted`` first is kept longest."""
    chosen = set()
    for place in wanted:
        room -= columns[place].width
        if room < 0:
            break
        chosen.add(place)
    return [column for place, column in enumerate(columns) if place in chosen]


def right(text: str, width: int) -> str:
    """Put ``text`` at the right of ``width`` cells, a gap on its left."""
    text = cut(text, width - 1)
    return " " * (width - width_of(text)) + text


def prose(text: str, tone: str, width: int, lines: int = 2) -> list[Line]:
    """Compose ``text``, as others may have written it, on ``lines`` lines."""
    return [[Piece(f" {part}", tone)] for part in wrap(text, max(width - 2, 1), lines)]


class ItemGroup(NamedTuple, Generic[T]):
    """Items that belong together, below their ``title`` if they have one.

    Of more than ``most`` the first are shown, unless a filter is typed.
    """

    title: str
    items: Sequence[T]
    most: int | None = None


class Items(Lines):
    """Show the lines of the list; say which is clicked, and when there is other room for them."""

    class Clicked(Message):
        """Say that the user clicked ``line``, counted from the top of the list."""

        def __init__(self, line: int, opens: bool) -> None:
            super().__init__()
            self.line = line
            self.opens = opens

    class Resized(Message):
        """Say that there is more or less room for the list."""

    def on_resize(self) -> None:
        self.post_message(self.Resized())

    def on_click(self, event: events.Click) -> None:
        self.post_message(self.Clicked(self.scroll_offset.y + event.y, opens=event.chain == 2))


class ListScreen(Screen[None], Generic[T]):
    """Show a list in parts, and below it what the selected item means.

    Classes say what items look like and mean, hand them to `show_parts`, and bind the keys of
    ``choose`` and ``refresh``. The help is made of the descriptions of the bindings.
    """

    AUTO_FOCUS = ""
    DEFAULT_CSS = """
    ListScreen #heads { height: 1; overflow-y: hidden; background: $surface; }
    ListScreen #items { height: 1fr; }
    ListScreen #notes { height: auto; max-height: 3; overflow-y: hidden; }
    ListScreen #about { height: 2; overflow-y: hidden; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "previous, next row", key_display="↑ ↓  k j"),
        Binding("down,j", "move(1)"),
        Binding("pageup", f"move(-{_PAGE})", "a page up, down", key_display="pgup pgdn"),
        Binding("pagedown", f"move({_PAGE})"),
        Binding("home,g", "move(-1000000)", "first, last row", key_display="home end  g G"),
        Binding("end,G", "move(1000000)"),
        Binding("slash", "filter", "show only rows with these words", key_display="/"),
        Binding(
            "escape", "back", "out of the filter, then without it, then quit", key_display="esc"
        ),
        Binding("question_mark,f1", "help", "this help (f1 also while typing)", key_display="?"),
        Binding("q", "leave", "quit"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.items: list[T] = []
        self._parts: Sequence[ItemGroup[T]] = ()
        self._cursor = 0
        self._places: list[int | None] = []
        self._titles: dict[int, str] = {}

    def compose(self) -> ComposeResult:
        yield Lines(self._header, id="header")
        yield Lines(lambda width, height: [self.heads(width)], id="heads")
        yield Items(self._list, id="items")
        yield Lines(lambda width, height: self._notes(width), id="notes")
        yield Lines(lambda width, height: self.about(width), id="about")
        with Horizontal(id="bottom"):
            entry = TextEntry(id="search")
            entry.placeholder = "/ filter"
            yield entry
            yield Lines(lambda width, height: [self._keys()], id="status")

    # What a list says

    def heading(self) -> str:
        """Tell what the list is of."""
        raise NotImplementedError

    def counts(self) -> str:
        """Tell how much there is."""
        raise NotImplementedError

    def heads(self, width: int) -> Line:
        """Return the titles of the columns that fit ``width``."""
        raise NotImplementedError

    def row(self, item: T, selected: bool, palette: Palette, width: int) -> Line:
        """Return one line of ``width`` cells."""
        raise NotImplementedError

    def matches(self, item: T, text: str) -> bool:
        """Tell whether the filter ``text`` lets ``item`` through."""
        raise NotImplementedError

    def place_of(self, before: T) -> int | None:
        """Find what was selected ``before`` among the items now."""
        raise NotImplementedError

    def nothing(self, width: int) -> list[Line]:
        """Return what stands in an empty list."""
        raise NotImplementedError

    def notes(self) -> Sequence[str]:
        """Return what is to be said of the list as a whole."""
        return ()

    def about(self, width: int) -> list[Line]:
        """Return two lines on the selected item."""
        raise NotImplementedError

    def keys(self) -> Sequence[tuple[str, str, str]]:
        """Return keys, what they do in a word, and their actions."""
        raise NotImplementedError

    def terms(self) -> Sequence[tuple[str, str]]:
        """Return words of the list, and what they mean, for its help."""
        return ()

    def action_choose(self) -> None:
        """Do what the list is for."""
        raise NotImplementedError

    def action_leave(self) -> None:
        """Leave without a choice."""
        raise NotImplementedError

    # What is shown

    @property
    def filter_text(self) -> str:
        """What has been typed to filter by."""
        return self.query_one(TextEntry).value

    @property
    def selected(self) -> T | None:
        """The item under the cursor."""
        return self.items[min(self._cursor, len(self.items) - 1)] if self.items else None

    def show_parts(self, parts: Sequence[ItemGroup[T]]) -> None:
        """Show ``parts`` from now on; the cursor stays on its item."""
        before = self.selected
        self._parts = parts
        self._sift()
        place = None if before is None else self.place_of(before)
        self._cursor = self._cursor if place is None else place
        self.draw()

    def _sift(self) -> None:
        """Lay out what the filter lets through: lines of items, and of titles above them."""
        text = self.filter_text
        self.items, self._places, self._titles = [], [], {}
        for part in self._parts:
            kept = [item for item in part.items if self.matches(item, text)] if text else []
            kept = kept if text else list(part.items[: part.most])
            if kept and part.title:
                self._places += [None] * (2 if self._places else 1)
                self._titles[len(self._places) - 1] = part.title
            if kept:
                self._places += range(len(self.items), len(self.items) + len(kept))
                self.items += kept

    def draw(self) -> None:
        """Show what has changed."""
        self._cursor = max(min(self._cursor, len(self.items) - 1), 0)
        notes = self.query_one("#notes", Lines)
        if len(self._notes(notes.size.width)) != notes.size.height:
            notes.refresh(layout=True)
        for lines in self.query(Lines):
            lines.update()

    @on(Items.Resized)
    def reveal(self) -> None:
        """Have the selected row in sight, with the title of its part if it is the first there."""
        if self.items:
            line = first = self._places.index(self._cursor)
            while first and self._places[first - 1] is None:
                first -= 1
            self.query_one(Items).reveal_rows(first, line)

    def _list(self, width: int, height: int) -> SomeLines:
        if not self.items:
            return [[], *self._none(width)]
        palette = palette_of(self.query_one(Items))

        def compose(line: int) -> Line:
            place = self._places[line]
            if place is None:
                return [Piece(f" {cut(self._titles.get(line, ''), width - 2)}", "strong")]
            return self.row(self.items[place], place == self._cursor, palette, width)

        return LazyLines(len(self._places), compose)

    def _none(self, width: int) -> list[Line]:
        """What stands in an empty list."""
        if any(part.items for part in self._parts):
            message = f" nothing matches '{self.filter_text}'; esc shows everything"
            return [[Piece(cut_start(message, width), "dim")]]
        return self.nothing(width)

    def _header(self, width: int, height: int) -> list[Line]:
        right = Piece(f"{self.counts()} ", "dim")
        room = width - line_width([right]) - 9
        left = [Piece(" flame ", "accent"), Piece(f" {cut(self.heading(), max(room, 8))}")]
        space = width - line_width([*left, right])
        return [[*left, Piece(" " * space), right] if space > 0 else left]

    def _notes(self, width: int) -> list[Line]:
        notes = self.notes()
        more = len(notes) - _NOTES
        shown = [*notes[: _NOTES - 1], f"and {more + 1} more like these"] if more > 0 else notes
        return [[Piece(f" {cut_start(printable(note), width - 2)}", "dim")] for note in shown]

    def _keys(self) -> Line:
        line: Line = []
        for key, word, action in self.keys():
            line += [Piece(f" {key}", "key", f"screen.{action}")]
            line += [Piece(f" {word} ", "", f"screen.{action}")]
        return line

    # Choosing

    def action_move(self, step: int) -> None:
        self._cursor += step
        self.draw()
        self.reveal()

    @on(Items.Clicked)
    def _click(self, message: Items.Clicked) -> None:
        place = self._places[message.line] if message.line < len(self._places) else None
        if place is not None and self.items:
            self._cursor = place
            self.draw()
            if message.opens:
                self.action_choose()

    @on(Input.Submitted)
    def _submit(self) -> None:
        self.action_choose()

    def action_filter(self) -> None:
        self.set_focus(self.query_one(TextEntry))

    @on(Input.Changed)
    def _filter(self) -> None:
        self._cursor = 0
        self._sift()
        self.draw()
        self.reveal()

    def action_back(self) -> None:
        """Out of the filter, then without it, then away."""
        entry = self.query_one(TextEntry)
        if not entry.value and not entry.has_focus:
            self.action_leave()
        self.set_focus(None)
        entry.value = ""

    def action_help(self) -> None:
        """Show what all keys do, and what the words of the list mean."""
        self.app.push_screen(Page(self._help))

    def _help(self, width: int) -> list[Line]:
        title: list[Line] = [[Piece(self.heading(), "strong")]]
        return key_help(title, bindings_of(type(self), ListScreen), self.terms(), width)
