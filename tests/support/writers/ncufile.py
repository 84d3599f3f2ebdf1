"""A tiny builder of Nsight Compute's source page, as ``ncu --page source --csv`` prints it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

BASE = 0x7FD524FB8900
STEP = 16
TOTAL, NOT_ISSUED = "Warp Stall Sampling (All Samples)", "Warp Stall Sampling (Not-issued Samples)"


class Row(NamedTuple):
    """One instruction: samples by column; ``total`` None is their sum."""

    sass: str
    samples: Mapping[str, int | str] = {}
    total: int | str | None = None


class Line(NamedTuple):
    """A source line and its instructions, each with the address that it has."""

    number: int
    text: str
    rows: Sequence[tuple[int, Row]]


def quoted(cells: Sequence[object]) -> str:
    """A line of the page: all cells quoted."""
    return ",".join('"{}"'.format(str(cell).replace('"', '""')) for cell in cells) + "\n"


def columns(rows: Sequence[Row]) -> list[str]:
    """The columns that ``rows`` have."""
    return sorted({name for row in rows for name in row.samples})


def _values(row: Row, names: Sequence[str]) -> list[object]:
    own = [row.samples.get(name, 0) for name in names]
    total = row.total
    if total is None:
        total = sum(int(one) for one in own)
    return [total, 7, "-", *own, *(1 for _ in names)]


def _measured(names: Sequence[str]) -> list[str]:
    return [TOTAL, NOT_ISSUED, "Address Space", *names, *(f"{name} (Not Issued)" for name in names)]


def sass_page(
    kernel: str, rows: Sequence[Row], base: int = BASE, names: Sequence[str] | None = None
) -> str:
    """What is printed of one result with ``--print-source sass``."""
    names = columns(rows) if names is None else names
    lines = [
        f'"Kernel Name","{kernel}",\n',
        quoted(["Address", "Source", *_measured(names)]),
        *(
            quoted([hex(base + STEP * at), f"      {row.sass}", *_values(row, names)])
            for at, row in enumerate(rows)
        ),
    ]
    return "".join(lines)


def cuda_page(
    kernel: str, file: str, lines: Sequence[Line], names: Sequence[str], base: int = BASE
) -> str:
    """What is printed of one result and file with ``--print-source cuda,sass``."""
    found = [
        quoted(["File Path", file]),
        quoted(["Function Name", kernel]),
        quoted(["Line No", "Source", "Address", "Source", *_measured(names)]),
    ]
    for line in lines:
        whole = [sum(int(row.samples.get(name, 0)) for _, row in line.rows) for name in names]
        values = [sum(whole), 0, "-", *whole, *(0 for _ in names)]
        found.append(quoted([line.number, line.text, "-", "-", *values]))
        for at, row in line.rows:
            found.append(quoted(["", "", hex(base + STEP * at), row.sass, *_values(row, names)]))
    return "".join(found)
