"""List what can be attached to, again every second, for the user to choose from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.screen import Screen
from textual.timer import Timer

from flame.attach.discover.model import Discovery, FinishedRecording, Job
from flame.core.errors import FlameError
from flame.options.config import Config
from flame.tui.attach.picker_rows import (
    TERMS,
    Item,
    about,
    heads,
    matches,
    nothing,
    pids_of,
    refusal,
    row,
)
from flame.tui.shell.base_app import BaseApp
from flame.tui.shell.start import Start
from flame.tui.toolkit.background import Done, call_once, in_background
from flame.tui.toolkit.lines import Line, Piece
from flame.tui.toolkit.list_screen import ItemGroup, ListScreen, prose
from flame.tui.toolkit.palette import Palette

PERIOD = 1.0
"""Seconds from one look to the next."""

_KEYS = (
    ("↑↓", "move", "move(1)"),
    ("enter", "attach", "choose"),
    ("r", "refresh", "refresh"),
    ("?", "help", "help"),
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


class PickerScreen(ListScreen[Item]):
    """Show jobs, then ended recordings, and below what the selected row means."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "choose", "attach to it, or open the ended recording"),
        Binding("r", "refresh", "look again now; it does every second"),
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
        self.draw()

    @on(Done)
    def _take(self, message: Done) -> None:
        self._looking, self._failed = False, ""
        try:
            found = message.result()
        except FlameError as error:
            self._failed = str(error)
            self.draw()
        else:
            assert isinstance(found, Discovery)
            self._found = found
            ended = ItemGroup[Item]("Ended recordings", found.finished)
            self.show_parts([ItemGroup[Item]("", found.jobs), ended])
        self._timer = call_once(self, PERIOD, self.action_refresh)

    def place_of(self, before: Item) -> int | None:
        """Find the same processes, also when they have ended."""
        pids = set(pids_of(before))
        same = [place for place, item in enumerate(self.items) if pids.intersection(pids_of(item))]
        alike = [place for place in same if type(self.items[place]) is type(before)]
        return next(iter([*alike, *same]), None)

    # What is shown

    def heading(self) -> str:
        return "attach to"

    def heads(self, width: int) -> Line:
        return heads(width)

    def row(self, item: Item, selected: bool, palette: Palette, width: int) -> Line:
        return row(item, selected, palette, width)

    def matches(self, item: Item, text: str) -> bool:
        return matches(item, text)

    def nothing(self, width: int) -> list[Line]:
        if self._found is None:
            return [] if self._failed else [[Piece(" looking for what runs here …", "dim")]]
        return nothing(width)

    def counts(self) -> str:
        if self._found is None:
            return ""
        jobs, ended = len(self._found.jobs), len(self._found.finished)
        shown = len(self.items)
        part = f"{shown} of " if shown < jobs + ended else ""
        return f"{part}{jobs} running · {ended} ended"

    def notes(self) -> Sequence[str]:
        return self._found.notes if self._found else ()

    def about(self, width: int) -> list[Line]:
        """What went wrong, or else what the selected row means."""
        if self._failed or self.selected is None:
            return prose(self._failed, "warning", width)
        reason = refusal(self.selected)
        return prose(reason or about(self.selected), "warning" if reason else "dim", width)

    def keys(self) -> Sequence[tuple[str, str, str]]:
        return _KEYS

    def terms(self) -> Sequence[tuple[str, str]]:
        return TERMS

    # Choosing

    def action_choose(self) -> None:
        """Leave with the selected row, unless it says why that is not possible."""
        if self.selected and not refusal(self.selected):
            self.post_message(self.Left(self.selected))

    def action_leave(self) -> None:
        self.post_message(self.Left(None))
