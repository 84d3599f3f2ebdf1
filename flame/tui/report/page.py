"""Compose what the report view shows of one section, or of one finding."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from flame.core.regex import is_quick
from flame.core.units import format_count, format_counted, format_ns, format_percent
from flame.reporting.grid import GAP
from flame.tui.report.entries import FindingRow
from flame.tui.report.written import BAR, WrittenSection, WrittenTable
from flame.tui.toolkit.lines import Line, Piece, line_width
from flame.tui.toolkit.palette import Palette
from flame.tui.toolkit.text import cut, cut_start, fill, width_of, wrap

_LEADS = "› "
"""Before a row that leads into the picture."""

_TEXT_LINES = 6
_LABEL = 10
_TOLD = (
    *("severity", "id", "gpu", "bound_ns", "percent", "title", "claim", "advice", "part", "rule"),
    *("section", "confidence_note"),
)
"""Columns of a finding that have a place of their own."""


class RowAt(NamedTuple):
    """Name a row of a table of the page."""

    table: int
    row: int


class _Beyond(NamedTuple):
    """Stand for the line that tells of a table's columns without room."""

    table: int


class Sorting(NamedTuple):
    """Say by which column a table is sorted; ``backwards``: the other way round than usual."""

    column: int
    backwards: bool = False


class SectionPage:
    """Hold the lines of a section: texts, heads of tables, and rows, drawn when they are shown.

    ``order`` has the rows of each table that are shown, as they are sorted; ``chosen`` is the place
    of the selected one among all rows, -1: none is.
    """

    def __init__(
        self,
        tables: Sequence[WrittenTable],
        orders: Sequence[Sequence[int]],
        sorted_by: Sequence[Sorting | None],
        width: int,
        everything: str = "",
    ) -> None:
        self.tables = tables
        self.rows: list[RowAt] = []
        self.chosen = -1
        self.cursor: Palette | None = None
        self._sorted_by = sorted_by
        self._orders = orders
        self._everything = everything
        self._width = width
        self._items: list[Line | int | _Beyond] = []
        self._lines_of_rows: list[int] = []
        self._widths = [table.widths(max(width - len(_LEADS) + GAP, 1)) for table in tables]

    # Composing

    def add(self, *lines: Line) -> None:
        """Add lines of text."""
        self._items += lines

    def add_table(self, number: int) -> None:
        """Add a table: its title, its head, its rows, and what is left out."""
        table = self.tables[number]
        if table.shown.title:
            self.add([Piece(cut_start(table.shown.title, self._width), "strong")])
        self.add(self.head(number))
        for row in self._orders[number]:
            self._lines_of_rows.append(len(self._items))
            self._items.append(len(self.rows))
            self.rows.append(RowAt(number, row))
        if note := self._left_out(number):
            self.add([Piece(cut(f"  {note}", self._width), "dim")])
        if len(self._widths[number][0]) < len(table.head):
            self._items.append(_Beyond(number))

    def _left_out(self, number: int) -> str:
        table = self.tables[number]
        hidden = len(table) - len(self._orders[number])
        notes = [f"{format_counted(hidden, 'row does', 'rows do')} not match"] if hidden else []
        if table.left_out:
            written = f": {self._everything} has all" if self._everything else ""
            notes.append(f"{format_count(table.left_out)} more{written}")
        return "; ".join(notes)

    def _beyond(self, number: int) -> Line:
        """Name the columns that have no room, with what the selected row has there."""
        table, first = self.tables[number], len(self._widths[number][0])
        text = f"not shown for want of width: {', '.join(table.head[first:])}"
        if 0 <= self.chosen < len(self.rows) and self.rows[self.chosen].table == number:
            cells = table.cells[self.rows[self.chosen].row]
            pairs = zip(table.head[first:], cells[first:], strict=True)
            text = f"of this row: {', '.join(f'{title} {cell}' for title, cell in pairs if cell)}"
        return [Piece(cut_start(f"  {text}", self._width), "dim")]

    # Lines

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, line: int) -> Line:
        item = self._items[line]
        if isinstance(item, _Beyond):
            return self._beyond(item.table)
        return self._row(item) if isinstance(item, int) else item

    def line_of(self, row: int) -> int:
        """Return the line of the row at this place."""
        return self._lines_of_rows[row]

    def row_at(self, line: int) -> int:
        """Return the place of the row on this line, -1 of other lines."""
        item = self._items[line] if line < len(self._items) else None
        return item if isinstance(item, int) else -1

    def head_above(self, line: int) -> Line | None:
        """Return the head of the table of which a row is on this line; None of other lines."""
        row = self.row_at(line)
        return self.head(self.rows[row].table) if row >= 0 else None

    def head(self, number: int) -> Line:
        """Compose the titles of a table's columns; a click on one sorts by it."""
        table, (widths, bars) = self.tables[number], self._widths[number]
        sorting = self._sorted_by[number]
        line = [Piece(" " * len(_LEADS))]
        for at, width in enumerate(widths):
            marked = sorting is not None and sorting.column == at
            mark = ("▴" if _rises(table, sorting) else "▾") if sorting and marked else ""
            room = width - BAR * (at == bars)
            title = cut_start(table.head[at], room)
            inside = width_of(title + mark) <= room  # else the mark stands in the gap
            text = _aligned(title + mark if inside else title, room, table.is_number[at])
            text = fill(text, width)
            line += [Piece((mark if mark and not inside else " ").rjust(GAP))] if at else []
            line.append(Piece(text, "key" if marked else "dim", f"sort({number}, {at})"))
        return line

    def _row(self, place: int) -> Line:
        number, row = self.rows[place]
        table, (widths, bars) = self.tables[number], self._widths[number]
        texts = []
        for at, width in enumerate(widths):
            shown = table.drawn(row, at) if at == bars else table.cut(row, at, width)
            texts.append(_aligned(shown, width, table.is_number[at]))
        mark = _LEADS if table.place(row) else " " * len(_LEADS)
        line = [Piece(mark, "key"), Piece((" " * GAP).join(texts))]
        if place != self.chosen or self.cursor is None:
            return line
        text = fill("".join(piece.text for piece in line), self._width)
        return [Piece(text, self.cursor.cursor)]


