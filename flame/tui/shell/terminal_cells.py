"""Send a terminal only the cells that change, and each colour once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import compress, count
from operator import ne
from typing import NamedTuple

from rich.console import Console
from textual._compositor import CompositorUpdate
from textual.geometry import Size

from flame.core.lazy_regex import lazy_regex
from flame.tui.toolkit.text import width_of

_TOKEN = lazy_regex(r"\x1b\[(\d+);(\d+)H|\x1b\[([\d;]*)m|(\n)|([^\x1b\n]+)")
_CODE = lazy_regex(r"([34]8);(?:5;\d+|2;\d+;\d+;\d+)|\d+")
_RESET = ("", "0")
_UNDRAWN = ("4", "7", "9")
"""Attributes that are seen where there is no character: underlined, reversed, struck out."""

Cell = tuple[str, str]
"""A character and its parameters of SGR."""

_UNKNOWN: Cell = ("", "")
"""In place of a cell of which nobody knows what it shows."""


class Run(NamedTuple):
    """Hold a text from the cell (``row``, ``column``) on, and its parameters of SGR."""

    row: int
    column: int
    style: str
    text: str


class TerminalCells:
    """Know what each cell of a terminal shows, for output that sets all cells it names.

    Textual writes a changed line from the left end of its widget on, and resets all colours
    behind each piece of it: over a slow line most of a key's answer are cells that stay as they
    are, and colours that are set already.
    """

    def __init__(self) -> None:
        self._size = Size(0, 0)
        self._rows: list[list[Cell]] = []

    def forget(self) -> None:
        """Take nothing for granted: the terminal has been cleared, or used by another program."""
        self._size = Size(0, 0)

    def changes(self, output: str, size: Size) -> str:
        """Return what makes of the cells on screen those of ``output``, of a terminal of ``size``.

        ``output`` is returned as it is where it has other sequences than moves and colours.
        """
        runs = parse_runs(output)
        if runs is None:
            self.forget()
            return output
        if size != self._size:
            self._size = size
            self._rows = [[_UNKNOWN] * size.width for _ in range(size.height)]
        pen = _Pen()
        for run in runs:
            for part in self._changed(run):
                pen.write(part)
        return pen.finish()

    def _changed(self, run: Run) -> Iterator[Run]:
        """Yield the part of ``run`` that is not on screen, and note that it is."""
        row, column, style, text = run
        width = width_of(text)
        if row >= self._size.height or column + width > self._size.width:
            yield run
        elif not _is_plain(text):
            self._rows[row][column:] = [_UNKNOWN] * (self._size.width - column)
            yield run
        else:
            place, cells = slice(column, column + width), _cells_of(text, style)
            before = self._rows[row][place]
            if before != cells:
                self._rows[row][place] = cells
                changed = [*compress(count(), map(ne, before, cells))]
                first, last = changed[0], changed[-1] + 1
                yield Run(row, column + first, style, text[first:last])


@lru_cache(8192)
def _cells_of(text: str, style: str) -> list[Cell]:
    """The cells of a plain ``text``; the colour of what is not drawn is no difference."""
    blank = (" ", _style_of_blanks(style))
    return [blank if character == " " else (character, style) for character in text]


@lru_cache(4096)
def _style_of_blanks(style: str) -> str:
    codes = _codes(style)
    seen = any(code in codes for code in _UNDRAWN)
    return style if seen else codes.get("background", "")


@lru_cache(4096)
def _is_plain(text: str) -> bool:
    """Whether each character takes a cell: what others shift is the terminal's to say."""
    return text.isascii() or all(width_of(character) == 1 for character in {*text})


def parse_runs(output: str) -> list[Run] | None:
    """Parse ``output`` into runs of one style; None where it does more than move and draw."""
    runs: list[Run] = []
    row = column = end = 0
    style = ""
    for token in _TOKEN.finditer(output):
        if token.start() != end:
            return None
        end = token.end()
        line, cell, colours, newline, text = token.groups()
        if text:
            runs.append(Run(row, column, style, text))
            column += width_of(text)
        elif line:
            row, column = int(line) - 1, int(cell) - 1
        elif newline:
            row, column = row + 1, 0
        else:
            style = "" if colours in _RESET else colours
    return runs if end == len(output) else None


class _Pen:
    """Writes runs: the cursor moves where it has to, and what colours are set stays set."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._style = ""
        self._at = (-1, -1)

    def write(self, run: Run) -> None:
        if self._at != (run.row, run.column):
            self._parts.append(f"\x1b[{run.row + 1};{run.column + 1}H")
        if self._style != run.style:
            self._parts.append(f"\x1b[{style_change(self._style, run.style)}m")
        self._parts.append(run.text)
        self._style = run.style
        self._at = (run.row, run.column + width_of(run.text))

    def finish(self) -> str:
        if self._style:
            self._parts.append("\x1b[0m")
        return "".join(self._parts)


class ChangedCells(CompositorUpdate):
    """Write of an ``update`` what is not among ``cells`` yet."""

    def __init__(self, update: CompositorUpdate, cells: TerminalCells, size: Size) -> None:
        self._update, self._cells, self._size = update, cells, size

    def render_segments(self, console: Console) -> str:
        return self._cells.changes(self._update.render_segments(console), self._size)


@lru_cache(4096)
def style_change(before: str, after: str) -> str:
    """Return the parameters of SGR that make ``after`` of ``before``, both complete from 0 on."""
    old, new = _codes(before), _codes(after)
    if not old.keys() <= new.keys():  # only a reset takes away
        return f"0;{after}" if after else "0"
    return ";".join(code for what, code in new.items() if old.get(what) != code)


def _codes(style: str) -> dict[str, str]:
    """The codes of ``style`` by what they set: foreground, background, or an attribute each."""
    return {_subject(code[0]): code[0] for code in _CODE.finditer(style)}


def _subject(code: str) -> str:
    """What a code of SGR sets (ECMA-48, 8.3.117, and the bright colours of aixterm)."""
    number = int(code.split(";", 1)[0])
    if 30 <= number <= 39 or 90 <= number <= 97:
        return "foreground"
    return "background" if 40 <= number <= 49 or 100 <= number <= 107 else code
