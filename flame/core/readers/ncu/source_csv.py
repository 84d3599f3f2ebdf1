"""Read the source page of Nsight Compute as CSV: PC samples per instruction and stall reason.

What versions from 2020 to 2026 print for ``ncu --import R --page source --csv``: with
``--print-source sass`` (the default) a block per result, with ``cuda,sass`` one per result and
source file, where instructions stand below their lines. Columns are told by their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from flame.core.errors import InputError
from flame.core.options import Progress, silent
from flame.core.readers.ncu.columns import (
    AGAIN,
    EXPORT,
    SampleCounts,
    WrongPageError,
)
from flame.core.readers.ncu.instructions import InstructionCollector
from flame.core.readers.ncu.page import (
    PageBlock,
    decode_text,
    is_cut_off,
    is_header,
    split_blocks,
    split_cells,
)
from flame.core.readers.ncu.result import COLLECT, NcuResult
from flame.core.readers.shared.packed_files import PackedError, read_whole

STAGE = "reading instructions"

_OTHER_PAGES = {
    "Metric Name": "the details page",
    "launch__grid_size": "the raw page",
    "Process Name": "another page",
}
_MOST = 1 << 48
"""Samples: those of a GPU in a day, a hundred times over. Sums of many files fit 64 bits."""


def is_source_csv(head: bytes) -> bool:
    """Return whether a file that begins with ``head`` is a page of Nsight Compute as CSV."""
    lines = (split_cells(line) for line in decode_text(head).split("\n"))
    return any(is_header(row) or _other_page(row) for row in lines)


def _other_page(row: Sequence[str]) -> str:
    """Return the page whose header ``row`` is, if it is another page than the source page."""
    if row[:2] != ["ID", "Process ID"]:
        return ""
    return next((page for name, page in _OTHER_PAGES.items() if name in row), "")


def read_source_csv(path: Path, progress: Progress = silent) -> list[NcuResult]:
    """Read the results in the file at ``path``, packed or not, in its order.

    Samples of an instruction that are under no reason are under the reason ``unknown``. Raises
    InputError for a file that is none, is cut off, has no instructions or no samples at all, or has
    a number of samples that is no whole number.
    """
    try:
        text = decode_text(read_whole(path, progress))
    except PackedError as error:
        raise InputError(f"{path}: damaged: {error}; compress or copy it again") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    try:
        return _parse_results(text, progress)
    except WrongPageError as error:
        raise InputError(f"{path}: {error}") from None


def _parse_results(text: str, progress: Progress) -> list[NcuResult]:
    counts = SampleCounts()
    results = [
        _build_result(group, counts)
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
    rows = (split_cells(line) for line in text.split("\n", 1000)[:1000])
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


def _build_result(group: Sequence[PageBlock], counts: SampleCounts) -> NcuResult:
    reader = InstructionCollector(counts)
    for block in group:
        reader.add(block)
    return reader.build(_name(group[0]).strip())
