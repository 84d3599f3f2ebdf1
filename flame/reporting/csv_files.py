"""Write the tables of a report as CSV files in a folder, for spreadsheets and scripts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from flame.core.errors import InputError, UsageError
from flame.core.files.atomic import OccupiedError, atomic_output
from flame.core.report.table import Section, Table
from flame.exporters.tables.files import as_csv


def write_csv(sections: Iterable[Section], folder: Path, *, replace: bool) -> list[Path]:
    """Write a file per table into ``folder``, which is made; returns what was written.

    Files are there whole or not at all, and so are all of them where ``replace`` is not set. Raises
    UsageError where the folder has anything in it then, InputError where it cannot be written.
    """
    _prepare(folder, replace)
    written = list[Path]()
    try:
        for name, table in _named(sections):
            path = folder / f"{name}.csv"
            _write(path, table, replace)
            written.append(path)
    except BaseException:
        for path in () if replace else written:
            path.unlink(missing_ok=True)
        raise
    return written


def _write(path: Path, table: Table, replace: bool) -> None:
    try:
        with atomic_output(str(path), replace=replace) as file:
            file.write(as_csv(table).encode())
    except OccupiedError as error:
        raise UsageError(f"{error}; --force replaces it") from None


def _prepare(folder: Path, replace: bool) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        occupied = any(folder.iterdir())
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror or error}") from None
    if occupied and not replace:
        raise UsageError(f"{folder}: is not empty; --force writes into it all the same")


def _named(sections: Iterable[Section]) -> Iterator[tuple[str, Table]]:
    """The tables of what is available, and the names of their files."""
    for section in sections:
        for table in section.tables:
            yield section.name if table.key == "rows" else f"{section.name}_{table.key}", table
