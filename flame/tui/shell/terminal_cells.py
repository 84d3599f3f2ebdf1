"""Send a terminal only the cells that change, each colour once, and blanks as erasures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import compress, count
from operator import ne
from typing import NamedTuple

from rich.console import Console
from textual._compositor import CompositorUpdate
from textual.geometry import Size

from flame.core.lazy_regex import lazy_regex
from flame.tui.shell.colour_codes import (
    shows_on_blanks,
    style_change,
    style_of_blanks,
    with_background_of,
)
from flame.tui.toolkit.text import width_of

_TOKEN = lazy_regex(r"\x1b\[(\d+);(\d+)H|\x1b\[([\d;]*)m|(\n)|([^\x1b\n]+)")
_BLANKS = lazy_regex(" {4,}")
_RESET = ("", "0")
_FEW = 4
"""Cells between two changes that are sent again: to move the cursor takes as many bytes."""

Cell = tuple[str, str]
"""A character and its parameters of SGR."""

_UNKNOWN: Cell = ("", "")
"""In place of a cell of which nobody knows what it shows."""


class StyledRun(NamedTuple):
    """Hold a text from the cell (``row``, ``column``) on, and its parameters of SGR."""

    row: int
    column: int
    style: str
    text: str


class TerminalCells:
    """Know what each cell of a terminal shows, for output that sets all cells it names.

    Textual writes a changed line from the left end of its widget on, and resets all colours
    behind each piece of it: over a slow line most of a key's answer are cells that stay as they
    are, and colours that are set already. ``erases`` says whether the terminal erases cells in
    the background that is set; otherwise blanks are written.
    """

    def __init__(self, erases: bool = False) -> None:
        self._erases = erases
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
        parts = [part for run in runs for part in self._changed(run)]
        return write_parts(parts, self._erases)

    def _changed(self, run: StyledRun) -> Iterator[_Part]:
        """Yield the parts of ``run`` that are not on screen, and note that they are."""
        row, column, style, text = run
        width = width_of(text)
        if row >= self._size.height or column + width > self._size.width:
            yield _Part(run, certain=False)
        elif not _is_plain(text):
            self._rows[row][column:] = [_UNKNOWN] * (self._size.width - column)
            yield _Part(run, certain=False)
        else:
            place, cells = slice(column, column + width), _cells_of(text, style)
            before = self._rows[row][place]
            if before != cells:
                self._rows[row][place] = cells
                for first, last in _stretches([*compress(count(), map(ne, before, cells))]):
                    yield from self._parts(StyledRun(row, column + first, style, text[first:last]))

    def _parts(self, run: StyledRun) -> Iterator[_Part]:
        """``run`` as letters and longer blanks in turn."""
        row, column, style, text = run
        at = 0
        for blanks in () if shows_on_blanks(style) else _BLANKS.finditer(text):
            first, last = blanks.span()
            if first > at:
                yield _Part(StyledRun(row, column + at, style, text[at:first]))
            part = StyledRun(row, column + first, style, text[first:last])
            yield _Part(part, blank=True, last=self._ends_with(part))
            at = last
        if at < len(text):
            yield _Part(StyledRun(row, column + at, style, text[at:]))

    def _ends_with(self, blanks: StyledRun) -> bool:
        """Whether the row has nothing but the same blanks behind ``blanks``."""
        rest = self._rows[blanks.row][blanks.column + len(blanks.text) :]
        return rest == [(" ", style_of_blanks(blanks.style))] * len(rest)


def _stretches(places: list[int]) -> Iterator[tuple[int, int]]:
    """The [first, last) of ``places`` with no more than a `_FEW` missing between any two."""
    first = place = places[0]
    for after in places:
        if after - place > _FEW + 1:
            yield first, place + 1
            first = after
        place = after
    yield first, place + 1


@lru_cache(8192)
def _cells_of(text: str, style: str) -> list[Cell]:
    """The cells of a plain ``text``; the colour of what is not drawn is no difference."""
    blank = (" ", style_of_blanks(style))
    return [blank if character == " " else (character, style) for character in text]


@lru_cache(4096)
def _is_plain(text: str) -> bool:
    """Whether each character takes a cell: what others shift is the terminal's to say."""
    return text.isascii() or all(width_of(character) == 1 for character in {*text})


