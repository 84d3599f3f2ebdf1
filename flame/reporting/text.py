"""Write a report as text for people, at most as wide as they want."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from flame.console.trace_words import notes
from flame.core.report.findings import section as findings
from flame.core.report.table import Section, Table
from flame.core.shown_text import cells, cut, printable
from flame.reporting.findings_text import findings_lines
from flame.reporting.grid import GAP, fitting_widths, grid_of, narrowed
from flame.reporting.links import Link
from flame.reporting.values import for_people, reasons

_GAP = " " * GAP


def as_text(
    sections: Iterable[Section],
    width: int,
    most: int,
    unit: str | None = None,
    link: Link | None = None,
) -> str:
    """Write the tables of ``sections``, ``most`` rows of each; what is not there comes last.

    Findings come with the command that ``link`` writes.
    """
    shown = [section for section in sections if section.available]
    absent = [section for section in sections if not section.available]
    blocks = [_section(section, width, most, unit, link) for section in shown]
    if absent:
        blocks.append(_absent(absent, width))
    return "\n\n".join("\n".join(map(printable, block)) for block in blocks) + "\n"


def _section(
    section: Section, width: int, most: int, unit: str | None, link: Link | None
) -> Iterator[str]:
    yield section.title
    if section.name == findings.NAME:
        yield from ("", *findings_lines(section, width, link))
        return
    for table in section.tables:
        if table.rows:
            yield ""
            yield from _table(for_people(table, most), width, unit)
    yield from notes(section.notes, width)


def _absent(sections: Sequence[Section], width: int) -> Iterator[str]:
    yield "Not recorded"
    for reason, names in reasons(sections).items():
        text = printable(f"{', '.join(names)}: {reason}")
        yield from textwrap.wrap(
            text, width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
        )


def _table(table: Table, width: int, unit: str | None) -> Iterator[str]:
    if table.title:
        yield f"  {table.title}"
    head, rows, right, charts = grid_of(table, unit)
    natural = [max(map(cells, column)) for column in zip(head, *rows, strict=True)]
    widths = fitting_widths(natural, right, width)
    yield _line(head, widths, right)
    for row in rows:
        yield _line([*map(_narrowed, row, widths, charts)], widths, right)
    lines = f"… and {table.left_out:,} more" if table.left_out else ""
    beyond = ", ".join(map(printable, head[len(widths) :]))
    columns = f"not shown for want of width: {beyond}" if beyond else ""
    if lines or columns:
        yield cut(f"  {'; '.join(filter(None, (lines, columns)))}", width)


def _narrowed(text: str, width: int, is_chart: bool) -> str:
    return narrowed(text, width) if is_chart else text


def _line(row: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    parts = []
    for text, width, is_right in zip(row, widths, right, strict=False):
        shown = cut(printable(text), width)
        room = " " * (width - cells(shown))
        parts.append(room + shown if is_right else shown + room)
    return (_GAP + _GAP.join(parts)).rstrip()
