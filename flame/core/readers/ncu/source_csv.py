"""Read the source page of Nsight Compute as CSV: PC samples per instruction and stall reason.

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
from flame.core.lazy_regex import lazy_regex
from flame.core.model.pc_samples import Code, CodeSamples
from flame.core.options import Progress, silent
from flame.core.readers.ncu.columns import (
    AGAIN,
    EXPORT,
    PageColumns,
    PageInstruction,
    WrongPageError,
    parse_address,
)
from flame.core.readers.ncu.page import (
    PageBlock,
    decode_text,
    is_cut_off,
    is_header,
    split_blocks,
    split_cells,
)
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
_LINE = lazy_regex(r"[0-9]{1,9}")


def is_source_csv(head: bytes) -> bool:
    """Return whether a file that begins with ``head`` is a page of Nsight Compute as CSV."""
    lines = (split_cells(line.rstrip("\r")) for line in decode_text(head).split("\n"))
    return any(is_header(row) or _other_page(row) for row in lines)


def _other_page(row: Sequence[str]) -> str:
    """Return the page whose header ``row`` is, if it is another page than the source page."""
    if row[:2] != ["ID", "Process ID"]:
        return ""
    return next((page for name, page in _OTHER_PAGES.items() if name in row), "")


def read_source_csv(path: Path, progress: Progress = silent) -> list[NcuResult]:
    """Read the results in the file at ``path``, gzipped or not, in its order.

    Samples of an instruction that are under no reason are under the reason ``unknown``. Raises
    InputError for a file that is none, is cut off, has no instructions or no samples at all, or has
    a number of samples that is no whole number.
    """
    try:
        text = decode_text(read_whole(path, progress))
    except (EOFError, zlib.error) as error:
        raise InputError(f"{path}: damaged: {error}; compress or copy it again") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    try:
        return _parse_results(text, progress)
    except WrongPageError as error:
        raise InputError(f"{path}: {error}") from None


def _parse_results(text: str, progress: Progress) -> list[NcuResult]:
    results = [
        _build_result(group)
        for group in _group_by_result(
            _report_progress(split_blocks(text), text.count("\n") + 1, progress)
        )
    ]
    if not results:
        raise WrongPageError(_explain_no_result(text))
    if is_cut_off(text):
        raise WrongPageError(f"cut off: it ends within a row; {AGAIN}")
    if not any(len(result.samples.code) for result in results):
        raise WrongPageError(
            f"no SASS instructions in it, only source lines; export them: {EXPORT}"
        )
    if not any(result.collected for result in results):
        raise WrongPageError(f"no PC samples were collected; profile again with: {COLLECT}")
    if not any(result.samples.total for result in results):
        raise WrongPageError("no PC samples in it: its kernels ended before the first was taken")
    if sum(float(result.samples.samples.sum(dtype=np.float64)) for result in results) >= _MOST:
        raise WrongPageError(f"its PC samples add up to more than there can be; {AGAIN}")
    return results


def _report_progress(
    page_blocks: Iterable[PageBlock], size: int, progress: Progress
) -> Iterator[PageBlock]:
    for block in page_blocks:
        if block.rows:
            progress(STAGE, block.rows[-1][0], size)
        yield block


def _explain_no_result(text: str) -> str:
    rows = (split_cells(line.rstrip("\r")) for line in text.split("\n", 1000)[:1000])
    page = next(filter(None, map(_other_page, rows)), "")
    if page:
        return (
            f"{page} of Nsight Compute, which has no instructions; export the source page: {EXPORT}"
        )
    return f"not the source page of Nsight Compute as CSV, which this makes: {EXPORT}"


def _group_by_result(page_blocks: Iterable[PageBlock]) -> Iterator[list[PageBlock]]:
    """Group blocks by result: a changed name or a repeated file begins another result.

    Blocks of a kernel's further files may leave out its name.
    """
    group: list[PageBlock] = []
    known: set[tuple[str, str]] = set()
    for block in page_blocks:
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


def _name(block: PageBlock) -> str:
    return block.kernel or block.function


class _InstructionCollector:
    """Collects the instructions of one result by address."""

    def __init__(self) -> None:
        self.found: dict[int, PageInstruction] = {}
        self.source: dict[tuple[str, int], str] = {}
        self.collected = False
        self.unlike: set[int] = set()

    def add(self, block: PageBlock) -> None:
        """Add the instructions in the rows of ``block``."""
        if not block.header:
            return
        columns = PageColumns.from_header(block.header)
        self.collected |= columns.has_samples
        line = 0
        for number, row in block.rows:
            row = columns.pad(row)
            line = self._line(columns, row, block.file) or line
            try:
                self._row(columns, row, block.file, line)
            except WrongPageError as error:
                raise WrongPageError(f"line {number:,}: {error}") from None

    def _row(self, columns: PageColumns, row: list[str], file: str, line: int) -> None:
        place = parse_address(row[columns.address]) if columns.address >= 0 else None
        if place is None:
            columns.check_unaddressed(row)
        else:
            self._keep(place, columns.parse_instruction(row, file, line))

    def _line(self, columns: PageColumns, row: list[str], file: str) -> int:
        """Return the source line that the row is about or begins with, 0 for none."""
        if columns.line < 0 or not _LINE.fullmatch(row[columns.line]):
            return 0
        line = int(row[columns.line])
        self.source.setdefault((file, line), row[columns.line + 1].rstrip())
        return line

    def _keep(self, place: int, instruction: PageInstruction) -> None:
        known = self.found.setdefault(place, instruction)
        if known.samples != instruction.samples:
            self.unlike.add(place)


def _build_result(group: Sequence[PageBlock]) -> NcuResult:
    reader = _InstructionCollector()
    for block in group:
        reader.add(block)
    name = _name(group[0]).strip()
    code, order = _build_code(name, reader)
    excess = sum(instruction.excess > 0 for instruction in reader.found.values())
    samples = _build_samples(code, [reader.found[address] for address in order])
    first = order[0] if order else 0
    return NcuResult(name, samples, first, reader.collected, len(reader.unlike), excess)


def _build_code(name: str, reader: _InstructionCollector) -> tuple[Code, list[int]]:
    """Build the code of the instructions, and return their addresses in order."""
    order = sorted(reader.found)
    rows = [reader.found[address] for address in order]
    files = tuple(
        dict.fromkeys(
            instruction.file for instruction in rows if instruction.file and instruction.line
        )
    )
    place = {file: number for number, file in enumerate(files)}
    first = order[0] if order else 0
    last = order[-1] if order else 0
    code = Code(
        name,
        np.array(order, np.int64) - first,
        _make_targets_relative([instruction.text for instruction in rows], first, last),
        np.array(
            [place.get(instruction.file, -1) if instruction.line else -1 for instruction in rows],
            np.int32,
        ),
        np.array([instruction.line if instruction.file else 0 for instruction in rows], np.int32),
        files,
        {
            (place[file], line): text
            for (file, line), text in reader.source.items()
            if file in place and text
        },
    )
    return code, order


_TARGET = lazy_regex(r"\b0x[0-9a-f]{9,16}\b")


def _make_targets_relative(texts: Sequence[str], first: int, last: int) -> tuple[str, ...]:
    """Count targets of jumps in ``texts`` from the first instruction, as nvdisasm does.

    The same kernel lies somewhere else in every process. No immediate number has so many digits.
    """

    def relative(match: re.Match[str]) -> str:
        target = int(match[0], 16)
        return hex(target - first) if first <= target <= last else match[0]

    # All at once: most have no target, and none has a line end.
    return tuple(_TARGET.sub(relative, "\n".join(texts)).split("\n")[: len(texts)])


def _build_samples(code: Code, rows: Sequence[PageInstruction]) -> CodeSamples:
    keys = list(chain.from_iterable(instruction.samples for instruction in rows))
    reasons = tuple(dict.fromkeys(keys))
    number = {key: at for at, key in enumerate(reasons)}
    sizes = np.fromiter((len(instruction.samples) for instruction in rows), np.int64, len(rows))
    place = np.repeat(np.arange(len(rows), dtype=np.int32), sizes)
    reason = np.fromiter(map(number.__getitem__, keys), np.int32, len(keys))
    counts = chain.from_iterable(instruction.samples.values() for instruction in rows)
    return CodeSamples(code, place, reason, np.fromiter(counts, np.int64, len(keys)), reasons)
