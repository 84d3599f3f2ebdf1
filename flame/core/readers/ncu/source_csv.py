"""The source page of Nsight Compute as CSV: PC samples of every instruction, by stall reason.

What versions from 2020 to 2026 print for ``ncu --import R --page source --csv``: with
``--print-source sass`` (the default) a block per result, with ``cuda,sass`` one per result and
source file, where instructions stand below their lines. Columns are told by their names.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from flame.core.errors import InputError
from flame.core.model.pc_samples import Code, CodeSamples
from flame.core.options import Progress, silent
from flame.core.readers.ncu.columns import (
    AGAIN,
    EXPORT,
    Columns,
    Instruction,
    WrongPageError,
    address,
)
from flame.core.readers.ncu.page import Block, blocks, cells, decoded, is_cut_off, is_header
from flame.core.readers.ncu.result import COLLECT, NcuResult
from flame.core.readers.shared.gzip_files import read_whole

STAGE = "reading instructions"

_OTHER_PAGES = {
    "Metric Name": "the details page",
    "launch__grid_size": "the raw page",
    "Process Name": "another page",
}
_MOST = 1 << 48
"""Samples: those of a GPU in a day, a hundred times over. Sums of many files fit 64 bits."""
_LINE = re.compile(r"[0-9]{1,9}")


def looks_like(head: bytes) -> bool:
    """Whether a file that begins with ``head`` is a page of Nsight Compute as CSV."""
    lines = (cells(line.rstrip("\r")) for line in decoded(head).split("\n"))
    return any(is_header(row) or _other_page(row) for row in lines)


def _other_page(row: Sequence[str]) -> str:
    """The page whose header ``row`` is, if it is another page than the source page."""
    if row[:2] != ["ID", "Process ID"]:
        return ""
    return next((page for name, page in _OTHER_PAGES.items() if name in row), "")


def read_source_csv(path: Path, progress: Progress = silent) -> list[NcuResult]:
    """The results in the file at ``path``, gzipped or not, in its order.

    Samples of an instruction that are under no reason are under the reason ``unknown``. Raises
    InputError for a file that is none, is cut off, has no instructions or no samples at all, or has
    a number of samples that is no whole number.
    """
    try:
        text = decoded(read_whole(path, progress))
    except (EOFError, zlib.error) as error:
        raise InputError(f"{path}: damaged: {error}; compress or copy it again") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    try:
        return _results(text, progress)
    except WrongPageError as error:
        raise InputError(f"{path}: {error}") from None


def _results(text: str, progress: Progress) -> list[NcuResult]:
    found = [
        _result(group)
        for group in _by_result(_reported(blocks(text), text.count("\n") + 1, progress))
    ]
    if not found:
        raise WrongPageError(_why_none(text))
    if is_cut_off(text):
        raise WrongPageError(f"cut off: it ends within a row; {AGAIN}")
    if not any(len(one.samples.code) for one in found):
        raise WrongPageError(
            f"no SASS instructions in it, only source lines; export them: {EXPORT}"
        )
    if not any(one.collected for one in found):
        raise WrongPageError(f"no PC samples were collected; profile again with: {COLLECT}")
    if not any(one.samples.total for one in found):
        raise WrongPageError("no PC samples in it: its kernels ended before the first was taken")
    if sum(float(one.samples.samples.sum(dtype=np.float64)) for one in found) >= _MOST:
        raise WrongPageError(f"its PC samples add up to more than there can be; {AGAIN}")
    return found


def _reported(found: Iterable[Block], size: int, progress: Progress) -> Iterator[Block]:
    for block in found:
        if block.rows:
            progress(STAGE, block.rows[-1][0], size)
        yield block


def _why_none(text: str) -> str:
    rows = (cells(line.rstrip("\r")) for line in text.split("\n", 1000)[:1000])
    page = next(filter(None, map(_other_page, rows)), "")
    if page:
        return (
            f"{page} of Nsight Compute, which has no instructions; export the source page: {EXPORT}"
        )
    return f"not the source page of Nsight Compute as CSV, which this makes: {EXPORT}"


def _by_result(found: Iterable[Block]) -> Iterator[list[Block]]:
    """Blocks of one result together: a name that changes or a file said again begins another.

    Blocks of a kernel's further files may leave out its name.
    """
    group: list[Block] = []
    known: set[tuple[str, str]] = set()
    for block in found:
        if group and block.file:
            block.kernel = block.kernel or group[0].kernel
        place = (block.file, block.function)
        if group and (_name(block) != _name(group[0]) or place in known):
            yield group
            group, known = [], set()
        group.append(block)
        known.add(place)
    if group:
        yield group


def _name(block: Block) -> str:
    return block.kernel or block.function


class _Reader:
    """Collects the instructions of one result by address."""

    def __init__(self) -> None:
        self.found: dict[int, Instruction] = {}
        self.source: dict[tuple[str, int], str] = {}
        self.collected = False
        self.unlike: set[int] = set()

    def add(self, block: Block) -> None:
        """Take in the rows of ``block``."""
        if not block.header:
            return
        columns = Columns.of(block.header)
        self.collected |= columns.collected
        line = 0
        for number, row in block.rows:
            row = columns.padded(row)
            line = self._line(columns, row, block.file) or line
            try:
                self._row(columns, row, block.file, line)
            except WrongPageError as error:
                raise WrongPageError(f"line {number:,}: {error}") from None

    def _row(self, columns: Columns, row: list[str], file: str, line: int) -> None:
        place = address(row[columns.address]) if columns.address >= 0 else None
        if place is None:
            columns.check_unaddressed(row)
        else:
            self._keep(place, columns.instruction(row, file, line))

    def _line(self, columns: Columns, row: list[str], file: str) -> int:
        """The source line that the row is about or begins with, 0 for none."""
        if columns.line < 0 or not _LINE.fullmatch(row[columns.line]):
            return 0
        line = int(row[columns.line])
        self.source.setdefault((file, line), row[columns.line + 1].rstrip())
        return line

    def _keep(self, place: int, one: Instruction) -> None:
        known = self.found.setdefault(place, one)
        if known.samples != one.samples:
            self.unlike.add(place)


def _result(group: Sequence[Block]) -> NcuResult:
    reader = _Reader()
    for block in group:
        reader.add(block)
    name = _name(group[0]).strip()
    code, order = _code(name, reader)
    excess = sum(one.excess > 0 for one in reader.found.values())
    samples = _samples(code, [reader.found[address] for address in order])
    first = order[0] if order else 0
    return NcuResult(name, samples, first, reader.collected, len(reader.unlike), excess)


def _code(name: str, reader: _Reader) -> tuple[Code, list[int]]:
    """The instructions, and their addresses in order."""
    order = sorted(reader.found)
    rows = [reader.found[address] for address in order]
    files = tuple(dict.fromkeys(one.file for one in rows if one.file and one.line))
    place = {file: number for number, file in enumerate(files)}
    first = order[0] if order else 0
    last = order[-1] if order else 0
    code = Code(
        name,
        np.array(order, np.int64) - first,
        _relative([one.text for one in rows], first, last),
        np.array([place.get(one.file, -1) if one.line else -1 for one in rows], np.int32),
        np.array([one.line if one.file else 0 for one in rows], np.int32),
        files,
        {
            (place[file], line): text
            for (file, line), text in reader.source.items()
            if file in place and text
        },
    )
    return code, order


_TARGET = re.compile(r"\b0x[0-9a-f]{9,16}\b")


def _relative(texts: Sequence[str], first: int, last: int) -> tuple[str, ...]:
    """``texts`` with targets of jumps counted from the first instruction, as disassemblers do.

    The same kernel lies somewhere else in every process. No immediate number has so many digits.
    """

    def told(found: re.Match[str]) -> str:
        target = int(found[0], 16)
        return hex(target - first) if first <= target <= last else found[0]

    # All at once: most have no target, and none has a line end.
    return tuple(_TARGET.sub(told, "\n".join(texts)).split("\n")[: len(texts)])


def _samples(code: Code, rows: Sequence[Instruction]) -> CodeSamples:
    keys = list(chain.from_iterable(one.samples for one in rows))
    reasons = tuple(dict.fromkeys(keys))
    number = {key: at for at, key in enumerate(reasons)}
    sizes = np.fromiter((len(one.samples) for one in rows), np.int64, len(rows))
    place = np.repeat(np.arange(len(rows), dtype=np.int32), sizes)
    reason = np.fromiter(map(number.__getitem__, keys), np.int32, len(keys))
    counts = chain.from_iterable(one.samples.values() for one in rows)
    return CodeSamples(code, place, reason, np.fromiter(counts, np.int64, len(keys)), reasons)
