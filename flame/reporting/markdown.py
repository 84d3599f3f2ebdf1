"""Write a report as GitHub-flavoured Markdown, for a comment on a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from flame.console.terminal import printable
from flame.core.report.table import Section, Table
from flame.reporting.values import for_people, titled, write_value


def as_markdown(sections: Iterable[Section], most: int, unit: str | None = None) -> str:
    """Write the tables of ``sections``, ``most`` rows of each."""
    sections = list(sections)
    blocks = [
        block
        for section in sections
        if section.available
        for block in _section(section, most, unit)
    ]
    absent = [section for section in sections if not section.available]
    if absent:
        blocks.append("### Not recorded")
        blocks.append(
            "\n".join(
                f"- {each.name}: {_plain(each.why)}; {_plain(each.how)}".rstrip("; ")
                for each in absent
            )
        )
    return "\n\n".join(blocks) + "\n"


def _section(section: Section, most: int, unit: str | None) -> Iterator[str]:
    yield f"### {section.title}"
    for table in section.tables:
        if table.rows:
            if table.title:
                yield f"**{table.title}**"
            yield "\n".join(_table(for_people(table.first(most)), unit))
        if table.left_out > 0 or len(table.rows) > most:
            yield f"… and {max(table.left_out, len(table.rows) - most):,} more"
    yield from map(_plain, section.notes)


def _table(table: Table, unit: str | None) -> Iterator[str]:
    write = write_value(unit)
    yield f"| {' | '.join(_plain(titled(column, unit)) for column in table.columns)} |"
    yield f"|{'|'.join('---:' if column.is_number else '---' for column in table.columns)}|"
    for row in table.rows:
        cells = (
            _name(text) if isinstance(value, str) else text
            for value, text in zip(
                row, (write(*cell) for cell in zip(table.columns, row, strict=True)), strict=True
            )
        )
        yield f"| {' | '.join(cells)} |"


def _name(text: str) -> str:
    r"""Quote a name as code, in which nothing but ``|`` and backticks means anything."""
    ticks = max((len(run) for run in re.findall("`+", text)), default=0) + 1
    room = " " if text[:1] == "`" or text[-1:] == "`" else ""
    fence = "`" * ticks
    return f"{fence}{room}{text.replace('|', chr(92) + '|')}{room}{fence}" if text else ""


def _plain(text: str) -> str:
    """Escape what Markdown would read as more than text."""
    return re.sub(r"([\\`*_{}\[\]()<>#+|~@!-])", r"\\\1", printable(text))
