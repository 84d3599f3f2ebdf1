"""Write a report as text for people, at most as wide as they want."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from flame.console.terminal import cells, cut, printable
from flame.console.trace_words import notes
from flame.core.report.findings import section as findings
from flame.core.report.sections import budget
from flame.core.report.table import Section, Table
from flame.reporting.findings_text import findings_lines
from flame.reporting.links import Link
from flame.reporting.values import for_people, reasons, titled, write_value

_GAP = "  "
_NARROWEST_NAME, _NARROWEST = 24, 12
"""Cells that the first column, and others of text, keep however many there are."""


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
    blocks = [["\n".join(_section(section, width, most, unit, link))] for section in shown]
    if absent:
        blocks.append(list(_absent(absent, width)))
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


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
            kept = table if section.name == budget.NAME else table.first(most)  # parts add up
            yield from _table(for_people(kept), width, unit)
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
    write = write_value(unit)
    head = [titled(column, unit) for column in table.columns]
    rows = [[write(*cell) for cell in zip(table.columns, row, strict=True)] for row in table.rows]
    natural = [max(map(cells, column)) for column in zip(head, *rows, strict=True)]
    right = [column.is_number for column in table.columns]
    widths = _widths(natural, right, width)
    for row in (head, *rows):
        yield _line(row, widths, right)
    lines = f"… and {table.left_out:,} more" if table.left_out else ""
    beyond = ", ".join(map(printable, head[len(widths) :]))
    columns = f"not shown for want of width: {beyond}" if beyond else ""
    if lines or columns:
        yield cut(f"  {'; '.join(filter(None, (lines, columns)))}", width)


def _widths(natural: Sequence[int], is_number: Sequence[bool], width: int) -> list[int]:
    """The width of each column that has room; texts share what numbers leave."""
    least = [
        cells if number else min(cells, _NARROWEST if at else _NARROWEST_NAME)
        for at, (cells, number) in enumerate(zip(natural, is_number, strict=True))
    ]
    while len(least) > 1 and sum(least) + len(_GAP) * len(least) > width:
        least.pop()
    widths = list(natural[: len(least)])
    while sum(widths) + len(_GAP) * len(widths) > width:
        able = [at for at, cells in enumerate(least) if widths[at] > cells]
        if not able:
            break
        widths[max(able, key=widths.__getitem__)] -= 1
    return widths


def _line(row: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    parts = []
    for text, width, is_right in zip(row, widths, right, strict=False):
        shown = cut(printable(text), width)
        room = " " * (width - cells(shown))
        parts.append(room + shown if is_right else shown + room)
    return (_GAP + _GAP.join(parts)).rstrip()
