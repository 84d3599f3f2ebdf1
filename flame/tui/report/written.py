"""Write sections of a report as cells: in the thread that works them out, once each."""

from __future__ import annotations

from collections.abc import Iterator

from flame.core.lazy_dataclass import dataclass
from flame.core.report.table import Place, Section, Table, Value
from flame.reporting.grid import NARROWEST_NAME, fitting_widths, grid_of, narrowed
from flame.reporting.values import for_people
from flame.tui.toolkit.text import cut, printable, width_of
from flame.tui.views.top_table import bar

MOST_ROWS = 5_000
"""Rows of a table that the view has; the command line writes all."""

BAR = 7
"""Cells that a share takes more where it is also drawn."""

_NAME_SHARE = 40
"""Part of the width, in per cent, that the first text keeps: names say most."""

_WHOLE = 100_000
"""Thousandths of a per cent."""


@dataclass(frozen=True, eq=False)
class WrittenTable:
    """Hold a table and its cells as text; ``natural`` are the cells that each column takes.

    ``table`` has all columns and rows; ``left_out`` rows of it are not ``shown``.
    """

    table: Table
    shown: Table
    head: list[str]
    cells: list[list[str]]
    is_number: list[bool]
    natural: list[int]
    left_out: int

    @classmethod
    def of(cls, table: Table) -> WrittenTable:
        """Write ``table``."""
        shown = for_people(table, MOST_ROWS)
        head, rows, is_number, _ = grid_of(shown)
        head = [printable(title) for title in head]
        cells = [[printable(cell) for cell in row] for row in rows]
        natural = [max(map(width_of, column)) for column in zip(head, *cells, strict=True)]
        return cls(table, shown, head, cells, is_number, natural, table.total - len(cells))

    def __len__(self) -> int:
        return len(self.cells)

    def place(self, row: int) -> Place | None:
        """Return where a row leads."""
        return self.table.places[row] if row < len(self.table.places) else None

    def widths(self, width: int) -> tuple[list[int], int]:
        """Choose the widths of the columns that have room, and of them the one drawn as bars, -1.

        A share is drawn where nothing else is left out or cut for it.
        """
        name, share = max(NARROWEST_NAME, width * _NAME_SHARE // 100), self._share
        if share >= 0:
            wider = [cells + BAR * (at == share) for at, cells in enumerate(self.natural)]
            if (found := fitting_widths(wider, self.is_number, width, name)) == wider:
                return found, share
        return fitting_widths(self.natural, self.is_number, width, name), -1

    @property
    def _share(self) -> int:
        """The first column of shares of something, whose cells add up to it at most; -1."""
        units = [column.unit for column in self.shown.columns]
        return units.index("percent") if "percent" in units else -1

    def drawn(self, row: int, column: int) -> str:
        """Write a cell of shares with a bar beside it."""
        value = self.shown.rows[row][column]
        number = value if isinstance(value, int | float) else 0
        thousandths = min(max(round(1_000 * number), 0), _WHOLE)
        return f"{self.cells[row][column]} {bar(thousandths, _WHOLE)}"

    def cut(self, row: int, column: int, width: int) -> str:
        """Write a cell in ``width``; a chart draws fewer parts then."""
        text = self.cells[row][column]
        if width_of(text) <= width:
            return text
        return (
            narrowed(text, width)
            if self.shown.columns[column].unit == "chart"
            else cut(text, width)
        )

    def order(self, column: int, backwards: bool) -> list[int]:
        """Sort the rows by a column: numbers from the largest down, texts from A to Z.

        What is not known comes last in either direction.
        """
        cells = [row[column] for row in self.shown.rows]
        known = [at for at, value in enumerate(cells) if value is not None]
        falls = self.is_number[column] != backwards
        known.sort(key=lambda at: _key(cells[at]), reverse=falls)
        return [*known, *(at for at, value in enumerate(cells) if value is None)]


def _key(value: Value) -> tuple[bool, float, str]:
    """Texts, if there are any between numbers, stand before these."""
    if isinstance(value, str):
        return (False, 0.0, value)
    return (True, float(value or 0), "")


@dataclass(frozen=True, eq=False)
class WrittenSection:
    """Hold a section, and its tables as text."""

    section: Section
    tables: tuple[WrittenTable, ...]

    @classmethod
    def of(cls, section: Section) -> WrittenSection:
        """Write the tables of ``section`` that have rows."""
        return cls(section, tuple(_tables(section)))


def _tables(section: Section) -> Iterator[WrittenTable]:
    return (WrittenTable.of(table) for table in section.tables if table.rows)