def _rises(table: WrittenTable, sorting: Sorting) -> bool:
    return table.is_number[sorting.column] == sorting.backwards


def _aligned(text: str, width: int, right: bool) -> str:
    room = " " * (width - width_of(text))
    return room + text if right else text + room


def section_page(
    written: WrittenSection,
    orders: Sequence[Sequence[int]],
    sorted_by: Sequence[Sorting | None],
    width: int,
    everything: str = "",
) -> SectionPage:
    """Compose a section: its title, its tables and what is to be said of them.

    ``everything`` is the command that writes all rows of a table of which some are left out.
    """
    page = SectionPage(written.tables, orders, sorted_by, width, everything)
    title = wrap(written.section.title, width - 1, _TEXT_LINES, prose=True)
    page.add(*([Piece(f" {line}", "strong")] for line in title), [])
    if written.section.why:
        page.add(*_absent(written.section.why, written.section.how, width))
    elif not written.tables and not written.section.notes:
        page.add([Piece(" looked, and found none", "dim")])
    for number in range(len(written.tables)):
        page.add(*([[]] if number else []))
        page.add_table(number)
    notes = [line for note in written.section.notes for line in _told(note, width)]
    page.add(*([[]] if notes else []), *notes)
    return page


def _title(text: str, width: int) -> Line:
    return [Piece(cut_start(f" {text}", width), "strong")]


def _absent(why: str, how: str, width: int) -> Iterator[Line]:
    """Say why the trace cannot tell, and what would."""
    for line in wrap(why, width - 1, _TEXT_LINES, prose=True):
        yield [Piece(f" {line}", "warning")]
    for line in wrap(how, width - 1, _TEXT_LINES, prose=True):
        yield [Piece(f" {line}")]


def text_page(title: str, text: str, width: int) -> SectionPage:
    """Compose a page of one text, such as why there is no section."""
    page = SectionPage((), (), (), width)
    page.add(_title(title, width), [], *_absent(text, "", width))
    return page


