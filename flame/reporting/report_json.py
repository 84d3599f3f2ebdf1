"""Write a report as one JSON document: the contract of ``flame report --json``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from flame._version import __version__
from flame.core.report.table import CONTRACT, Section, Table, Value
from flame.reporting.indented_json import FlatRows, indented
from flame.reporting.links import Link
from flame.reporting.values import cells_by_key


def as_json(
    sections: Iterable[Section],
    most: int,
    link: Link,
    about: Mapping[str, object],
    contract: str = "flame_report",
) -> str:
    """Write ``sections`` by name after what the report is ``about``; ``most`` rows of a table.

    ``contract`` is the key that says what it is, and by which version.
    Where a row leads is its ``view``, the command line that ``link`` writes. Times are in ns, in
    plain ASCII, which no pipe, terminal or locale can damage.
    """
    document = {contract: CONTRACT, "version": __version__, **about}
    document |= {section.name: facts(section, most, link) for section in sections}
    return indented(document) + "\n"


def facts(section: Section, most: int, link: Link) -> dict[str, object]:
    """Put a section into JSON's terms."""
    if not section.available:
        return {"available": False, "why": section.why, "how": section.how}
    tables = {table.key: _rows(table.first(most), link) for table in section.tables}
    more = {table.key: table.total - most for table in section.tables if table.total > most}
    return {"available": True, **section.facts, **tables, **({"more": more} if more else {})}


def _rows(table: Table, link: Link) -> list[dict[str, Value]]:
    rows = list(cells_by_key(table))
    for row, place in zip(rows, table.places, strict=False):
        row["view"] = link(place)
    return FlatRows(rows) if table.columns else rows
