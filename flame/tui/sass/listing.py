"""List the instructions of a kernel under their source lines, and write the listing as text."""

from __future__ import annotations

import re
from dataclasses import field
from enum import IntEnum
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from flame.core.columns import I4, I8, U1, Bool
from flame.core.lazy_dataclass import dataclass
from flame.core.model.pc_samples import Code
from flame.core.model.stalls import stall_of
from flame.core.regex import Limit, fits, is_quick
from flame.core.units import format_count, format_counted, format_percent
from flame.tui.sampling.other_code import OtherCode
from flame.tui.sampling.reasons import counted
from flame.tui.sampling.subject import Subject
from flame.tui.sampling.version import Version, file_and_line
from flame.tui.toolkit.text import printable

MOST_BYTES = 8_000_000
"""What is longer was hardly written by hand; it is not read."""

_MOST_LINES = 200_000
_TAB = 4
_MOST_REASONS = 6


@dataclass
class SourceLines:
    """Read the source lines of ``code``: a file once, when a line of it is first asked for."""

    code: Code
    _read: dict[int, list[str]] = field(init=False, default_factory=dict)

    def name(self, file: int) -> str:
        """Return the name of ``file`` (an index into ``code.files``) without its folders."""
        return self.code.files[file].replace("\\", "/").rpartition("/")[2]

    def text(self, file: int, line: int) -> str | None:
        """Line ``line`` (from 1) of ``file``, as it stands there; None if it is not to be had."""
        recorded = self.code.source.get((file, line))
        if recorded is not None:
            return recorded.strip("\r\n").expandtabs(_TAB)
        if file not in self._read:
            self._read[file] = lines_of(self.code.files[file])
        lines = self._read[file]
        return lines[line - 1].expandtabs(_TAB) if 0 < line <= len(lines) else None


def lines_of(name: str) -> list[str]:
    """Read the lines of the file ``name``; none if it is absent here, too long or no text."""
    try:
        # What is not a plain file may never end, and what says it is empty may wait (/proc).
        path = Path(name)
        if not path.is_file() or not 0 < path.stat().st_size <= MOST_BYTES:
            return []
        with path.open(encoding="utf-8", errors="replace", newline=None) as file:
            return [line.rstrip("\n") for line in islice(file, _MOST_LINES)]
    except (OSError, ValueError):
        return []


class RowKind(IntEnum):
    """Tell instructions from source lines and from what is folded away."""

    INSTRUCTION = 0
    SOURCE = 1
    FOLD = 2


class ListingRow(NamedTuple):
    """Hold a row of the listing, of the instructions from ``first`` up to ``last``."""

    kind: RowKind
    first: int
    last: int