def parse_runs(output: str) -> list[StyledRun] | None:
    """Parse ``output`` into runs of one style; None where it does more than move and draw."""
    runs: list[StyledRun] = []
    row = column = end = 0
    style = ""
    for token in _TOKEN.finditer(output):
        if token.start() != end:
            return None
        end = token.end()
        line, cell, colours, newline, text = token.groups()
        if text:
            runs.append(StyledRun(row, column, style, text))
            column += width_of(text)
        elif line:
            row, column = int(line) - 1, int(cell) - 1
        elif newline:
            row, column = row + 1, 0
        else:
            style = "" if colours in _RESET else colours
    return runs if end == len(output) else None


class _Part(NamedTuple):
    """A run to be sent: ``blank`` of nothing but its background, ``last`` so to the row's end.

    Where the cursor is behind it is not ``certain`` of characters that terminals draw as they like.
    """

    run: StyledRun
    blank: bool = False
    last: bool = False
    certain: bool = True

    @property
    def end(self) -> tuple[int, int]:
        """The cell behind it."""
        return self.run.row, self.run.column + width_of(self.run.text)


def write_parts(parts: list[_Part], erases: bool) -> str:
    """Write ``parts``: the cursor moves where it has to, and what colours are set stays set."""
    pen = _Pen()
    parts = [*_joined(parts)]
    begins = [*(part.run[:2] for part in parts[1:]), (-1, -1)]
    for part, next_at in zip(parts, begins[: len(parts)], strict=True):
        goes_on = part.end == next_at
        pen.write(part, _erasure(part, goes_on) if erases and part.blank else "")
    return pen.finish()


def _joined(parts: Iterable[_Part]) -> Iterator[_Part]:
    """``parts``, of which blanks side by side in one background are one."""
    before: _Part | None = None
    for part in parts:
        if before is not None and _is_one(before, part):
            text = before.run.text + part.run.text
            before = part._replace(run=before.run._replace(text=text))
            continue
        if before is not None:
            yield before
        before = part
    if before is not None:
        yield before


def _is_one(before: _Part, after: _Part) -> bool:
    same = style_of_blanks(before.run.style) == style_of_blanks(after.run.style)
    return before.blank and after.blank and same and before.end == after.run[:2]


def _erasure(blanks: _Part, goes_on: bool) -> str:
    """What erases ``blanks`` and, if more ``goes_on`` there, moves on; empty if that is longer.

    Erased cells have the background that is set (BCE), and the cursor stays.
    """
    size = len(blanks.run.text)
    if blanks.last:
        return "\x1b[K"
    erased = f"\x1b[{size}X"
    return erased if size > len(erased) * (1 + goes_on) else ""


class _Pen:
    """Writes parts at their places in their colours, both as far as they are others by then."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._style = ""
        self._at = (-1, -1)

    def write(self, part: _Part, erasure: str = "") -> None:
        """Write ``part``, or what erases it."""
        run = part.run
        self._move(run.row, run.column)
        style = with_background_of(self._style, run.style) if part.blank else run.style
        if change := style_change(self._style, style):
            self._parts.append(f"\x1b[{change}m")
            self._style = style
        self._parts.append(erasure or run.text)
        if not erasure:
            self._at = part.end if part.certain else (-1, -1)

    def _move(self, row: int, column: int) -> None:
        at, self._at = self._at, (row, column)
        if at == (row, column):
            return
        ahead = column - at[1]
        if at[0] == row and ahead > 0:
            self._parts.append(f"\x1b[{ahead}C" if ahead > 1 else "\x1b[C")
        else:
            self._parts.append(f"\x1b[{row + 1};{column + 1}H")

    def finish(self) -> str:
        if self._style:
            self._parts.append("\x1b[0m")
        return "".join(self._parts)


class ChangedCells(CompositorUpdate):
    """Write of an ``update`` what is not among ``cells`` yet."""

    def __init__(self, update: CompositorUpdate, cells: TerminalCells, size: Size) -> None:
        self._update, self._cells, self._size = update, cells, size
        self._written: str | None = None

    def render_segments(self, console: Console) -> str:
        """Return the changes, which are on the terminal from now on: they are to be written."""
        if self._written is None:
            self._written = self._cells.changes(self._update.render_segments(console), self._size)
        return self._written
