"""Add source lines to instructions, from another view of the same report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from flame.core.columns import I8
from flame.core.model.pc_samples import Code
from flame.core.readers.ncu.result import NcuResult


def add_source_lines(results: Sequence[NcuResult], others: Sequence[NcuResult]) -> list[NcuResult]:
    """Return ``results`` with the lines that ``others`` know of the same instructions.

    Those of ``others`` lie at the same addresses; not all instructions need be there.
    """
    return [_add_result_lines(result, others) for result in results]


def _add_result_lines(result: NcuResult, others: Sequence[NcuResult]) -> NcuResult:
    for other in others:
        code = result.samples.code
        at = _places(result, other)
        if len(at) and _have_same_operations(code, other.samples.code, at):
            known = replace(result.samples, code=_copy_lines(code, other.samples.code, at))
            return replace(result, samples=known)
    return result


def _places(result: NcuResult, other: NcuResult) -> I8:
    """Return where the instructions of ``other`` are in the code of ``result``; else nothing."""
    offset, other_offset = result.samples.code.offset, other.samples.code.offset
    wanted = other_offset + (other.address - result.address)
    at: I8 = np.searchsorted(offset, wanted)
    if not len(offset) or (at >= len(offset)).any() or (offset[at] != wanted).any():
        return at[:0]
    return at


def _have_same_operations(code: Code, other: Code, at: I8) -> bool:
    """Return whether the operations are the same; targets of jumps are left out."""
    ours = [code.text[place].partition(" ")[0] for place in at.tolist()]
    return ours == [text.partition(" ")[0] for text in other.text]


def _copy_lines(code: Code, other: Code, at: I8) -> Code:
    file, line = code.file.copy(), code.line.copy()
    file[at], line[at] = other.file, other.line
    return replace(code, file=file, line=line, files=other.files, source=other.source)