def finding_page(finding: FindingRow, evidence: str, leads: str, width: int) -> SectionPage:
    """Compose a finding: what it is, its ``evidence``, what to do first, where enter ``leads``."""
    page = SectionPage((), (), (), width)
    page.add(_finding_head(finding, width), [])
    blocks: tuple[tuple[str, str, str], ...] = (
        ("", finding.text("claim"), ""),
        ("try first", finding.text("advice"), "strong"),
        ("saves", _saves(finding), ""),
        ("evidence", evidence, ""),
        ("caution", finding.text("confidence_note"), ""),
        ("told when", finding.text("rule"), "dim"),
        *((key, finding.text(key), "dim") for key in finding.cells if key not in _TOLD),
    )
    for label, text, tone in blocks:
        page.add(*_block(label, text, tone, width))
    page.add(*_ways(finding, leads, width))
    return page


def _finding_head(one: FindingRow, width: int) -> Line:
    word = f" {one.severity} "
    tone = "accent" if one.severity in ("high", "medium") else "key"
    room = width - width_of(word) - 1
    where = f"  {one.text('gpu')}"
    title = cut(one.text("title"), max(room - width_of(where), 8))
    return [Piece(word, tone), Piece(f" {title}", "strong"), Piece(cut(where, room), "dim")]


def _saves(one: FindingRow) -> str:
    """What mending it can save at most."""
    if one.bound is None:
        return ""
    share = f", {format_percent(one.percent, 100)} of the window" if one.percent else ""
    part = f", of {part}" if (part := one.text("part")) else ""
    return f"{format_ns(one.bound)} at most{share}{part}"


def _block(label: str, text: str, tone: str, width: int) -> Iterator[Line]:
    """A paragraph behind its label, and a line of room."""
    if not text:
        return
    indent = _LABEL + 1 if label else 1
    for number, line in enumerate(wrap(text, max(width - indent, 8), _TEXT_LINES, prose=True)):
        before = f" {label}" if not number and label else ""
        yield [Piece(before.ljust(indent), "dim"), Piece(line, tone)]
    yield []


def _ways(one: FindingRow, leads: str, width: int) -> Iterator[Line]:
    """Where to look: where enter leads, and the section with the numbers."""
    line: Line = [Piece(" ")]
    if leads:
        line += [Piece("enter", "key", "enter"), Piece(f" {leads}   ")]
    section = about(one)
    line += [Piece("→", "key"), Piece(" the numbers: ", "dim")]
    line.append(Piece(section, "key", f"turn('{section}')"))
    if line_width(line) <= width:
        yield line
    else:
        yield line[:3]
        yield [Piece(" "), *line[3:]]


def no_findings_page(written: WrittenSection, width: int) -> SectionPage:
    """Say that the rules have found nothing, where to look instead, and what they cannot judge."""
    page = SectionPage((), (), (), width)
    page.add(_title("Nothing is wrong that the rules know", width), [])
    is_memory = "nothing" in written.section.facts  # of a snapshot, which has no GPU time
    line: Line = [
        Piece(" whose the memory was: " if is_memory else " where the time went: ", "dim")
    ]
    for section in ("memory",) if is_memory else ("budget", "kernels"):
        line += [Piece(section, "key", f"turn('{section}')"), Piece("  ")]
    page.add(line, [])
    abstained = written.section.facts.get("abstained")
    for one in abstained if isinstance(abstained, list) else ():
        page.add(*_told(f"not judged, {one['id']}: {one['why']}", width))
    return page


def _told(text: str, width: int) -> Iterator[Line]:
    return ([Piece(f" {line}", "dim")] for line in wrap(text, width - 1, _TEXT_LINES, prose=True))


def about(finding: FindingRow) -> str:
    """Name the section with the numbers behind a finding."""
    return finding.text("section")


def matching(table: WrittenTable, order: Sequence[int], pattern: re.Pattern[str]) -> list[int]:
    """Keep the rows of ``order`` in which a text matches."""
    texts = [at for at, is_number in enumerate(table.is_number) if not is_number]
    return [row for row in order if any(pattern.search(table.cells[row][at]) for at in texts)]


def is_quick_in(table: WrittenTable, pattern: re.Pattern[str]) -> bool:
    """Tell whether ``pattern`` takes no more than a moment for each text of ``table``."""
    return is_quick(pattern, chain.from_iterable(table.cells))
