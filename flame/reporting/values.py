"""Write the cells of a report's tables for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from flame.core.report.table import Section, Table, TableColumn, Value
from flame.core.shown_text import printable
from flame.core.units import (
    format_bytes,
    format_count,
    format_flops,
    format_ns,
    format_percent,
    sign_of,
)

TIME_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
"""Units that ``--unit`` knows, in ns."""

_MANY_TIMES = 1_000
"""Percent from which on an increase is written as a factor."""

_NAMES = {"us": "µs"}
_DIGITS = {"ns": 0, "us": 3, "ms": 3, "s": 6}

Write = Callable[[TableColumn, Value], str]


def write_value(unit: str | None) -> Write:
    """Make what writes the cells of a column; ``unit`` is the one of all times, None: the best."""

    def write(column: TableColumn, value: Value) -> str:
        if value is None:
            return ""
        if isinstance(value, str):
            return printable(value)
        if column.unit in _TIMES and unit is not None:
            sign = "+" if column.unit == "ns_change" and value > 0 else ""
            return sign + _in_unit(value, unit)
        return _WRITERS[column.unit](value)

    return write


def _in_unit(ns: float, unit: str) -> str:
    return f"{ns / TIME_UNITS[unit]:,.{_DIGITS[unit]}f}"


def _decimal(value: float) -> str:
    """Write two digits behind the point; of less than a hundredth two that are not 0."""
    return f"{value:.2f}" if abs(value) >= 0.01 or not value else f"{value:.2g}"


def _signed(write: Callable[[float], str]) -> Callable[[float], str]:
    """Write the sign, and what ``write`` makes of the rest; nothing before a zero."""

    def signed(value: float) -> str:
        return sign_of(value) + write(abs(value))

    return signed


def _percent(value: float) -> str:
    return format_percent(value, 100)


def _percent_change(value: float) -> str:
    """Write a change with its sign; what is many times as much, as how many times."""
    if value >= _MANY_TIMES:
        return f"×{1 + value / 100:,.0f}"
    return _signed(_percent)(value)


_TIMES = ("ns", "moment", "ns_change")
_WRITERS: dict[str, Callable[[float], str]] = {
    "ns": format_ns,
    "moment": lambda value: f"{value / 1e9:.6f} s",
    "bytes": format_bytes,
    "FLOP": format_flops,
    "count": format_count,
    "percent": _percent,
    "GB/s": _decimal,
    "ratio": _decimal,
    "number": str,
    "ns_change": _signed(format_ns),
    "bytes_change": _signed(format_bytes),
    "FLOP_change": _signed(format_flops),
    "count_change": _signed(format_count),
    "ratio_change": _signed(_decimal),
    "percent_change": _percent_change,
}


def titled(column: TableColumn, unit: str | None) -> str:
    """Write the title of a column, with the unit where its cells have none."""
    if column.unit in _TIMES and unit is not None:
        return f"{column.title} [{_NAMES.get(unit, unit)}]"
    return f"{column.title} [GB/s]" if column.unit == "GB/s" else column.title


def cells_by_key(table: Table) -> Iterator[dict[str, Value]]:
    """List the rows of ``table`` as dictionaries by the keys of its columns."""
    keys = [column.key for column in table.columns]
    return (dict(zip(keys, row, strict=True)) for row in table.rows)


def reasons(sections: Iterable[Section]) -> dict[str, list[str]]:
    """List the names of ``sections`` that are not available by why, and how to record them."""
    found: dict[str, list[str]] = {}
    for section in sections:
        found.setdefault(f"{section.why}; {section.how}".rstrip("; "), []).append(section.name)
    return found


_PLACES = ("gpu", "process", "thread", "domain")


def for_people(table: Table, most: int) -> Table:
    """Keep ``most`` rows, if not all are wanted, and the columns that people are to see.

    These have a title, and are not of places of which there is one alone.
    """
    wanted = [
        at
        for at, column in enumerate(table.columns)
        if column.title and (column.key not in _PLACES or len({row[at] for row in table.rows}) > 1)
    ]
    kept = table.for_people(most)
    return replace(
        kept,
        columns=tuple(table.columns[at] for at in wanted),
        rows=tuple(tuple(row[at] for at in wanted) for row in kept.rows),
    )
