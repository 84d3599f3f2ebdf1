"""List the traces in a folder and those shown last, for the user to open one or several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.message import Message

from flame.core.loading.search import FolderSearch, FoundTrace, look_at
from flame.core.readers.unsupported import READS
from flame.options.recent import read_recent
from flame.tui.picker.feed import TraceFeed, TracesFound
from flame.tui.picker.rows import (
    ORDERS,
    Key,
    TraceRow,
    about,
    heads,
    home_path,
    matches,
    offer_of,
    paths_of,
    recent_offer,
    row,
    short_path,
    sort_offers,
)
from flame.tui.toolkit.lines import Line, Piece
from flame.tui.toolkit.list_screen import ItemGroup, ListScreen, prose
from flame.tui.toolkit.palette import Palette
from flame.tui.toolkit.text import cut

RECENT_ROWS = 8
"""Views shown before that are listed; a filter looks through all of them."""


class TracesScreen(ListScreen[TraceRow]):
    """Show the traces in ``folder``, below those shown last if these are ``with_recent``."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "choose", "open it, or all that are marked as one"),
        Binding("space", "mark", "mark it, or no longer"),
        Binding("a", "mark_all", "mark all that are listed, or none"),
        Binding("s", "sort", "sort by another column"),
        Binding("r", "refresh", "look again"),
    ]

    class Chosen(Message):
        """Say that the user wants to see the traces at ``paths``."""

        def __init__(self, paths: tuple[Path, ...]) -> None:
            super().__init__()
            self.paths = paths

    class Left(Message):
        """Say that the user wants to see none."""

    def __init__(self, folder: Path, with_recent: bool) -> None:
        super().__init__()
        self._folder = folder
        self._with_recent = with_recent
        self._marked: dict[Key, TraceRow] = {}
        self._order = 0
        self._error = ""
        self._moved = False
        self._again = False
        self._here: list[TraceRow] = []
        self._recent: list[TraceRow] = []
        self._prepare()

    def on_mount(self) -> None:
        self._start()

    def on_unmount(self) -> None:
        self.stop()

    # What is found

    def _prepare(self) -> None:
        self._search = FolderSearch(self._folder)
        self._new_here: list[TraceRow] = []
        self._new_recent: list[TraceRow] = []
        self._in_folder = TraceFeed(self._search.looks(), self.post_message)
        self._in_history = TraceFeed(self._look_at_recent(), self.post_message)

    @property
    def _feeds(self) -> tuple[TraceFeed, ...]:
        return self._in_history, self._in_folder

    def _start(self) -> None:
        for feed in self._feeds:
            feed.start()
        self._list_anew()

    def stop(self) -> None:
        """Look for no more traces."""
        for feed in self._feeds:
            feed.stop()

    def action_refresh(self) -> None:
        """Look anew: what is listed stays until that is done, what is marked in any case."""
        self.stop()
        self._again = True
        self._prepare()
        self._start()

    def _look_at_recent(self) -> Iterator[FoundTrace | None]:
        if self._with_recent:
            yield from map(look_at, read_recent())

    @on(TracesFound)
    def _take(self, message: TracesFound) -> None:
        if message.error is not None:
            raise message.error
        if message.feed is self._in_folder:
            self._new_here += [offer_of(trace, self._folder) for trace in message.traces]
        elif message.feed is self._in_history:
            self._new_recent += map(recent_offer, message.traces)
        message.feed.done = message.done
        if self._in_folder.done or not self._again:
            self._here = self._new_here
        if self._in_history.done or not self._again:
            self._recent = self._new_recent
        if not self._looking:
            self._forget_gone()
        self._list_anew()

    def _forget_gone(self) -> None:
        """Take the marks of what is no longer listed."""
        listed = {offer.key for offer in (*self._here, *self._recent)}
        self._marked = {key: offer for key, offer in self._marked.items() if key in listed}

    @property
    def _looking(self) -> bool:
        return not all(feed.done for feed in self._feeds)

    def _list_anew(self) -> None:
        order = ORDERS[self._order]
        here = ItemGroup(f"In {home_path(self._folder)}", sort_offers(self._here, order))
        recent = ItemGroup("Recent", sort_offers(self._recent, order), RECENT_ROWS)
        self.show_parts([recent, here] if self._with_recent else [here._replace(title="")])
        if not self._moved:
            self.call_after_refresh(self.reveal)

    def place_of(self, before: TraceRow) -> int | None:
        """Find the same traces in the same part; the first row until the user has moved."""
        if not self._moved:
            return 0
        wanted = (before.recent, before.key)
        places = enumerate(self.items)
        return next((at for at, one in places if (one.recent, one.key) == wanted), None)

    # What is shown

    def heading(self) -> str:
        return "open a trace" if self._with_recent else f"traces in {short_path(self._folder)}"

    def counts(self) -> str:
        marked = f"{len(self._marked):,} marked · " if self._marked else ""
        every = {offer.key for offer in (*self._here, *self._recent)}
        shown = {offer.key for offer in self.items} if self.filter_text else every
        part = f"{len(shown):,} of " if len(shown) < len(every) else ""
        traces = "1 trace" if len(every) == 1 else f"{len(every):,} traces"
        return f"{marked}{part}{traces}{' · looking …' if self._looking else ''}"

    def heads(self, width: int) -> Line:
        return heads(width)

    def row(self, item: TraceRow, selected: bool, palette: Palette, width: int) -> Line:
        return row(item, selected, item.key in self._marked, palette, width)

    def matches(self, item: TraceRow, text: str) -> bool:
        return matches(item, text)

    def nothing(self, width: int) -> list[Line]:
        where = home_path(self._folder)
        if self._looking:
            return [[Piece(f" looking for traces in {cut(where, width - 26)} …", "dim")]]
        text = f"There is no trace in {where}, nor in the folders below it."
        lines = prose(text, "", width, 3)
        lines += [[], *prose(READS, "dim", width, 4)]
        lines += [[], *prose("flame record -- CMD", "key", width)]
        return [*lines, *prose("runs CMD and records it", "dim", width)]

    def notes(self) -> Sequence[str]:
        """Tell what has not been looked at."""
        search, notes = self._search, []
        if search.unreadable:
            some = "1 folder" if search.unreadable == 1 else f"{search.unreadable:,} folders"
            notes.append(f"{some} cannot be read")
        if search.cut:
            notes.append("there is more than was looked at: flame view FOLDER looks further in")
        return notes

    def about(self, width: int) -> list[Line]:
        """What went wrong, or else what will be opened."""
        if self._error:
            return prose(self._error, "warning", width)
        if self._marked:
            names = ", ".join(offer.name for offer in self._marked.values())
            number = len(paths_of(list(self._marked.values())))
            what = "the marked trace" if number == 1 else f"{number:,} traces as one view"
            return [*prose(f"enter opens {what}:", "dim", width, 1), *prose(names, "dim", width, 1)]
        if self.selected is None:
            return []
        return [[Piece(f" {cut(text, width - 2)}", "dim")] for text in about(self.selected)]

    def keys(self) -> Sequence[tuple[str, str, str]]:
        return (
            ("space", "mark", "mark"),
            ("a", "all", "mark_all"),
            ("enter", "open", "choose"),
            ("s", ORDERS[self._order].title, "sort"),
            ("r", "refresh", "refresh"),
            ("?", "help", "help"),
            ("q", "quit", "leave"),
        )

    # Choosing

    def go_on(self, error: str) -> None:
        """Look on for traces: what was chosen could not be shown, or was not waited for."""
        self._error = error
        for feed in self._feeds:
            feed.go_on()
        self.draw()

    def action_move(self, step: int) -> None:
        """Move, out of the filter: letters are keys then, and the filter stays."""
        self.set_focus(None)
        self._moved, self._error = True, ""
        super().action_move(step)

    def action_mark(self) -> None:
        """Mark the selected row, or take that back, and go to the next."""
        if self.selected:
            self._mark([self.selected])
            self.action_move(1)

    def action_mark_all(self) -> None:
        """Mark all rows of this part of the list, or if they are, take that back."""
        if (here := self.selected) is not None:
            self._mark([offer for offer in self.items if offer.recent == here.recent])
            self.draw()

    def _mark(self, offers: Sequence[TraceRow]) -> None:
        self._error = ""
        if all(offer.key in self._marked for offer in offers):
            for offer in offers:
                self._marked.pop(offer.key, None)
        else:
            self._marked |= {offer.key: offer for offer in offers}

    def action_sort(self) -> None:
        """Sort by the next order, and go to the first row."""
        self._order = (self._order + 1) % len(ORDERS)
        self._moved = False
        self._list_anew()

    def action_choose(self) -> None:
        """Open what is marked, else the selected row."""
        marked = list(self._marked.values())
        offers = marked or [offer for offer in (self.selected,) if offer]
        if offers:
            for feed in self._feeds:
                feed.pause()
            self.post_message(self.Chosen(paths_of(offers)))

    def action_leave(self) -> None:
        self.post_message(self.Left())
