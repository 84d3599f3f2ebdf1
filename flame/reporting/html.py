"""Write a report as one HTML page that loads nothing: tables, bars of the budget, the icicle."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from html import escape

from flame._version import __version__
from flame.core.report.findings import section as findings
from flame.core.report.sections import budget
from flame.core.report.table import Place, Section, Table, TableColumn, Value
from flame.core.shown_text import cut, printable
from flame.core.units import format_ns
from flame.exporters.pictures.html_head import SCRIPT, head
from flame.reporting.findings_text import caution, evidence_words, headlines, nothing_found
from flame.reporting.links import Link
from flame.reporting.values import cells_by_key, for_people, reasons, titled, write_value

_LONGEST_NAME, _LONGEST_TIP = 160, 1_000
"""Cells of a name in a table, and of what is told when the pointer rests on it."""

_LONGEST_COMMAND = 4_000
"""Characters of a command line that anybody copies."""

_BUSY = ("compute", "communication, exposed", "copies, alone")
"""The parts of a budget that have colours of their own."""

_COLOURS = 11


def as_html(
    sections: Iterable[Section],
    most: int,
    link: Link,
    *,
    title: str,
    icicle: str,
    unit: str | None = None,
) -> str:
    """Write the tables of ``sections``, ``most`` rows of each, on a page called ``title``.

    Where a row leads is the command line that ``link`` writes. ``icicle`` is SVG.
    """
    sections = list(sections)
    shown = [section for section in sections if section.available]
    absent = [section for section in sections if not section.available]
    name, names = _text(title), [section.name for section in shown]
    parts = [
        head(f"{name} – flame report"),
        f"<body>\n<h1>{name}</h1>\n",
        _about(link),
        _contents(shown),
        *(_section(section, most, unit, link, names) for section in shown),
        f'<section id="icicle">\n<h2>Where the time is, as a picture</h2>\n{icicle}</section>\n',
        _absent(absent),
        f"<script>{SCRIPT}</script>\n</body>\n</html>\n",
    ]
    return "".join(parts)


def _about(link: Link) -> str:
    command = link(Place())
    line = f'<p class="about">flame {__version__}. A click on the head of a column sorts '
    line += "by it; one on a name with a triangle shows the command that leads there.</p>\n"
    return line + (_command(command, "p") if command else "")


def _contents(sections: Sequence[Section]) -> str:
    names = [*(section.name for section in sections), "icicle"]
    links = (f'<a href="#{name}">{name}</a>' for name in names)
    return f"<nav>{' '.join(links)}</nav>\n"


def _section(
    section: Section, most: int, unit: str | None, link: Link, shown: Collection[str]
) -> str:
    if section.name == findings.NAME:
        inner = _findings(section, link, shown)
    else:
        inner = "".join(_tables(section, most, unit, link))
    notes = "".join(f'<p class="note">{_text(note)}</p>\n' for note in section.notes)
    title = _text(section.title)
    return f'<section id="{section.name}">\n<h2>{title}</h2>\n{inner}{notes}</section>\n'


def _absent(sections: Sequence[Section]) -> str:
    if not sections:
        return ""
    rows = (
        f"<li>{', '.join(names)}: {_text(reason)}</li>\n"
        for reason, names in reasons(sections).items()
    )
    return f"<section>\n<h2>Not recorded</h2>\n<ul>\n{''.join(rows)}</ul>\n</section>\n"


# Findings


def _findings(section: Section, link: Link, shown: Collection[str]) -> str:
    """What each GPU was at, and the findings; their numbers are in sections that are ``shown``."""
    heads = "".join(
        f"<p>{_text(head)}{_text(' · '.join(parts))}</p>\n" for head, parts in headlines(section)
    )
    table = section.tables[0]
    if not table.rows:
        return f"{heads}<p>{_text(nothing_found(section))}</p>\n"
    places = table.places or (None,) * len(table.rows)
    rows = zip(cells_by_key(table), places, strict=True)
    return heads + "".join(
        _finding(found, _numbers(section, found, shown), link(place)) for found, place in rows
    )


def _numbers(section: Section, found: dict[str, Value], shown: Collection[str]) -> str:
    """The numbers that a finding rests on, and where there are more of them."""
    evidence, about = _text(evidence_words(section, found)), _text(str(found["section"]))
    more = f'<a href="#{about}">{about}</a>' if about in shown else ""
    inner = ", ".join(filter(None, (evidence, more and f"more in {more}")))
    return f"<p><small>{inner}</small></p>\n" if inner else ""


def _finding(found: dict[str, Value], numbers: str, command: str | None) -> str:
    bound, severity = found.get("bound_ns"), _text(str(found["severity"]))
    saves = f" <small>(at most {format_ns(float(bound))})</small>" if bound is not None else ""
    told = (found["claim"], caution(found), found["advice"])
    texts = "".join(f"<p>{_text(str(text))}</p>\n" for text in told if text)
    where = _text(str(found["gpu"]))
    return (
        f'<div class="find {severity}"><p><b>{severity}</b> {where}: '
        f"<strong>{_text(str(found['title']))}</strong>{saves}</p>\n"
        f"{texts}{numbers}{_command(command, 'p')}</div>\n"
    )


# Tables


def _tables(section: Section, most: int, unit: str | None, link: Link) -> Iterator[str]:
    for table in section.tables:
        colours = _colours(table) if section.name == budget.NAME else {}
        if table.rows:
            if colours:
                yield _bars(table, colours)
            shown = for_people(table, most)
            yield _table(shown, unit, link, colours)
            if shown.left_out:
                yield f'<p class="note">… and {shown.left_out:,} more</p>\n'


def _colours(table: Table) -> dict[Value, str]:
    """The class of the colour of each part of a budget."""
    parts = dict.fromkeys(row["part"] for row in cells_by_key(table))
    others = [part for part in parts if part not in _BUSY]
    return {part: f"p{place}" for place, part in enumerate(_BUSY)} | {
        part: f"p{len(_BUSY) + place % (_COLOURS - len(_BUSY))}"
        for place, part in enumerate(others)
    }


def _bars(table: Table, colours: Mapping[Value, str]) -> str:
    """A bar for each GPU, of all parts of its window."""
    bars: dict[str, list[str]] = {}
    for row in cells_by_key(table):
        part, percent = row["part"], float(row["percent"] or 0)
        tip = _text(f"{part} {percent:.1f} %")
        bars.setdefault(str(row["gpu"]), []).append(
            f'<i class="{colours[part]}" style="width:{percent:.3f}%" title="{tip}"></i>'
        )
    return "".join(
        f'<h3>{_text(gpu)}</h3>\n<div class="bar">{"".join(pieces)}</div>\n'
        for gpu, pieces in bars.items()
    )


def _table(table: Table, unit: str | None, link: Link, colours: Mapping[Value, str]) -> str:
    caption = f"<caption>{_text(table.title)}</caption>\n" if table.title else ""
    heads = (f"<th{_side(one)}>{_text(titled(one, unit))}</th>" for one in table.columns)
    places = table.places or (None,) * len(table.rows)
    rows = (
        _row(table.columns, row, unit, link(place), colours)
        for row, place in zip(table.rows, places, strict=True)
    )
    body = f"<thead><tr>{''.join(heads)}</tr></thead>\n<tbody>\n{''.join(rows)}</tbody>\n"
    return f'<div class="scroll"><table>\n{caption}{body}</table></div>\n'


def _row(
    columns: Sequence[TableColumn],
    row: Sequence[Value],
    unit: str | None,
    command: str | None,
    colours: Mapping[Value, str],
) -> str:
    """A row, with the ``command`` that shows it in the first cell."""
    write, cells = write_value(unit), list[str]()
    for column, value in zip(columns, row, strict=True):
        key = f'<i class="key {colours[value]}"></i>' if value in colours else ""
        inner = key + _name(write(column, value))
        if shown := "" if cells else _command(command, ""):
            inner = f"<details><summary>{inner}</summary>{shown}</details>"
        cells.append(f"<td{_side(column, value)}>{inner}</td>")
    return f"<tr>{''.join(cells)}</tr>\n"


def _side(column: TableColumn, value: Value = None) -> str:
    """Attributes of a cell: numbers stand at the right, and are sorted by what they are."""
    if not column.is_number:
        return ""
    return ' class="n"' + ("" if value is None else f' data-v="{_text(str(value))}"')


# Texts


def _command(command: str | None, tag: str) -> str:
    """A command line to copy; nothing where there is none, or it is too long for that."""
    if command is None or len(command) > _LONGEST_COMMAND:
        return ""
    code = f"<code>{_text(command)}</code>"
    return f"<{tag}>{code}</{tag}>\n" if tag else code


def _name(text: str) -> str:
    """A text that may be long: its ends, and more of it where the pointer rests on it."""
    shown = cut(text, _LONGEST_NAME)
    if shown == text:
        return escape(text)
    return f'<span title="{escape(cut(text, _LONGEST_TIP))}">{escape(shown)}</span>'


def _text(text: str) -> str:
    """Escape what HTML would read as more than text, and what is no text at all."""
    return escape(printable(text))
