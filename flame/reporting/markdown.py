"""Write a report as GitHub-flavoured Markdown, for a comment on a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from flame.core.report.findings import section as findings
from flame.core.report.table import Section, Table
from flame.core.shown_text import printable
from flame.core.units import format_ns
from flame.reporting.findings_text import (
    SEPARATOR,
    FindingCells,
    caution,
    evidence_words,
    headlines,
    more_evidence,
    nothing_found,
)
from flame.reporting.values import cells_by_key, for_people, reasons, titled, write_value


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
        lines = (
            f"- {', '.join(names)}: {_plain(reason)}" for reason, names in reasons(absent).items()
        )
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


def _section(section: Section, most: int, unit: str | None) -> Iterator[str]:
    yield f"### {_plain(section.title)}"
    if section.name == findings.NAME:
        yield from _findings(section)
        return
    for table in section.tables:
        if table.rows:
            if table.title:
                yield f"**{_plain(table.title)}**"
            shown = for_people(table, most)
            yield "\n".join(_table(shown, unit))
            if shown.left_out:
                yield f"… and {shown.left_out:,} more"
    yield from map(_plain, section.notes)


def _findings(section: Section) -> Iterator[str]:
    """An item for each: what it is, why, and what to do."""
    table = section.tables[0]
    heads = (f"{head}{' · '.join(parts)}" for head, parts in headlines(section))
    if lines := "\n".join(f"- {_plain(head)}" for head in heads):
        yield lines
    if not table.rows:
        yield _plain(nothing_found(section))
    for found in cells_by_key(table):
        bound = found.get("bound_ns")
        saves = f" (at most {format_ns(float(bound))})" if bound is not None else ""
        title, where = _plain(str(found["title"])), _plain(str(found["gpu"]))
        items = [f"- **{found['severity']}** {where}: **{title}**{saves}"]
        texts = (found["claim"], _numbers(section, found), caution(found), found["advice"])
        items += [_plain(str(text)) for text in texts if text]
        yield "\\\n  ".join(items)


def _numbers(section: Section, found: FindingCells) -> str:
    """The evidence: what the claim has not, or all of it where all is asked for."""
    if section.facts.get("all"):
        return evidence_words(section, found)
    return SEPARATOR.join(more_evidence(section, found))


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
    """Quote a name as code, in which nothing but ``|`` and backticks means anything.

    A bar needs a backslash before it, also in code; where there are some they have to be odd, or
    the bar would end the cell: then one more is shown.
    """
    ticks = max((len(run) for run in re.findall("`+", text)), default=0) + 1
    room = " " if text[:1] == "`" or text[-1:] == "`" else ""
    fence, inner = "`" * ticks, re.sub(r"(\\*)\|", _escape_bar, text)
    return f"{fence}{room}{inner}{room}{fence}" if text else ""


def _escape_bar(found: re.Match[str]) -> str:
    backslashes = len(found[1])
    return "\\" * (backslashes + 1 + backslashes % 2) + "|"


def _plain(text: str) -> str:
    """Escape what Markdown would read as more than text: addresses too, and mentions of people."""
    escaped = re.sub(r"([\\`*_{}\[\]()<>#+|~!&-])", r"\\\1", printable(text))
    escaped = re.sub(r"(?i):(?=//)|(?<=www)\.", r"\\\g<0>", escaped)
    return re.sub(r"@(?=\w)", "@<!-- -->", escaped)  # GitHub looks for these in what it has made
