"""Show the SASS of a kernel with its samples over the main screen, and do what its keys ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.screen import ModalScreen

from flame.core.errors import FlameError, UsageError
from flame.core.loading.inputs import Inputs
from flame.core.units import format_counted
from flame.tui.sampling.other_code import other_code, same_instructions
from flame.tui.sampling.subject import Spot, Subject
from flame.tui.sass.finder import ListingFinder, RowsFound
from flame.tui.sass.head import head_lines
from flame.tui.sass.help import sass_help
from flame.tui.sass.listing import (
    Listing,
    ListingRow,
    RowKind,
    SourceLines,
    line_text,
    listing_text,
    reasons_text,
)
from flame.tui.sass.reasons import pane
from flame.tui.sass.rows import ListingColumns, SassRows, ShownNumber
from flame.tui.sass.sides import ListedSide
from flame.tui.session.query import Query
from flame.tui.shell.actions import Move, check_actions
from flame.tui.shell.command import Command
from flame.tui.shell.commands import bindings
from flame.tui.shell.keymap import remapped
from flame.tui.shell.sass_commands import SASS_COMMANDS
from flame.tui.toolkit.clipboard import copied
from flame.tui.toolkit.lines import Line, Lines, Piece, palette_of
from flame.tui.toolkit.scroll_pane import ScrollPane, with_more
from flame.tui.toolkit.text import cut_start
from flame.tui.widgets.flame_screen import FlameScreen

_UNITS = tuple(ShownNumber)


class SassScreen(FlameScreen, ModalScreen[None]):
    """Show the instructions of a kernel on the first of ``sides``, of which a trace has one.

    ``inputs`` name files that are saved; ``keymap`` and ``editor`` are as the user has configured.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(SASS_COMMANDS)]

    def __init__(
        self,
        keymap: Mapping[str, str],
        editor: str,
        inputs: Inputs,
        *sides: ListedSide,
    ) -> None:
        super().__init__(remapped(SASS_COMMANDS, keymap))
        self._editor = editor
        self._inputs = inputs
        self._sides = sides
        self._side = sides[0]
        self._sources: dict[int, SourceLines] = {}
        self._source, self._folded = True, False
        self._version = self._side.spot.version
        self._listing = self._listed()
        self._cursor = self._listing.row_of(self._side.spot.place)
        self._unit = ShownNumber.SAMPLES
        self._finder = ListingFinder(self.post_message)
        self._heated = -1

    # Composition

    def compose(self) -> ComposeResult:
        yield Lines(self._head, id="sass-head")
        with Container(id="sass-body"):
            with Container(id="sass-listing"):
                yield Lines(self._heads, id="sass-columns")
                yield SassRows(id="sass-rows")
            yield ScrollPane(self._reasons, id="sass-reasons")
        yield from self._compose_bottom()

    def on_mount(self) -> None:
        self._show()

    @property
    def subject(self) -> Subject:
        """The kernel that is listed, as it is on the side that is shown."""
        return self._side.subject

    def _head(self, width: int, height: int) -> list[Line]:
        other = self._listing.other
        return head_lines(self._side, self._version, other, palette_of(self), width)

    def _heads(self, width: int, height: int) -> list[Line]:
        other = self._listing.other
        columns = ListingColumns.of(width, self._unit, other.side if other else "")
        return [columns.heads(self.subject.metric.title)]

    def _reasons(self, width: int, height: int) -> list[Line]:
        lines = pane(self.subject, self._listing, self._row, palette_of(self), width)
        return with_more(lines, width, height)

    def _cut_note(self, width: int) -> Line:
        return [piece._replace(text=cut_start(piece.text, width)) for piece in self._note]

    def _status_without_note(self, width: int) -> Line:
        if self._finder.query is not None:
            return [self._found(width)]
        if self._wide_enough:
            return [Piece(cut_start(f" {self._place()}", width), "dim")]
        return [Piece(cut_start(f" {self._reasons_in_a_line()}", width))]

    def _footer_commands(self) -> list[Command]:
        missing = {"code"} if len(self.subject.versions) == 1 else set()
        missing |= {"side"} if len(self._sides) == 1 else set()
        return [one for one in super()._footer_commands() if one.label not in missing]

    def _help(self, width: int) -> list[Line]:
        return sass_help(self.commands, palette_of(self), width)

    @property
    def pane_name(self) -> str:
        return "sass"

    @property
    def searched(self) -> Query | None:
        return self._finder.query

    @property
    def _row(self) -> ListingRow:
        return self._listing[self._cursor]

    @property
    def _wide_enough(self) -> bool:
        """Whether the reasons of what is selected are shown beside, or below, the listing."""
        return bool(self.query_one("#sass-reasons").display)

    def _found(self, width: int) -> Piece:
        """What the search has found."""
        if self._finder.searching:
            return Piece(cut_start(" searching …", width), "dim")
        if not len(self._finder.matches):
            return Piece(cut_start(" nothing here matches", width), "warning")
        place = int(np.searchsorted(self._finder.matches, self._cursor))
        here = place < len(self._finder.matches) and self._finder.matches[place] == self._cursor
        where = f" · match {place + 1:,}" if here else ""
        number = len(self._finder.matches)
        text = format_counted(number, "row matches", "rows match")
        return Piece(cut_start(f" {text}{where}", width))

    def _place(self) -> str:
        version, row = self._listing.version, self._row
        if not any(version.code.text):
            return "only where the samples are is known, not the instructions there"
        number = format_counted(len(version), "instruction", "instructions")
        ranked = np.flatnonzero(version.hottest == row.first)
        if len(ranked) and row.last - row.first == 1:
            return f"hottest {ranked[0] + 1:,} of {len(version.hottest):,} sampled · {number}"
        return f"{len(version.hottest):,} of {number} have samples"

    def _reasons_in_a_line(self) -> str:
        """The reasons of the selected row in a line, where there is no other place for them."""
        return reasons_text(self._listing, self._row) or self._place()

    # Showing

    def _follow(self) -> None:
        rows = self.query_one(SassRows)
        rows.show(self.subject, self._listing, self._cursor, self._unit, self._finder.matches)
        self.query_one("#sass-reasons", Lines).update()
        self.status_line.update()

    def _listed(self) -> Listing:
        version = self.subject.versions[self._version]
        sources = self._sources.setdefault(id(version), SourceLines(version.code))
        listing = Listing.of(version, sources, self._source, self._folded)
        others = [other_code(one.name, version.code, one.subject.versions) for one in self._others]
        return replace(listing, other=others[0]) if others else listing

    @property
    def _others(self) -> list[ListedSide]:
        return [side for side in self._sides if side is not self._side]

    def _relist(self, note: str = "") -> None:
        """List anew, and stay at the instruction that is selected."""
        place = self._row.first
        self._listing = self._listed()
        self._cursor = self._listing.row_of(place)
        self._look_for(self._finder.query)
        self._show(note)

    def on_resize(self) -> None:
        self.call_after_refresh(self._show)

    def _begin(self, row: int) -> None:
        """Select ``row``, as far as there is one, and show its reasons from the first on."""
        row = min(max(row, 0), len(self._listing) - 1)
        if row != self._cursor:
            self.query_one(ScrollPane).scroll_to(y=0, animate=False)
        self._cursor = row
        self._show()

    # Moving

    def action_move(self, way: str, step: int = 1) -> None:
        page = max(self.query_one(SassRows).inner.height - 1, 1)
        rows = {
            Move.UP: self._cursor - 1,
            Move.DOWN: self._cursor + 1,
            Move.PAGE: self._cursor + step * page,
            Move.HOME: 0,
            Move.END: len(self._listing) - 1,
        }
        self._begin(rows[Move(way)])

    def action_hottest(self, step: int) -> None:
        """From the hottest on to the next one, or back; from elsewhere to the hottest."""
        version, row = self._listing.version, self._row
        ranked = np.flatnonzero(version.hottest == row.first)
        ranked_here = len(ranked) and row.kind == RowKind.INSTRUCTION
        here = ranked_here and (self._heated == self._cursor or ranked[0] == 0)
        rank = int(ranked[0]) + step if here else 0
        if not 0 <= rank < len(version.hottest):
            self._show("no hotter instruction" if rank < 0 else "no other instruction has samples")
            return
        self._begin(self._listing.row_of(int(version.hottest[rank])))
        self._heated = self._cursor

    @on(SassRows.Chosen)
    def _chosen(self, message: SassRows.Chosen) -> None:
        self._begin(message.row)

    # Searching

    def _go_to_match(self) -> None:
        if len(self._finder.matches) and self._cursor not in self._finder.matches:
            self.action_match(1)

    def _escape(self) -> None:
        if self._finder.query is not None:
            self._search_for(None)
        else:
            self.action_leave()

    def _search(self, query: Query | None) -> None:
        note = self._look_for(query)
        self._show(note, "warning")

    def _look_for(self, query: Query | None) -> str:
        """Find ``query``, now or soon; why that cannot be, if so."""
        try:
            self._finder.search(self._listing, query)
        except UsageError as error:
            return str(error)
        return ""

    @on(RowsFound)
    def _rows_found(self, message: RowsFound) -> None:
        try:
            if self._finder.take(message):
                self._show()
        except UsageError as error:
            self._show(str(error), "warning")

    def action_match(self, step: int) -> None:
        if self._finder.query is None:
            self._show("no search yet: / begins one")
        elif len(self._finder.matches):
            after = int(np.searchsorted(self._finder.matches, self._cursor + (step > 0)))
            place = after if step > 0 else after - 1
            self._begin(int(self._finder.matches[place % len(self._finder.matches)]))

    # What is shown

    def action_lines(self) -> None:
        if not self._listing.version.has_lines:
            self._show("no source lines are known: compile with -lineinfo")
            return
        self._source = not self._source
        self._relist(f"source lines {'on' if self._source else 'off'}")

    def action_fold(self) -> None:
        self._folded = not self._folded
        self._relist("only what has samples" if self._folded else "all instructions")

    def action_unit(self, step: int) -> None:
        self._unit = _UNITS[(_UNITS.index(self._unit) + step) % len(_UNITS)]
        self.query_one("#sass-columns", Lines).update()
        self._show()

    def action_version(self, step: int) -> None:
        number = len(self.subject.versions)
        if number < 2:
            self._show("there is only one code of this kernel")
            return
        self._version = (self._version + step) % number
        self._list_another(self.subject.versions[self._version].hottest_for(""))

    def _list_another(self, place: int) -> None:
        """List the code that was turned to, the instruction at ``place`` first."""
        self._listing = self._listed()
        self._cursor = self._listing.row_of(place)
        self._look_for(self._finder.query)
        for name in ("#sass-head", "#sass-columns"):
            self.query_one(name, Lines).update()
        self._show()

    def action_show_side(self) -> None:
        """Turn to the other side of a comparison, to the same instruction where it has that."""
        if not (others := self._others):
            self._show("only a comparison has two sides: flame diff")
            return
        if not others[0].subject.versions:
            self._show(f"{others[0].name} has no samples of this kernel")
            return
        here, first = self._listing.version.code, self._row.first
        self._side = others[0]
        spot = self._side.spot
        for number, version in enumerate(self.subject.versions):
            places, others_places = same_instructions(version.code, here)
            at = np.flatnonzero(others_places == first)
            if len(at):
                spot = Spot(number, int(places[at[0]]))
                break
        self._version = spot.version
        self._list_another(spot.place)

    def action_details(self) -> None:
        self.toggle_class("-no-details")
        self.call_after_refresh(self._show)

    # Handing over

    def action_copy(self, what: str) -> None:
        if what == "line":
            self._show(copied(self.app, line_text(self.subject, self._listing, self._row)))
            return
        text = listing_text(self.subject, self._listing)
        rows = format_counted(len(self._listing), "row", "rows")
        self._show(copied(self.app, text, f"the listing, {rows}"))

    def action_source(self) -> None:
        from flame.tui.toolkit.editor import open_line

        line = self._listing.line(self._row)
        if line is None:
            self._show("no source line is recorded for this instruction")
            return
        file = self._listing.version.code.files[line[0]]
        self._show(open_line(self.app, file, line[1], self._editor))

    def action_screenshot(self) -> None:
        from flame.tui.dialogs.write_files import save_screenshot
        from flame.tui.toolkit.text import printable

        try:
            path = save_screenshot(self.app, self._inputs)
            self._show(f"saved {printable(path)}")
        except (FlameError, OSError) as error:
            self._show(f"not saved: {error}")

    def action_leave(self) -> None:
        """Back to the screen below."""
        self.dismiss(None)


check_actions(SassScreen, (command.action for command in SASS_COMMANDS))
