"""What a benchmark has found, as rows: a line each for a reader, JSON for `run_all.py`.

A script gives its parser the option by `add_option` and ends with `tell`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from benchmarks.support.goals import GOALS


class Row(NamedTuple):
    """A figure, most often a ratio to what was measured in the same rounds."""

    name: str
    figure: float
    unit: str
    of: str = ""
    """What the figure was made of."""


def add_option(parser: argparse.ArgumentParser) -> None:
    """Adds ``--json``."""
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")


def tell(rows: Iterable[Row], file: Path | None) -> None:
    """Prints the rows with their goals and writes them to ``file``, if there is one."""
    rows = list(rows)
    print(as_text(rows), flush=True)
    if file:
        file.write_text(json.dumps([row._asdict() for row in rows], indent=1), "utf-8")


def read(file: Path) -> list[Row]:
    """The rows that `tell` has written."""
    return [Row(**row) for row in json.loads(file.read_text("utf-8"))]


def as_text(rows: Iterable[Row]) -> str:
    """A line for each row."""
    return "\n".join(map(_line, rows))


def _line(row: Row) -> str:
    goals = [goal for goal in GOALS if goal.row == row.name]
    verdicts = [f"goal {goal.text}: {goal.verdict(row.figure)}" for goal in goals]
    line = f"{row.name:52} {shown(row.figure):>8} {row.unit:14} {row.of}"
    return "  ".join([line.rstrip(), *verdicts])


def shown(figure: float) -> str:
    """Three digits are more than these figures are good for."""
    return f"{figure:,.0f}" if abs(figure) >= 100 else f"{figure:.3g}"
