"""List what can be attached to, again every second, for the user to choose from."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Input

from flame.attach.discover.model import Discovery, FinishedRecording, Job
from flame.core.errors import FlameError
from flame.options.config import Config
from flame.tui.attach.picker_rows import (
    Item,
    about,
    heads,
    matches,
    nothing,
    pids_of,
    prose,
    refusal,
    row,
)
from flame.tui.shell.base_app import BaseApp
from flame.tui.shell.start import Start
from flame.tui.toolkit.background import Done, in_background
from flame.tui.toolkit.dialog import Entry
from flame.tui.toolkit.lines import Line, Lines, Piece, line_width, palette_of
from flame.tui.toolkit.text import cut_start, printable

PERIOD = 1.0
"""Seconds from one look to the next."""

_NOTES = 3
_PAGE = 10
_KEYS = (
    ("↑↓", "move", "move(1)"),
    ("enter", "attach", "attach"),
    ("r", "refresh", "refresh"),
    ("q", "quit", "leave"),
)


def pick(
    find: Callable[[], Discovery], config: Config, start: Start | None = None
) -> Job | FinishedRecording | None:
    """Have the user choose one of what ``find`` finds; None if nothing was chosen.

    ``find`` runs in a thread, once a second. The terminal has been checked.
    """
    app = Picker(find, config, start)
    app.run()
    app.exit_code()
    return app.chosen


class Picker(BaseApp):
    """Run the list as an app; ``chosen`` is what the user left with."""

    def __init__(
        self, find: Callable[[], Discovery], config: Config, start: Start | None = None
    ) -> None:
        super().__init__(config, {}, start)
        self.chosen: Item | None = None
        self._find = find

    def get_default_screen(self) -> Screen[None]:
        return PickerScreen(self._find)

    def on_picker_screen_left(self, message: PickerScreen.Left) -> None:
        self.chosen = message.item
        self.exit()


class Items(Lines):
    """Show the lines of the list, and say which is clicked."""

    class Clicked(Message):
        """Say that the user clicked ``line``, counted from the top of the list."""

        def __init__(self, line: int, opens: bool) -> None:
            super().__init__()
            self.line = line
            self.opens = opens

    def on_click(self, event: events.Click) -> None:
        self.post_message(self.Clicked(self.scroll_offset.y + event.y, opens=event.chain == 2))

    def reveal(self, first: int, last: int) -> None:
        """Scroll so that the lines from ``first`` to ``last`` are in sight."""
        height, top = self.inner.height, self.scroll_offset.y
        if first < top:
            self.scroll_to(y=first, animate=False)
        elif last >= top + height:
            self.scroll_to(y=last - height + 1, animate=False)


class PickerScreen(Screen[None]):
    """Show the list, and below it what the selected row means."""

    AUTO_FOCUS = ""
    DEFAULT_CSS = """
    PickerScreen #heads { height: 1; overflow-y: hidden; background: $surface; }
    PickerScreen #items { height: 1fr; }
    PickerScreen #notes { height: auto; max-height: 3; overflow-y: hidden; }
    PickerScreen #about { height: 2; overflow-y: hidden; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)"),
        Binding("down,j", "move(1)"),
        Binding("pageup", f"move(-{_PAGE})"),
        Binding("pagedown", f"move({_PAGE})"),
        Binding("home,g", "move(-1000000)"),
        Binding("end,G", "move(1000000)"),
        Binding("enter", "attach"),
        Binding("slash", "filter"),
        Binding("r", "refresh"),
        Binding("escape", "back"),
        Binding("q", "leave"),
    ]

    class Left(Message):
        """Say that the user has chosen ``item``, or wants none."""

        def __init__(self, item: Item | None) -> None:
            super().__init__()
            self.item = item

    def __init__(self, find: Callable[[], Discovery]) -> None:
        super().__init__()
        self._find = find
        self._found: Discovery | None = None
        self._failed = ""
        self._looking = False
        self._timer: Timer | None = None
        self._cursor = 0

    def compose(self) -> ComposeResult:
        yield Lines(self._header, id="header")
        yield Lines(lambda width, height: [heads(width)], id="heads")
        yield Items(self._list, id="items")
        yield Lines(lambda width, height: self._notes(width), id="notes")
        yield Lines(self._about, id="about")
        with Horizontal(id="bottom"):
            entry = Entry(id="search")
            entry.placeholder = "/ filter"
            yield entry
            yield Lines(self._keys, id="status")

    def on_mount(self) -> None:
        self.action_refresh()

    # What is found

    def action_refresh(self) -> None:
        """Look now, unless that is going on."""
        if self._timer is not None:
            self._timer.stop()
        if not self._looking:
            self._looking = True
            in_background(self._find, 0, self.post_message)
        self._draw()

    @on(Done)
    def _take(self, message: Done) -> None:
        self._looking, self._failed = False, ""
        before = self._selected
        try:
            found = message.result()
        except FlameError as error:
            self._failed = str(error)
        else:
            assert isinstance(found, Discovery)
            self._found = found
            self._keep(before)
        self._timer = self.set_timer(PERIOD, self.action_refresh)
        self._draw()

    @property
    def _items(self) -> list[Item]:
        """What the filter lets through: jobs, then ended recordings."""
        if self._found is None:
            return []
        text = self.query_one(Entry).value
        every: tuple[Item, ...] = (*self._found.jobs, *self._found.finished)
        return [item for item in every if matches(item, text)]

    @property
    def _selected(self) -> Item | None:
        items = self._items
        return items[min(self._cursor, len(items) - 1)] if items else None

    def _keep(self, before: Item | None) -> None:
        """Select what was selected ``before``: the same processes, also when they have ended."""
        pids = set(pids_of(before)) if before else set()
        same = [place for place, item in enumerate(self._items) if pids.intersection(pids_of(item))]
        alike = [place for place in same if type(self._items[place]) is type(before)]
        self._cursor = next(iter([*alike, *same]), self._cursor)

    # What is shown

    def _draw(self) -> None:
        self._cursor = max(min(self._cursor, len(self._items) - 1), 0)
        notes = self.query_one("#notes", Lines)
        if len(self._notes(notes.size.width)) != notes.size.height:
            notes.refresh(layout=True)
        for lines in self.query(Lines):
            lines.update()

    def _reveal(self) -> None:
        """Have the selected row in sight, with the title of its part if it is the first there."""
        places = self._places()
        if self._cursor in places:
            line = first = places.index(self._cursor)
            while first and places[first - 1] is None:
                first -= 1
            self.query_one(Items).reveal(first, line)

    def _places(self) -> list[int | None]:
        """By line of the list the place of its item; None where it is of no item."""
        items = self._items
        jobs = sum(isinstance(item, Job) for item in items)
        places: list[int | None] = [*range(jobs)]
        if jobs < len(items):
            places += [None] * (2 if jobs else 1)
        return [*places, *range(jobs, len(items))]

    def _list(self, width: int, height: int) -> list[Line]:
        items, palette = self._items, palette_of(self.query_one(Items))
        if not items:
            return [[], *self._none(width)]
        lines: list[Line] = []
        for line, place in enumerate(places := self._places()):
            if place is not None:
                lines.append(row(items[place], place == self._cursor, palette, width))
            else:
                title = "Ended recordings" if places[line + 1] is not None else ""
                lines.append([Piece(f" {title}", "strong")])
        return lines

    def _none(self, width: int) -> list[Line]:
        """What stands in an empty list."""
        if self._found is None:
            return [] if self._failed else [[Piece(" looking for what runs here …", "dim")]]
        if text := self.query_one(Entry).value:
            message = f" nothing matches '{text}'; esc shows everything"
            return [[Piece(cut_start(message, width), "dim")]]
        return nothing(width)

    def _header(self, width: int, height: int) -> list[Line]:
        left = [Piece(" flame ", "accent"), Piece(" attach to")]
        right = Piece(f"{self._counts()} ", "dim")
        space = width - line_width([*left, right])
        return [[*left, Piece(" " * space), right] if space > 0 else left]

    def _counts(self) -> str:
        if self._found is None:
            return ""
        jobs, ended = len(self._found.jobs), len(self._found.finished)
        shown = len(self._items)
        part = f"{shown} of " if shown < jobs + ended else ""
        return f"{part}{jobs} running · {ended} ended"

    def _notes(self, width: int) -> list[Line]:
        notes = self._found.notes if self._found else ()
        more = len(notes) - _NOTES
        shown = [*notes[: _NOTES - 1], f"and {more + 1} more like these"] if more > 0 else notes
        return [[Piece(f" {cut_start(printable(note), width - 2)}", "dim")] for note in shown]

    def _about(self, width: int, height: int) -> list[Line]:
        """What went wrong, or else what the selected row means."""
        if self._failed or self._selected is None:
            return prose(self._failed, "warning", width)
        reason = refusal(self._selected)
        return prose(reason or about(self._selected), "warning" if reason else "dim", width)

    def _keys(self, width: int, height: int) -> list[Line]:
        line: Line = []
        for key, word, action in _KEYS:
            line += [Piece(f" {key}", "key", f"screen.{action}")]
            line += [Piece(f" {word} ", "", f"screen.{action}")]
        return [line]

    # Choosing

    def action_move(self, step: int) -> None:
        self._cursor += step
        self._draw()
        self._reveal()

    @on(Items.Clicked)
    def _click(self, message: Items.Clicked) -> None:
        places = self._places()
        place = places[message.line] if message.line < len(places) else None
        if place is not None:
            self._cursor = place
            self._draw()
            if message.opens:
                self.action_attach()

    @on(Input.Submitted)
    def action_attach(self) -> None:
        """Leave with the selected row, unless it says why that is not possible."""
        if self._selected and not refusal(self._selected):
            self.post_message(self.Left(self._selected))

    def action_filter(self) -> None:
        self.set_focus(self.query_one(Entry))

    @on(Input.Changed)
    def _filter(self) -> None:
        self._cursor = 0
        self._draw()
        self._reveal()

    def action_back(self) -> None:
        """Out of the filter, then without it, then away."""
        entry = self.query_one(Entry)
        if not entry.value and not entry.has_focus:
            self.action_leave()
        self.set_focus(None)
        entry.value = ""

    def action_leave(self) -> None:
        self.post_message(self.Left(None))
