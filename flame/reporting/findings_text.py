"""Write findings as text: a line each for what it is, why, and what to do."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from flame.console.terminal import printable
from flame.core.report.table import Section
from flame.core.units import format_ns

_INDENT = "          "


def findings_lines(section: Section, width: int, most: int) -> Iterator[str]:
    """Write the first ``most`` findings; say so where there are none."""
    table = section.tables[0]
    if not table.rows:
        yield "  nothing that the rules know: see the budget for where the time went"
    several = len({row[_at(section, "gpu")] for row in table.rows}) > 1
    for number, row in enumerate(table.rows[:most]):
        found = {column.key: cell for column, cell in zip(table.columns, row, strict=True)}
        if number:
            yield ""
        where = f"{found['gpu']}: " if several else ""
        bound = found.get("bound_ns")
        saves = f"  (at most {format_ns(float(bound))})" if bound is not None else ""
        yield f"  {found['severity']!s:<8}{where}{found['title']}{saves}"
        for text in (found["claim"], found["advice"]):
            yield from textwrap.wrap(
                printable(str(text)),
                width,
                initial_indent=_INDENT,
                subsequent_indent=_INDENT,
                break_on_hyphens=False,
            )
    if len(table.rows) > most:
        yield f"  … and {len(table.rows) - most} more: --top {len(table.rows)}"


def _at(section: Section, key: str) -> int:
    return [column.key for column in section.tables[0].columns].index(key)
