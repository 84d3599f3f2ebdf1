"""Hold what the report view shows: which entry is chosen, its rows, how they are sorted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from flame.core.units import format_count, format_counted
from flame.reporting.findings_text import evidence_words
from flame.tui.report.budget_bars import budget_lines, budgets_of
from flame.tui.report.entries import FIRST, EntryList, FindingRow, ReportEntry, WrittenSections
from flame.tui.report.page import (
    RowAt,
    SectionPage,
    Sorting,
    about,
    finding_page,
    is_quick_in,
    matching,
    no_findings_page,
    section_page,
    text_page,
)
from flame.tui.report.worker import FINDINGS, ReportWorker
from flame.tui.report.written import WrittenSection, WrittenTable
from flame.tui.toolkit.lines import Line
from flame.tui.toolkit.palette import Palette

if TYPE_CHECKING:
    from flame.core.projection.selection import Selection
    from flame.core.report.table import Place, Section
    from flame.tui.session.query import Query
    from flame.tui.session.session import Projection


class ReportContent:
    """Know what is chosen of the report, by what is known of it; ``section``, ``row`` at first.

    One that ``judges`` has findings, and the budget of the GPUs of one trace. ``everything`` is the
    command that writes all rows of long tables.
    """

    def __init__(
        self,
        section: str = "",
        row: int = -1,
        *,
        judges: bool = True,
        everything: str = "flame report --csv",
    ) -> None:
        self._judges = judges
        self._everything = everything
        self._in_rows = False
        self.page = SectionPage((), (), (), 1)
        self._page_of: ReportEntry | None = None
        self._entry = FIRST
        self._rows: dict[ReportEntry, int] = {}
        self._sorted: dict[tuple[str, str], tuple[str, bool]] = {}
        self._known: WrittenSections = {}
        self._list = EntryList((), {}, True, self._judges)
        self._shown: Projection | None = None
        self._composed: tuple[object, ...] = ()
        self._entries: list[ReportEntry | None] = []
        self._left = 0
        if section:
            self.go_to(section, row)

    # What there is

    def show(self, shown: Projection) -> None:
        """Take over what is shown now."""
        self._shown = shown

    def take(self, worker: ReportWorker) -> None:
        """Take over what has been worked out so far."""
        assert self._shown is not None
        self._known = worker.known(self._shown.selection)
        self._left = len(worker.titles) - len(self._known) if worker.busy else 0
        self._list = EntryList(worker.titles, self._known, worker.busy, self._judges)

    @property
    def subject(self) -> Selection | None:
        """What all of it is about."""
        return self._shown.selection if self._shown else None

    @property
    def _query(self) -> Query | None:
        result = self._shown.view.matches.result if self._shown else None
        return result.query if result else None

    @property
    def chosen(self) -> ReportEntry:
        """What is chosen in the list."""
        return self._list.nearest(self._entry)

    @property
    def finding(self) -> FindingRow | None:
        """The finding that is chosen, if it is one."""
        found, entry = self._list.findings, self.chosen
        return found[entry.row] if found and entry.section == FINDINGS and entry.row >= 0 else None

    @property
    def section(self) -> WrittenSection | None:
        """The section that is chosen, or that has the finding, once it is there."""
        found = self._known.get(self.chosen.section)
        return None if isinstance(found, str) else found

    @property
    def state(self) -> tuple[str, int]:
        """What is chosen as texts and numbers: the section, and the row or -1."""
        entry = self.chosen
        if entry.section == FINDINGS:
            return FINDINGS, entry.row
        row = self._row if self._page_rows else self._rows.get(entry, 0)
        return entry.section, row if self._in_rows else -1

    # Choosing

    @property
    def in_page(self) -> bool:
        """Whether keys move in rows; not before there are any."""
        return self._in_rows and bool(self._page_rows)

    def go_to(self, section: str, row: int) -> None:
        """Choose a section, or the finding at ``row``; a row of a section where it is not -1."""
        if section == FINDINGS:
            self._entry, self._in_rows = ReportEntry(FINDINGS, max(row, 0)), False
        else:
            self._entry, self._in_rows = ReportEntry(section), row >= 0
            self._rows[self._entry] = max(row, 0)

    def move(self, step: int, to_end: bool = False) -> str:
        """Move by ``step`` entries or rows, or to the first (below 0) or last of them."""
        if self.in_page:
            last = len(self._page_rows) - 1
            row = (last if step > 0 else 0) if to_end else self._row + step
            self._rows[self.chosen] = min(max(row, 0), last)
            return ""
        entries = self._list.entries
        if not entries:
            return ""
        last, at = len(entries) - 1, entries.index(self.chosen)
        at = (last if step > 0 else 0) if to_end else at + step
        self._entry, self._in_rows = entries[min(max(at, 0), last)], False
        return ""

    def turn(self, forward: bool) -> str:
        """Go to the rows of what is chosen, or back to the list; of a finding to its numbers."""
        if forward and self.finding is not None:
            self.go_to(about(self.finding), -1)
            return ""
        if forward and not self._page_rows:
            return "no rows here"
        self._in_rows = forward
        return ""

    @property
    def _row(self) -> int:
        """The place of the selected row, as far as there are so many."""
        return max(min(self._rows.get(self.chosen, 0), len(self._page_rows) - 1), 0)

    @property
    def _page_rows(self) -> list[RowAt]:
        """The rows of what is chosen; none until it is composed."""
        return self.page.rows if self._page_of == self.chosen else []

    @property
    def _at(self) -> tuple[WrittenTable, int] | None:
        """The table and the row that is selected, where keys move in rows."""
        if not self.in_page:
            return None
        at = self._page_rows[self._row]
        return self.page.tables[at.table], at.row

    # Where it leads

    @property
    def place(self) -> Place | None:
        """Where the selected row leads, or the finding."""
        if (at := self._at) is not None:
            return at[0].place(at[1])
        found = self.section
        if self.finding is None or found is None:
            return None
        return found.tables[0].place(self.chosen.row)

    @property
    def _leads(self) -> str:
        place = self.place
        return "" if place is None else "timeline" if place.window is not None else "icicle"

    def enter(self) -> str:
        """Go on from what leads nowhere in the picture: to rows, or to the section of a finding."""
        if self._at is not None:
            return "this row leads nowhere in the picture"
        if self.finding is None:
            return self.turn(forward=True)
        self.go_to(about(self.finding), -1)
        return ""

    @property
    def enter_label(self) -> str:
        """What the footer says of enter."""
        if leads := self._leads:
            return leads
        if self.finding is not None:
            return "numbers"
        return "rows" if not self.in_page and self._page_rows else ""

    # Sorting

    def _sorting(self, table: WrittenTable) -> Sorting | None:
        key, backwards = self._sorted.get((self.chosen.section, table.table.key), ("", False))
        keys = [column.key for column in table.shown.columns]
        return Sorting(keys.index(key), backwards) if key in keys else None

    def sort_by(self, number: int, column: int) -> str:
        """Sort a table by a column; the other way round where it is sorted by that already."""
        table = self.page.tables[number]
        before = self._sorting(table)
        backwards = before is not None and before.column == column and not before.backwards
        of = (self.chosen.section, table.table.key)
        self._sorted[of] = (table.shown.columns[column].key, backwards)
        first = next((at for at, one in enumerate(self._page_rows) if one.table == number), 0)
        self._rows[self.chosen] = first
        return f"sorted by {table.head[column]}"

    def sort_next(self, step: int) -> str:
        """Sort the table with the selected row by the next of its columns."""
        number = self._table
        if number is None:
            return "nothing to sort here"
        table = self.page.tables[number]
        before = self._sorting(table)
        at = before.column if before else -max(step, 0)
        return self._sort_anew(number, (at + step) % len(table.head))

    def sort_by_number(self, number: int) -> str:
        """Sort that table by the column with this number, from 1 on; 0 is the first text."""
        table = self._table
        if table is None:
            return "nothing to sort here"
        columns = len(self.page.tables[table].head)
        if number > columns:
            return f"there are {columns} columns"
        texts = [at for at, one in enumerate(self.page.tables[table].is_number) if not one]
        return self.sort_by(table, number - 1 if number else (texts or [0])[0])

    def _sort_anew(self, number: int, column: int) -> str:
        self._sorted.pop((self.chosen.section, self.page.tables[number].table.key), None)
        return self.sort_by(number, column)

    @property
    def _table(self) -> int | None:
        """The table with the selected row, else the first."""
        if not self._page_rows:
            return None
        return self._page_rows[self._row if self.in_page else 0].table

    # Searching

    def match(self, step: int) -> str:
        """Select the next row that matches: those that do not are not shown."""
        if not self._page_rows:
            return "no row matches"
        row = (self._row + step) % len(self._page_rows) if self.in_page else 0
        self._rows[self.chosen], self._in_rows = row, True
        return ""

    def _orders(self, found: WrittenSection) -> Iterator[list[int]]:
        """The rows of each table as they are sorted, those that match the search."""
        query = self._query
        pattern = query.compile() if query else None
        for table in found.tables:
            sorting = self._sorting(table)
            order = table.order(*sorting) if sorting else list(range(len(table)))
            searched = pattern is not None and is_quick_in(table, pattern)
            yield matching(table, order, pattern) if searched and pattern else order

    # Drawing

    def bars(self, palette: Palette, width: int, most: int) -> list[Line]:
        """Draw the budget of the GPUs, ``most`` of them."""
        found = self._known.get("budget") if self._judges else None
        if found is None or isinstance(found, str):
            return []
        return budget_lines(budgets_of(found.section), palette, width, most)

    def list_lines(self, width: int) -> list[Line]:
        """Compose the list."""
        chosen = self.chosen
        lines = self._list.lines(width, chosen, not self.in_page)
        self._entries = [entry for _, entry in lines]
        return [line for line, _ in lines]

    @property
    def line_of_entry(self) -> int:
        """The line of what is chosen in the list."""
        return self._entries.index(self.chosen) if self.chosen in self._entries else 0

    def page_for(self, width: int, palette: Palette) -> SectionPage:
        """Compose what is chosen, unless it is composed already."""
        sorts = tuple(sorted(self._sorted.items()))
        known = self._known.get(self.chosen.section)
        key = (self.subject, self.chosen, known, width, sorts, self._query)
        if key != self._composed:
            self._composed = key
            self.page, self._page_of = self._compose(known, width), self.chosen
        self.page.chosen = self._row if self.in_page else -1
        self.page.cursor = palette
        return self.page

    def _compose(self, known: WrittenSection | str | None, width: int) -> SectionPage:
        if isinstance(known, str):
            return text_page(self.chosen.section, known, width)
        if known is None:
            return text_page(self.chosen.section, "working …", width)
        if self.finding is not None:
            evidence = evidence_words(known.section, self.finding.cells)
            return finding_page(self.finding, evidence, self._way, width)
        if self.chosen.section == FINDINGS and known.section.available:
            return no_findings_page(known, width)
        sorted_by = [self._sorting(table) for table in known.tables]
        return section_page(known, [*self._orders(known)], sorted_by, width, self._everything)

    @property
    def _way(self) -> str:
        return {"timeline": "shows when", "icicle": "shows where"}.get(self._leads, "")

    @property
    def line_of_row(self) -> int:
        """The line of the selected row."""
        return self.page.line_of(self._row) if self.in_page else 0

    def hint(self) -> str:
        """Say how much is still worked out, or which row is selected."""
        if self.in_page:
            of = format_count(len(self.page.rows))
            word = "matching rows" if self._query else "rows"
            return f"row {format_count(self._row + 1)} of {of} {word}"
        if self._left > 0:
            return f"working … {format_counted(self._left, 'section', 'sections')} to come"
        one, entry = self.finding, self.chosen
        if not self._list.entries:
            return "working …"
        if one is not None:
            return f"{one.severity}, finding {entry.row + 1} of {len(self._list.findings or ())}"
        return f"section {entry.section}"

    # Mouse

    def click_entry(self, line: int) -> bool:
        """Choose what stands on a line of the list, if that is an entry."""
        entry = self._entries[line] if line < len(self._entries) else None
        if entry is not None:
            self._entry, self._in_rows = entry, False
        return entry is not None

    def click_row(self, line: int) -> bool:
        """Select the row on a line, if there is one."""
        row = self.page.row_at(line)
        if row >= 0:
            self._rows[self.chosen], self._in_rows = row, True
        return row >= 0

    # Passing on

    def copied(self, what: str) -> tuple[str, str] | None:
        """Return the selected row, with its titles if ``what`` is not its name; and what that is.

        None of the command line, which is not what is shown.
        """
        if what == "command":
            return None
        found = self.section
        if found is None:
            return None
        if (at := self._at) is not None:
            cells = at[0].cells[at[1]]
            if what == "name":
                return "  ".join(cells), "the row"
            titled = zip(at[0].head, cells, strict=True)
            return ", ".join(f"{title}: {cell}" for title, cell in titled), "the row, with titles"
        if (one := self.finding) is not None:
            texts = (one.text("title"), one.text("claim"), one.text("advice"))
            return ": ".join(texts[:2]) + f" {texts[2]}", "the finding"
        return found.section.name, f"'{found.section.name}'"

    @property
    def sections(self) -> list[Section]:
        """All sections that are there, in the order of the report."""
        names = [entry.section for entry in self._list.entries]
        found = [self._known[name] for name in dict.fromkeys(names) if name in self._known]
        return [one.section for one in found if not isinstance(one, str)]

    @property
    def table(self) -> WrittenTable | None:
        """The table with the selected row, else the first of what is chosen."""
        number = self._table
        return None if number is None else self.page.tables[number]
