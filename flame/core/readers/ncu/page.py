"""Split the text of a source page into the blocks of its kernels, files and functions."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator
from dataclasses import field

from flame.core.lazy_dataclass import dataclass

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_PREAMBLE = {"Kernel Name": "kernel", "File Path": "file", "Function Name": "function"}

_BEFORE = tuple(sign + name for name in _PREAMBLE for sign in ('"', ""))

PageRow = tuple[int, str]
"""The number of a line, from 1, and the line, which `split_cells` splits."""


@dataclass
class PageBlock:
    """Rows below one header, which is empty where a kernel's name is all there is.

    ``kernel``, ``file`` and ``function`` are what was said before it, empty where nothing was.
    """

    kernel: str
    file: str
    function: str
    header: list[str]
    rows: list[PageRow] = field(default_factory=list)


def decode_text(data: bytes) -> str:
    """Decode the text of a file, which PowerShell writes as UTF-16."""
    if data.startswith(_UTF16):
        return data.decode("utf-16", "replace")
    return data.removeprefix(codecs.BOM_UTF8).decode("utf-8", "backslashreplace")


def split_cells(line: str) -> list[str]:
    """Split a line, with its carriage return or not, into its cells; what is no CSV has none.

    Nothing in a page goes over several lines, so that a quote in the output of the program that was
    profiled spoils no more than its own line. Almost all lines have all cells quoted: splitting
    those is three times faster than the csv module.
    """
    line = line.rstrip("\r")
    if len(line) > 1 and line[0] == line[-1] == '"':
        row = line[1:-1].split('","')
        if line.count('"') == 2 * len(row):
            return row
    try:
        return next(csv.reader([line]), [])
    except csv.Error:
        return []


def is_header(row: list[str]) -> bool:
    """Return whether ``row`` names the columns of instructions or source lines."""
    return "Source" in row[:4] and any(name in row[:4] for name in ("Address", "Line No", "#"))


def split_blocks(text: str) -> Iterator[PageBlock]:
    """Yield the blocks of a page, each whole; lines before the first block belong to none."""
    block = PageBlock("", "", "", [])
    for number, line in enumerate(text.split("\n"), 1):
        # Almost all lines are rows: their cells are split where they are used, and forgotten.
        row = split_cells(line) if "Source" in line or line.startswith(_BEFORE) else []
        if len(row) > 1 and row[0] in _PREAMBLE:
            if block.header or (row[0] == "Kernel Name" and block.kernel):
                yield block
                block = PageBlock("", "", "", [])
            setattr(block, _PREAMBLE[row[0]], row[1])
        elif is_header(row):
            if block.header:
                yield block
                block = PageBlock("", "", "", [])
            block.header = row
        elif block.header and "," in line:
            block.rows.append((number, line))
    if block.header or block.kernel:
        yield block


def is_cut_off(text: str) -> bool:
    """Return whether the last line ends within a row, as where the program was stopped."""
    before, _, last = text.rpartition("\n")
    if not last.startswith(('"', "0x")):
        return False
    last_but_one = before.rpartition("\n")[2].rstrip("\r")
    return last.count('"') % 2 == 1 or len(split_cells(last)) < len(split_cells(last_but_one))
