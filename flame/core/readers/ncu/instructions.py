"""Collect the instructions of a source page as columns, and their samples."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from operator import itemgetter

import numpy as np

from flame.core.columns import I8, Bool, expand_ranges
from flame.core.lazy_dataclass import dataclass
from flame.core.lazy_regex import lazy_regex
from flame.core.model.pc_samples import LONGEST_TEXT, Code, CodeSamples
from flame.core.model.stalls import UNKNOWN
from flame.core.readers.ncu.columns import (
    PageColumns,
    SampleCounts,
    WrongPageError,
    parse_address,
)
from flame.core.readers.ncu.page import PageBlock, split_cells
from flame.core.readers.ncu.result import NcuResult

_LINE = lazy_regex(r"[0-9]{1,9}")
_TARGET = lazy_regex(r"\b0x[0-9a-f]{9,16}\b")


@dataclass(frozen=True, eq=False)
class _Entries:
    """Samples that are not 0, by row: ``count`` (i8) for the reason ``key``; ``size`` of each row.

    ``excess``: rows that have more samples by reason than in all.
    """

    size: I8
    key: I8
    count: I8
    excess: Bool


@dataclass
class _Rows:
    """Instructions in the order of the page, with repeated ones, and ``block``, where they are."""

    address: list[int] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    line: list[int] = field(default_factory=list)
    block: list[int] = field(default_factory=list)


class InstructionCollector:
    """Collects the instructions of one result: of those with one address the first counts."""

    def __init__(self, counts: SampleCounts) -> None:
        self._counts = counts
        self._rows = _Rows()
        self._files: list[str] = []
        self._keys: dict[str, int] = {}
        none = np.zeros(0, np.int64)
        self._entries = [_Entries(none, none, none, np.zeros(0, bool))]
        self._source: dict[tuple[str, int], str] = {}
        self._collected = False
        self._number = 0

    def add(self, block: PageBlock) -> None:
        """Add the instructions in the rows of ``block``."""
        if not block.header:
            return
        columns = PageColumns.from_header(block.header)
        self._collected |= columns.has_samples
        try:
            counts = self._add_rows(columns, block)
        except WrongPageError as error:
            raise WrongPageError(f"line {self._number:,}: {error}") from None
        self._entries.append(self._split(columns, counts))

    def _add_rows(self, columns: PageColumns, block: PageBlock) -> I8:
        """Add the rows of ``block``; return their numbers of samples, i8[rows, columns]."""
        rows, before, counts = self._rows, len(self._rows.address), list[int]()
        counted, count = columns.counted, self._counts.__getitem__
        cells = itemgetter(*counted, 0, 0)  # of less than two items it returns no tuple
        for place, line, row in self._addressed_rows(columns, block):
            counts += map(count, cells(row)[:-2])
            rows.address.append(place)
            rows.text.append(row[columns.sass])
            rows.line.append(line)
        added = len(rows.address) - before
        rows.block += [len(self._files)] * added
        self._files.append(block.file)
        return np.array(counts, np.int64).reshape(added, len(counted))

    def _addressed_rows(
        self, columns: PageColumns, block: PageBlock
    ) -> Iterator[tuple[int, int, list[str]]]:
        """Yield the address, source line (0 for none) and cells of each instruction."""
        line, width, at = 0, columns.width, columns.address
        for self._number, text in block.rows:
            row = split_cells(text)
            if len(row) < 2:
                continue
            if len(row) < width:
                row = columns.pad(row)
            if columns.line >= 0:
                line = self._line(columns, row, block.file) or line
            place = parse_address(row[at]) if at >= 0 else None
            if place is None:
                columns.check_unaddressed(row, self._counts)
            else:
                yield place, line, row

    def _line(self, columns: PageColumns, row: list[str], file: str) -> int:
        """Return the source line that the row is about or begins with, 0 for none."""
        if not _LINE.fullmatch(row[columns.line]):
            return 0
        line = int(row[columns.line])
        self._source.setdefault((file, line), row[columns.line + 1].rstrip())
        return line

    def _split(self, columns: PageColumns, counts: I8) -> _Entries:
        """Tell samples by reason from those under none, which are ``unknown``."""
        names = [*columns.reasons, *({UNKNOWN} - set(columns.reasons))]
        by_reason = np.zeros((len(counts), len(names)), np.int64)
        by_reason[:, : len(columns.reasons)] = counts[:, : len(columns.reasons)]
        told = by_reason.sum(axis=1)
        whole = counts[:, -1] if columns.total >= 0 else told
        by_reason[:, names.index(UNKNOWN)] += np.maximum(whole - told, 0)
        row, column = np.nonzero(by_reason)
        keys = np.array([self._keys.setdefault(name, len(self._keys)) for name in names])
        size = np.bincount(row, minlength=len(counts))
        return _Entries(size, keys[column], by_reason[row, column], told > whole)

    def build(self, name: str) -> NcuResult:
        """Build the result of what was added, the kernel ``name``."""
        size, key, count, excess = (
            np.concatenate([getattr(entries, column) for entries in self._entries])
            for column in ("size", "key", "count", "excess")
        )
        entries = _Entries(size, key, count, excess)
        found, first, place = np.unique(
            np.array(self._rows.address, np.int64), return_index=True, return_inverse=True
        )
        unlike = _find_unlike(entries, first[place])
        return NcuResult(
            name,
            self._samples(self._code(name, found, first), entries, first),
            int(found[0]) if len(found) else 0,
            self._collected,
            len(np.unique(found[place[unlike]])),
            int(excess[first].sum()),
        )

    def _code(self, name: str, address: I8, rows: I8) -> Code:
        """Build the code of the instructions ``rows``, at ``address``."""
        block = np.array(self._rows.block, np.int32)[rows]
        line = np.array(self._rows.line, np.int32)[rows]
        with_line = [self._files[at] for at in block[line != 0].tolist()]
        files = tuple(dict.fromkeys(filter(None, with_line)))
        number = {file: at for at, file in enumerate(files)}
        of_block = np.array([number.get(file, -1) for file in self._files], np.int32)
        named = np.array([bool(file) for file in self._files], bool)
        source = {
            (number[file], line): text
            for (file, line), text in self._source.items()
            if file in number and text
        }
        first, last = (int(address[0]), int(address[-1])) if len(address) else (0, 0)
        texts = self._rows.text
        return Code(
            name,
            address - first,
            _make_targets_relative([_clean_text(texts[row]) for row in rows.tolist()], first, last),
            np.where(line != 0, of_block[block], -1).astype(np.int32),
            np.where(named[block], line, 0).astype(np.int32),
            files,
            source,
        )

    def _samples(self, code: Code, entries: _Entries, rows: I8) -> CodeSamples:
        """Build the samples of the instructions ``rows``; reasons as they are first met."""
        size = entries.size[rows]
        at = expand_ranges((np.cumsum(entries.size) - entries.size)[rows], size)
        keys, first, reason = np.unique(entries.key[at], return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        names = list(self._keys)
        return CodeSamples(
            code,
            np.repeat(np.arange(len(rows), dtype=np.int32), size),
            rank[reason],
            entries.count[at],
            tuple(names[key] for key in keys[order].tolist()),
        )


def _find_unlike(entries: _Entries, known: I8) -> Bool:
    """Return which rows have other samples than the row ``known`` of each, bool[n]."""
    rows = np.flatnonzero(known != np.arange(len(known)))
    unlike = np.zeros(len(known), bool)
    if not len(rows):
        return unlike
    row = np.repeat(np.arange(len(known)), entries.size)
    order = np.lexsort((entries.key, row))  # blocks may have their columns in another order
    key, count = entries.key[order], entries.count[order]
    unlike[rows] = entries.size[rows] != entries.size[known[rows]]
    rows = rows[~unlike[rows]]
    begin, size = np.cumsum(entries.size) - entries.size, entries.size[rows]
    own, other = expand_ranges(begin[rows], size), expand_ranges(begin[known[rows]], size)
    differ = (key[own] != key[other]) | (count[own] != count[other])
    unlike[row[order][own[differ]]] = True
    return unlike


def _clean_text(text: str) -> str:
    return " ".join(text[:LONGEST_TEXT].rstrip(" ;").split())


def _make_targets_relative(texts: Sequence[str], first: int, last: int) -> tuple[str, ...]:
    """Count targets of jumps in ``texts`` from the first instruction, as nvdisasm does.

    The same kernel lies somewhere else in every process. No immediate number has so many digits.
    """

    def relative(match: re.Match[str]) -> str:
        target = int(match[0], 16)
        return hex(target - first) if first <= target <= last else match[0]

    # All at once: most have no target, and none has a line end.
    return tuple(_TARGET.sub(relative, "\n".join(texts)).split("\n")[: len(texts)])
