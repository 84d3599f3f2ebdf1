"""The rows of a listing: instructions, source lines above them, and what is folded away."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

import numpy as np

from flame.core.columns import I4, I8, U1, Bool
from flame.tui.sampling.version import Version, file_and_line
from flame.tui.sass.source import Sources
from flame.tui.toolkit.text import printable


class RowKind(IntEnum):
    """What a row of the listing is."""

    INSTRUCTION = 0
    SOURCE = 1
    FOLD = 2


class Row(NamedTuple):
    """A row, of the instructions from ``first`` up to ``last``."""

    kind: RowKind
    first: int
    last: int


@dataclass(frozen=True, eq=False)
class Listing:
    """The rows of ``version``: ``kind`` u1, ``first`` and ``last`` i4 each, as in `Row`.

    A source row stands for the instructions right below it, whose line it is.
    """

    version: Version
    sources: Sources
    kind: U1
    first: I4
    last: I4
    _texts: dict[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, version: Version, sources: Sources, source: bool, folded: bool) -> Listing:
        """All rows; with ``source`` lines, and what has no samples ``folded`` to a row a run."""
        first, last, fold = _units(version, folded)
        kind = np.where(fold, RowKind.FOLD, RowKind.INSTRUCTION).astype(np.uint8)
        if not source or not version.has_lines:
            return cls(version, sources, kind, first, last)
        begins = _begins(version.line_of[first], fold)
        heads = np.flatnonzero(begins)
        # A line ends where another begins, or where something is folded away.
        breaks = np.append(np.flatnonzero(begins | fold), len(first))
        end = breaks[np.searchsorted(breaks, heads, "right")] - 1
        return cls(
            version,
            sources,
            np.insert(kind, heads, RowKind.SOURCE),
            np.insert(first, heads, first[heads]),
            np.insert(last, heads, last[end]),
        )

    def __len__(self) -> int:
        return len(self.kind)

    def __getitem__(self, row: int) -> Row:
        return Row(RowKind(int(self.kind[row])), int(self.first[row]), int(self.last[row]))

    @cached_property
    def indented(self) -> bool:
        """Whether there are source lines that instructions stand below."""
        return bool((self.kind == RowKind.SOURCE).any())

    def row_of(self, place: int) -> int:
        """The row of the instruction at ``place``, or the one that it is folded into."""
        return int(np.searchsorted(self.first, place, "right")) - 1

    # What stands in it

    def line(self, row: Row) -> tuple[int, int] | None:
        """The file and line of ``row``, if they are known."""
        number = int(self.version.line_of[row.first])
        return file_and_line(number) if number >= 0 and row.kind != RowKind.FOLD else None

    def place(self, row: Row) -> str:
        """The source line of ``row`` as ``file.cu:12``, empty where it is not known."""
        found = self.line(row)
        return printable(f"{self.sources.name(found[0])}:{found[1]}") if found else ""

    def source(self, row: Row) -> str:
        """The text of the source line of ``row``, printable, without its indent."""
        found = self.line(row)
        text = self.sources.text(*found) if found else None
        return printable(text.strip()) if text else ""

    def text(self, row: Row) -> str:
        """What ``row`` says, printable."""
        if row.kind == RowKind.FOLD:
            return f"{row.last - row.first:,} instructions without samples"
        if row.kind == RowKind.SOURCE:
            return self._source_row(row)
        code = self.version.code
        return printable(code.text[row.first] or code.instruction(row.first))

    def _source_row(self, row: Row) -> str:
        number = int(self.version.line_of[row.first])
        if number not in self._texts:
            place = self.place(row) or "no source line"
            self._texts[number] = f"{place}  {self.source(row)}".rstrip()
        return self._texts[number]

    def samples(self, row: Row) -> int:
        """The samples of the instructions of ``row``."""
        before = self.version.before
        return int(before[row.last] - before[row.first])

    def value(self, row: Row) -> int:
        """The metric of the instructions of ``row``."""
        before = self.version.value_before
        return int(before[row.last] - before[row.first])

    # Searching

    def matching(self, pattern: re.Pattern[str]) -> I8:
        """The rows in which ``pattern`` is found, also by offset (``+0x0120``) and source line."""
        code, size = self.version.code, len(self.version)
        fits = {text: bool(pattern.search(printable(text))) for text in set(code.text)}
        at = np.fromiter(map(fits.__getitem__, code.text), bool, size)
        if "x" in pattern.pattern.lower() or "+" in pattern.pattern:
            at |= self._at_offset(pattern)
        found: Bool = np.where(self.kind == RowKind.INSTRUCTION, at[self.first], False)
        for row in np.flatnonzero(self.kind == RowKind.SOURCE).tolist():
            found[row] = bool(pattern.search(self.text(self[row])))
        return np.flatnonzero(found)

    def _at_offset(self, pattern: re.Pattern[str]) -> Bool:
        offsets = self.version.code.offset.tolist()
        fits = (bool(pattern.search(f"+0x{offset:04x}")) for offset in offsets)
        return np.fromiter(fits, bool, len(self.version))


def _units(version: Version, folded: bool) -> tuple[I4, I4, Bool]:
    """First and last (exclusive) instruction of every row without source lines; which are folds."""
    size = len(version)
    kept = version.at > 0
    if not folded or not kept.any():
        kept = np.ones(size, bool)
    begins = kept | np.concatenate([[True], kept[:-1]])[:size]
    first = np.flatnonzero(begins).astype(np.int32)
    last = np.append(first[1:], size).astype(np.int32)
    fold = ~kept[first] & (last - first > 1)  # a single instruction takes no more room
    return first, last, fold


def _begins(line: I8, fold: Bool) -> Bool:
    """Rows, but for folds, whose line is not that of the row before."""
    before = np.where(fold, np.int64(-2), line)
    changed: Bool = line != np.concatenate([[-3], before[:-1]])[: len(line)]
    return changed & ~fold
