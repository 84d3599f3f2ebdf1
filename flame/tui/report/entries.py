"""List what the report has: the findings, and below them its sections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from flame.core.units import format_ns, format_percent
from flame.tui.report.source import SectionTitle
from flame.tui.report.worker import FINDINGS
from flame.tui.toolkit.lines import Line, Piece
from flame.tui.toolkit.text import cut, cut_start, fill, printable, width_of, wrap

if TYPE_CHECKING:
    from flame.core.report.table import Value
    from flame.tui.report.written import WrittenSection

WrittenSections = Mapping[str, "WrittenSection | str"]

_MARKS = {"high": "!! ", "medium": "!  ", "low": "·  ", "info": "i  "}
_TONES = {"high": "warning", "medium": "warning", "low": "", "info": "dim"}
_NAME = 14
"""Cells of a section's name, where none is longer."""

_TITLE_LINES = 3
_NARROW = 60
"""Cells below which a finding's bound is a share alone."""


class ReportEntry(NamedTuple):
    """Name what can be chosen: a section, or a finding by its place among them."""

    section: str
    row: int = -1


FIRST = ReportEntry(FINDINGS, 0)


class FindingRow(NamedTuple):
    """Hold a row of the findings, by the key of its column."""

    cells: dict[str, Value]

    def text(self, key: str) -> str:
        """Return a text, empty where there is none."""
        value = self.cells.get(key)
        return "" if value is None else str(value)

    @property
    def severity(self) -> str:
        """How bad it is."""
        return self.text("severity")

    @property
    def bound(self) -> int | None:
        """What mending it can save at most, ns."""
        value = self.cells.get("bound_ns")
        return value if isinstance(value, int) else None

    @property
    def percent(self) -> float | None:
        """The same as a share of the window."""
        value = self.cells.get("percent")
        return float(value) if isinstance(value, int | float) else None


def findings_of(sections: WrittenSections) -> list[FindingRow] | None:
    """Return the findings; None where they are not known, or there can be none."""
    found = sections.get(FINDINGS)
    if found is None or isinstance(found, str) or not found.section.available:
        return None
    rows = [(table.table.columns, row) for table in found.tables for row in table.table.rows]
    return [
        FindingRow({column.key: cell for column, cell in zip(columns, row, strict=True)})
        for columns, row in rows
    ]


def chip_text(sections: WrittenSections) -> tuple[str, bool]:
    """Count the findings for a chip, but for what is mere information; and whether one is high."""
    told = [one.severity for one in findings_of(sections) or () if one.severity != "info"]
    number = f"{len(told)} finding{'' if len(told) == 1 else 's'}" if told else ""
    return number, "high" in told


def why_absent(sections: WrittenSections, name: str) -> str | None:
    """Say why the trace cannot tell of a section; empty where it can, None while unknown."""
    found = sections.get(name)
    if found is None:
        return None
    return found if isinstance(found, str) else found.section.why


class EntryList:
    """Compose the list of ``titles`` of which ``sections`` are worked out; entries by line.

    Before any titles are known there are findings to come, in reports that ``judge``.
    """

    def __init__(
        self,
        titles: Iterable[SectionTitle],
        sections: WrittenSections,
        waits: bool,
        judges: bool = True,
    ) -> None:
        self._titles = tuple(titles)
        self._known = sections
        self._waits = waits
        self._judges = judges
        self.findings = findings_of(sections)

    @property
    def entries(self) -> list[ReportEntry]:
        """What can be chosen, from the top."""
        findings = [ReportEntry(FINDINGS, at) for at in range(len(self.findings or ()))]
        sections = [ReportEntry(one.name) for one in self._titles if one.name != FINDINGS]
        return [*(findings or [ReportEntry(FINDINGS)] * self._judges), *sections]

    def nearest(self, wanted: ReportEntry) -> ReportEntry:
        """Return ``wanted`` where there is that, else what comes closest."""
        entries = self.entries
        if wanted in entries or not entries:
            return wanted
        return next((one for one in entries if one.section == wanted.section), entries[0])

    def lines(
        self, width: int, chosen: ReportEntry, focused: bool
    ) -> list[tuple[Line, ReportEntry | None]]:
        """Compose a line for each entry, and titles above."""
        head: Line = [Piece(" Findings", "strong")]
        lines: list[tuple[Line, ReportEntry | None]] = [(head, None)] if self._judges else []
        sections = False
        for entry in self.entries:
            if entry.section != FINDINGS and not sections:
                sections = True
                lines.append(([Piece(" Sections", "strong")], None))
            for line in self._lines(entry, width):
                if entry == chosen:
                    text = fill("".join(piece.text for piece in line), width)
                    line = [Piece(text, "accent" if focused else "key")]
                lines.append((line, entry))
        return lines

    def _lines(self, entry: ReportEntry, width: int) -> Iterator[Line]:
        if entry.row >= 0 and self.findings:
            yield from _finding(self.findings[entry.row], width, self._several)
        else:
            yield list(self._line(entry, width))

    def _line(self, entry: ReportEntry, width: int) -> Iterator[Piece]:
        if entry.section == FINDINGS:
            yield Piece(cut(f"  {self._no_findings}", width), "dim")
        else:
            title = next(one.title for one in self._titles if one.name == entry.section)
            why = why_absent(self._known, entry.section)
            mark = "  " if why == "" else "– " if why else "… " if self._waits else "  "
            name = max(_NAME, *(len(one.name) + 1 for one in self._titles))
            yield Piece(f"{mark}{entry.section:<{name}}", "dim" if why else "")
            yield Piece(cut_start(printable(title), max(width - len(mark) - name, 0)), "dim")

    @property
    def _several(self) -> bool:
        return len({one.text("gpu") for one in self.findings or ()}) > 1

    @property
    def _no_findings(self) -> str:
        why = why_absent(self._known, FINDINGS)
        if why is None:
            return "working …" if self._waits else "…"
        return f"none: {why}" if why else "none that the rules know"


def _finding(one: FindingRow, width: int, several: bool) -> Iterator[Line]:
    """The mark of its severity, its title on some lines, and what it can save."""
    tone = _TONES.get(one.severity, "")
    bound = _bound(one, width)
    mark = _MARKS.get(one.severity, "   ")
    room = width - len(mark) - width_of(bound) - 1
    title = f"{one.text('gpu')}: {one.text('title')}" if several else one.text("title")
    ink, saves = "" if tone == "warning" else tone, Piece(f" {bound}", "strong" if bound else "")
    title, room = printable(title), max(room, 1)
    first, *more = wrap(title, room, _TITLE_LINES, prose=True) or [""]
    below = title[len(first) :].lstrip() if more else ""
    rest = wrap(below, width - len(mark), _TITLE_LINES - 1, prose=True)
    yield [Piece(mark, tone), Piece(fill(first, room), ink), saves]
    yield from ([Piece(" " * len(mark)), Piece(line, ink)] for line in rest)


def _bound(one: FindingRow, width: int) -> str:
    if one.percent is None:
        return ""
    share = format_percent(one.percent, 100)
    if width < _NARROW or one.bound is None:
        return share.rjust(7)
    return f"{format_ns(one.bound)} {share.rjust(7)}"
