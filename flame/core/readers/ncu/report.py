"""Read reports of Nsight Compute (``.ncu-rep``): the user's own ncu prints their source page."""

from __future__ import annotations

import shlex
from contextlib import suppress
from functools import partial
from pathlib import Path

from flame.core.errors import InputError
from flame.core.options import Progress
from flame.core.readers.ncu.lines import add_source_lines
from flame.core.readers.ncu.result import NcuFile, NcuResult
from flame.core.readers.ncu.source_csv import read_source_csv
from flame.core.readers.shared.converter import Converter
from flame.core.readers.signs.ncu import SUFFIXES


def read_report(path: Path, progress: Progress, *, cache: bool = True) -> NcuFile:
    """Read the results in the report at ``path``, with source lines where it has them.

    The ``cache`` keeps what ncu prints.

    Raises InputError as `read_source_csv` does, and as `Converter` where ncu cannot be run.
    """

    def read(page: Path, _stays: bool) -> list[NcuResult]:
        return read_source_csv(page, progress)

    converted = _PAGE.read(path, progress, read, cache=cache)
    results, notes = converted.value, converted.notes
    # Of code that was compiled without -lineinfo there is no such view.
    with suppress(InputError):
        lines = _LINES.read(path, progress, read, cache=cache)
        results = add_source_lines(results, lines.value)
        notes = tuple(dict.fromkeys((*notes, *lines.notes)))
    return NcuFile(path, results, notes)


def _print_command(view: str, path: Path, _made: Path) -> list[str]:
    page = ["--import", str(path), "--page", "source", "--print-source", view, "--csv"]
    return [*page, "--print-kernel-base", "mangled"]


def _user_command(path: Path) -> str:
    """Return the command that does the same, for the user to run."""
    written = path.with_suffix(".csv") if path.suffix.lower() in SUFFIXES else f"{path}.csv"
    return (
        f"{shlex.join(['ncu', *_print_command('sass', path, path)])} > {shlex.quote(str(written))}"
    )


def _converter(view: str, suffix: str) -> Converter:
    report = "a report of Nsight Compute"
    return Converter(
        "ncu", report, partial(_print_command, view), _user_command, suffix, prints=True
    )


_PAGE = _converter("sass", ".sass.csv")
_LINES = _converter("cuda,sass", ".lines.csv")
STAGE = _PAGE.stage