@dataclass(frozen=True, eq=False)
class Listing:
    """Hold the rows of ``version``: ``kind`` u1, ``first`` and ``last`` i4, as in `ListingRow`.

    A source row stands for the instructions right below it, whose line it is. ``other`` is what the
    other side of a comparison has of them, None where there is none.
    """

    version: Version
    sources: SourceLines
    kind: U1
    first: I4
    last: I4
    other: OtherCode | None = None
    _texts: dict[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, version: Version, sources: SourceLines, source: bool, folded: bool) -> Listing:
        """Lay out all rows, with ``source`` lines; ``folded``: a row per run without samples."""
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

    def __getitem__(self, row: int) -> ListingRow:
        return ListingRow(RowKind(int(self.kind[row])), int(self.first[row]), int(self.last[row]))

    @cached_property
    def indented(self) -> bool:
        """Whether there are source lines that instructions stand below."""
        return bool((self.kind == RowKind.SOURCE).any())

    def row_of(self, place: int) -> int:
        """Return the row of the instruction at ``place``, or the one that it is folded into."""
        return int(np.searchsorted(self.first, place, "right")) - 1

    # What stands in it

    def line(self, row: ListingRow) -> tuple[int, int] | None:
        """Return the file and line of ``row``, if they are known."""
        number = int(self.version.line_of[row.first])
        return file_and_line(number) if number >= 0 and row.kind != RowKind.FOLD else None

    def place(self, row: ListingRow) -> str:
        """Return the source line of ``row`` as ``file.cu:12``, empty where it is not known."""
        line = self.line(row)
        return printable(f"{self.sources.name(line[0])}:{line[1]}") if line else ""

    def source(self, row: ListingRow) -> str:
        """Return the text of the source line of ``row``, printable, without its indent."""
        line = self.line(row)
        text = self.sources.text(*line) if line else None
        return printable(text.strip()) if text else ""

    def text(self, row: ListingRow) -> str:
        """Return what ``row`` says, printable."""
        if row.kind == RowKind.FOLD:
            number = format_counted(row.last - row.first, "instruction", "instructions")
            return f"{number} without samples"
        if row.kind == RowKind.SOURCE:
            return self._source_row(row)
        code = self.version.code
        return printable(code.text[row.first] or code.instruction(row.first))

    def _source_row(self, row: ListingRow) -> str:
        number = int(self.version.line_of[row.first])
        if number not in self._texts:
            place = self.place(row) or "no source line"
            self._texts[number] = f"{place}  {self.source(row)}".rstrip()
        return self._texts[number]

    def samples(self, row: ListingRow) -> int:
        """Return the samples of the instructions of ``row``."""
        before = self.version.before
        return int(before[row.last] - before[row.first])

    def other_samples(self, row: ListingRow) -> int | None:
        """Return the samples of the other side's same instructions; None where it has none such."""
        if self.other is None or not self.other.alike[row.first : row.last].any():
            return None
        return int(self.other.before[row.last] - self.other.before[row.first])

    def value(self, row: ListingRow) -> int:
        """Return the metric of the instructions of ``row``."""
        before = self.version.value_before
        return int(before[row.last] - before[row.first])

    # Searching

    def is_quick(self, pattern: re.Pattern[str]) -> bool:
        """Tell whether ``pattern`` takes no more than a moment for each row."""
        return is_quick(pattern, {*self.version.code.text, *self._source_texts().values()})

    def _source_texts(self) -> dict[int, str]:
        """The texts of source lines, by row."""
        rows = np.flatnonzero(self.kind == RowKind.SOURCE).tolist()
        return {row: self.text(self[row]) for row in rows}

    def matching(self, pattern: re.Pattern[str]) -> I8:
        """Find the rows that ``pattern`` matches, also by offset (``+0x0120``) and source line.

        UsageError where that takes too long.
        """
        code, size = self.version.code, len(self.version)
        found = partial(fits, pattern, limit=Limit())
        by_text = {text: found(printable(text)) for text in set(code.text)}
        at = np.fromiter(map(by_text.__getitem__, code.text), bool, size)
        if "x" in pattern.pattern.lower() or "+" in pattern.pattern:
            offsets = (f"+0x{offset:04x}" for offset in code.offset.tolist())
            at |= np.fromiter(map(found, offsets), bool, size)
        matches: Bool = np.where(self.kind == RowKind.INSTRUCTION, at[self.first], False)
        for row, text in self._source_texts().items():
            matches[row] = found(text)
        return np.flatnonzero(matches)


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


# As text


def line_text(subject: Subject, shown: Listing, row: ListingRow) -> str:
    """``row`` as text: offset, samples, share and what it says."""
    samples = shown.samples(row)
    share = format_percent(samples, subject.samples) if samples else ""
    number = format_count(samples) if samples else ""
    offset = f"0x{int(shown.version.code.offset[row.first]):04x}"
    offset = "" if row.kind == RowKind.SOURCE else offset
    indent = "  " if shown.indented and row.kind != RowKind.SOURCE else ""
    return f"{offset:8}{number:>11}{share:>9}  {indent}{shown.text(row)}".rstrip()


def listing_text(subject: Subject, shown: Listing) -> str:
    """Return all rows below the kernel's name."""
    rows = (line_text(subject, shown, shown[row]) for row in range(len(shown)))
    return "\n".join([subject.name, *rows])


def reasons_text(shown: Listing, row: ListingRow) -> str:
    """Return the reasons of ``row`` with their shares, the most sampled first."""
    version = shown.version
    counts = counted(version.reasons, version.by_reason(row.first, row.last))
    whole = sum(samples for _, samples in counts)
    parts = (
        f"{printable(stall_of(key).title)} {format_percent(samples, whole)}"
        for key, samples in counts[:_MOST_REASONS]
    )
    return " · ".join(parts)
