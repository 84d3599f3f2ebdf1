"""Share what screens with commands have in common: search, status line, keys and least size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.events import DescendantFocus
from textual.reactive import Reactive
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input

from flame.options.config import is_in_browser
from flame.tui.session.query import Query
from flame.tui.shell.actions import Action
from flame.tui.shell.base_app import BaseApp
from flame.tui.shell.command import Command, CommandScreen, Offer
from flame.tui.shell.commands import footer_of
from flame.tui.toolkit.lines import Line, Lines, Piece
from flame.tui.toolkit.scroll_pane import ScrollPane
from flame.tui.toolkit.text import cut, cut_start, width_of
from flame.tui.toolkit.themes import cycle
from flame.tui.widgets.header import footer
from flame.tui.widgets.help_page import HelpPage
from flame.tui.widgets.search_box import SearchBox, SearchHistory, searches_path


class FlameScreen(Screen[None]):
    """Show ``commands``, a search box, and a status line with a note until the next key."""

    AUTO_FOCUS = ""
    # Instance variables of Screen, whose types ClassVar would contradict.
    HORIZONTAL_BREAKPOINTS = [(0, "-sliver"), (20, "-tiny"), (60, "-narrow"), (100, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [  # noqa: RUF012
        (0, "-line"),
        (5, "-flat"),
        (15, "-short"),
        (22, "-medium"),
        (30, "-tall"),
    ]
    LEAST: ClassVar[tuple[int, int]] = (60, 15)
    """Columns and rows below which there is nothing but a line that says so."""

    # As Screen has it, but for the repaint of all cells whenever the search box is entered or left.
    focused: Reactive[Widget | None] = Reactive(None, repaint=False)

    def __init__(self, commands: Sequence[Command]) -> None:
        super().__init__()
        missing = {Action.SUSPEND} if is_in_browser() else set[str]()
        self.commands = [command for command in commands if command.action not in missing]
        self.search_box = SearchBox(id="search", history=SearchHistory(searches_path()))
        self.status_line = Lines(self._status, id="status")
        self.key_line = Lines(self._keys, id="keys")
        self._note: Line = []
        self._query_before: Query | None = None

    # What each screen says for itself

    @property
    def pane_name(self) -> str:
        """How commands call the view that is shown."""
        raise NotImplementedError

    @property
    def offered(self) -> Mapping[str, Sequence[Offer]]:
        """What the palette has besides keys, by the command that it follows."""
        return {}

    def said(self, text: str) -> str:
        """Say ``text``, which speaks of ranges in general, in the words of what is shown."""
        return text

    @property
    def searched(self) -> Query | None:
        """What is searched at the moment."""
        raise NotImplementedError

    def _search(self, query: Query | None) -> None:
        """Search ``query``, or nothing any more."""
        raise NotImplementedError

    def _go_to_match(self) -> None:
        """Select a match, now that the search has been entered."""
        raise NotImplementedError

    def _escape(self) -> None:
        """Leave the innermost thing that the screen is in, outside of the search box."""
        raise NotImplementedError

    def _follow(self) -> None:
        """Bring the screen up to date, whatever the status line says."""
        raise NotImplementedError

    def _status_without_note(self, width: int) -> Line:
        raise NotImplementedError

    def _help(self, width: int) -> list[Line]:
        raise NotImplementedError

    def _footer_commands(self) -> list[Command]:
        return footer_of(self.commands, self.pane_name)

    # Composition

    def _compose_bottom(self) -> ComposeResult:
        """Yield the lines below the views, and what stands there where there is too little room."""
        with Horizontal(id="bottom"):
            yield self.search_box
            yield self.status_line
        yield self.key_line
        yield Lines(self._too_small, id="small")

    def _status(self, width: int, height: int) -> list[Line]:
        return [self._cut_note(width) if self._note else self._status_without_note(width)]

    def _cut_note(self, width: int) -> Line:
        """The note in ``width`` cells: what follows its first piece stays whole."""
        first, *rest = self._note
        if not rest:
            return [first._replace(text=cut(first.text, width))]
        room = width - sum(width_of(piece.text) for piece in rest)
        return [first._replace(text=cut_start(first.text, max(room, 0))), *rest]

    def _keys(self, width: int, height: int) -> list[Line]:
        return [footer(self._footer_commands(), width)]

    def _too_small(self, width: int, height: int) -> list[Line]:
        columns, rows = self.LEAST
        text = f"needs {columns} × {rows} cells, here are {self.size.width} × {self.size.height}"
        return [[Piece(cut_start(text, width), "warning")]]

    def _show(self, note: str = "", tone: str = "dim", more: str = "") -> None:
        """Bring the screen up to date, with ``note`` in the status line until the next key.

        Where ``more`` (what to do about it) follows, it is the end of the note that is cut.
        """
        self._note = [Piece(f" {note}", tone)] if note else []
        if more:
            self._note.append(Piece(f"  {more}", "key"))
        self._follow()

    def _clear_note(self) -> None:
        """Say nothing more of what an earlier key came to."""
        if self._note:
            self._note = []
            self.status_line.update()

    def _compositor_refresh(self) -> None:
        app = self.app
        if isinstance(app, BaseApp) and (app.holds or app.await_terminal()):
            self._dirty_widgets.clear()  # the compositor knows what they cover
        else:
            super()._compositor_refresh()

    def on_screen_suspend(self) -> None:
        """What is said below a dialog is of before it."""
        self._clear_note()

    # Searching

    def action_search(self) -> None:
        self.set_focus(self.search_box)

    @on(DescendantFocus, "#search")
    def _search_begins(self) -> None:
        self._query_before = self.searched

    @on(Input.Changed, "#search")
    def _search_typed(self, event: Input.Changed) -> None:
        self._search(Query(event.value))

    @on(Input.Submitted, "#search")
    def _search_entered(self) -> None:
        self.set_focus(None)
        self._go_to_match()

    def action_escape(self) -> None:
        if self.search_box.has_focus:
            self.set_focus(None)
            self._search_for(self._query_before)
        else:
            self._escape()

    def _search_for(self, query: Query | None) -> None:
        """Search ``query`` and show it in the search box."""
        self.search_box.show(query)
        self._search(query)

    # Around the views

    def action_scroll_details(self, step: int) -> None:
        self._clear_note()
        self.query_one(ScrollPane).scroll(step)

    def action_help(self) -> None:
        self.app.push_screen(HelpPage(self._help))

    def action_theme(self, step: int) -> None:
        before = self.app.theme
        self._show(f"theme {cycle(self.app, step)}")
        if isinstance(self.app, BaseApp) and self.app.theme != before:
            self.app.remember_theme()

    def action_suspend(self) -> None:
        self.app.action_suspend_process()

    def action_palette(self) -> None:
        self.app.action_command_palette()


if TYPE_CHECKING:
    _FOR_THE_PALETTE: type[CommandScreen] = FlameScreen
