"""Write a report as text for people, at most as wide as they want."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from flame.console.terminal import cells, cut, printable
from flame.console.trace_words import notes
from flame.core.report.findings import section as findings
from flame.core.report.table import Section, Table
from flame.reporting.findings_text import findings_lines
from flame.reporting.values import titled, without_only_gpu, write_value

_GAP = "  "
_NARROWEST = 12
"""Cells that a column of text keeps however many there are."""


def as_text(sections: Iterable[Section], width: int, most: int, unit: str | None = None) -> str:
    """Write the tables of ``sections``, ``most`` rows of each; what is not there comes last."""
    shown = [section for section in sections if section.available]
    absent = [section for section in sections if not section.available]
    blocks = [["\n".join(_section(section, width, most, unit))] for section in shown]
    if absent:
        blocks.append(list(_absent(absent, width)))
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _section(section: Section, width: int, most: int, unit: str | None) -> Iterator[str]:
    yield section.title
    if section.name == findings.NAME:
        yield from ("", *findings_lines(section, width, max(findings.MOST, most)))
        return
    for table in section.tables:
        if table.rows:
            yield ""
            yield from _table(without_only_gpu(table.first(most)), width, unit)
    yield from notes(section.notes, width)


def _absent(sections: Sequence[Section], width: int) -> Iterator[str]:
    yield "Not recorded"
    for section in sections:
        yield cut(f"  {section.name}: {section.why}; {section.how}".rstrip("; "), width)


def _table(table: Table, width: int, unit: str | None) -> Iterator[str]:
    if table.title:
        yield f"  {table.title}"
    write = write_value(unit)
    head = [titled(column, unit) for column in table.columns]
    rows = [[write(*cell) for cell in zip(table.columns, row, strict=True)] for row in table.rows]
    widths = _widths([head, *rows], [not column.is_number for column in table.columns], width)
    right = [column.is_number for column in table.columns]
    for row in (head, *rows):
        yield _line(row, widths, right)
    if table.left_out:
        yield f"  … and {table.left_out:,} more"


def _widths(rows: Sequence[Sequence[str]], elastic: Sequence[bool], width: int) -> list[int]:
    """The width of each column; texts share what numbers leave."""
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    while sum(widths) + len(_GAP) * len(widths) > width:
        able = [at for at, can in enumerate(elastic) if can and widths[at] > _NARROWEST]
        if not able:
            break
        widths[max(able, key=widths.__getitem__)] -= 1
    return widths


def _line(row: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    parts = []
    for text, width, is_right in zip(row, widths, right, strict=True):
        shown = cut(printable(text), width)
        room = " " * (width - cells(shown))
        parts.append(room + shown if is_right else shown + room)
    return (_GAP + _GAP.join(parts)).rstrip()
