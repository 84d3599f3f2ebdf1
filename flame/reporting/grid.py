"""Lay out a report's tables in columns of cells, as many as there is room for."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from flame.core.report.table import Table
from flame.core.units import BLOCKS
from flame.reporting.values import titled, write_value

GAP = 2
"""Cells before each column."""

NARROWEST_NAME, _NARROWEST = 24, 12
"""Cells that the first column, and others of text, keep however many there are."""


class TextGrid(NamedTuple):
    """Hold a table as text: titles, rows of cells, which columns are numbers, and charts."""

    head: list[str]
    rows: list[list[str]]
    is_number: list[bool]
    is_chart: list[bool]


def grid_of(table: Table, unit: str | None = None) -> TextGrid:
    """Write the cells of ``table``; ``unit`` is the one of all times, None: the best for each."""
    write = write_value(unit)
    return TextGrid(
        [titled(column, unit) for column in table.columns],
        [[write(*cell) for cell in zip(table.columns, row, strict=True)] for row in table.rows],
        [column.is_number for column in table.columns],
        [column.unit == "chart" for column in table.columns],
    )


def narrowed(chart: str, width: int) -> str:
    """Draw a chart with fewer characters: each has the mean of the parts that it stands for."""
    if len(chart) <= width or width < 1:
        return chart
    edges = [len(chart) * at // width for at in range(width + 1)]
    return "".join(_mean(chart[low:high]) for low, high in pairwise(edges))


def _mean(parts: str) -> str:
    """The mean of characters, rounded up; what there is nothing of is left out."""
    levels = [BLOCKS.index(part) for part in parts if part in BLOCKS]
    return BLOCKS[-(-sum(levels) // len(levels))] if levels else parts[:1]


def fitting_widths(
    natural: Sequence[int],
    is_number: Sequence[bool],
    width: int,
    narrowest_name: int = NARROWEST_NAME,
) -> list[int]:
    """Choose the width of each column that has room; texts share what numbers leave.

    The first column has ``narrowest_name`` cells at least, if it is of texts that long.
    """
    least = [
        cells if number else min(cells, _NARROWEST if at else narrowest_name)
        for at, (cells, number) in enumerate(zip(natural, is_number, strict=True))
    ]
    while len(least) > 1 and sum(least) + GAP * len(least) > width:
        least.pop()
    widths = list(natural[: len(least)])
    while sum(widths) + GAP * len(widths) > width:
        able = [at for at, cells in enumerate(least) if widths[at] > cells]
        if not able:
            break
        widths[max(able, key=widths.__getitem__)] -= 1
    return widths
