"""Choose the code of functions from the cubins that they may be of, and never guess which it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import reduce
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8
from flame.core.model.pc_samples import Code
from flame.core.sass.module_lives import MOST_ALIKE, CubinId, Cubins
from flame.core.sass.nvdisasm_output import InstructionRow, build_code
from flame.core.units import format_counted

WantedFunctions = Mapping[Cubins, AbstractSet[str]]
"""Names of functions by the cubins that they may be of."""

NOT_THERE = "they are not in the cubin that they were loaded from"

_NOT_RECORDED = "which cubin they are of was not recorded"
_TOO_MANY = f"more than {MOST_ALIKE} cubins share CUPTI's checksum"
_MOST_REASONS = 3


class FoundCode(NamedTuple):
    """The code of functions of one cubin by name, and why there is none of the others."""

    codes: dict[str, Code]
    missing: dict[str, str]

    @classmethod
    def none(cls, names: Iterable[str], reason: str) -> FoundCode:
        """There is no code of ``names``, for one ``reason``."""
        return cls({}, dict.fromkeys(names, reason))

    def joined(self, other: FoundCode) -> FoundCode:
        """Join this with what is known of other functions."""
        return FoundCode(self.codes | other.codes, self.missing | other.missing)


class CodeChoice:
    """The ``codes`` of the ``wanted`` functions, by cubins and name, from what each cubin has."""

    def __init__(self, wanted: WantedFunctions, found_codes: Mapping[CubinId, FoundCode]) -> None:
        self.codes: dict[tuple[Cubins, str], Code] = {}
        self._found = found_codes
        self._missing: Counter[str] = Counter()
        self._alike: Counter[int] = Counter()
        for cubins, names in wanted.items():
            for name in sorted(names):
                self._choose(cubins, name)

    def _choose(self, cubins: Cubins, name: str) -> None:
        if reason := self._find_reason(cubins, name):
            self._missing[reason] += 1
            return
        having = [codes[name] for codes, _ in self._of(cubins) if name in codes]
        self._alike[len(having)] += 1
        self.codes[cubins, name] = having[0] if len(having) == 1 else agreed_code(having)

    def _of(self, cubins: Cubins) -> Iterator[FoundCode]:
        return (self._found[cubin] for cubin in cubins)

    def _find_reason(self, cubins: Cubins, name: str) -> str:
        """Say why the function has no code; empty where it has.

        One cubin that cannot be looked into is enough: it could be that one.
        """
        if not cubins or len(cubins) > MOST_ALIKE:
            return _TOO_MANY if cubins else _NOT_RECORDED
        reasons = [found.missing.get(name, "") for found in self._of(cubins)]
        unknown = [reason for reason in reasons if reason not in ("", NOT_THERE)]
        return next(iter(unknown), "" if "" in reasons else NOT_THERE)

    def warnings(self) -> Iterator[str]:
        """Yield why there is no code, or not all of it, and of how many functions."""
        reasons = self._missing.most_common()
        for reason, count in reasons[:_MOST_REASONS]:
            yield f"{_instructions_of(count)} have no text: {reason}"
        if rest := sum(count for _, count in reasons[_MOST_REASONS:]):
            yield f"{_instructions_of(rest)} have no text, for other reasons"
        alike = sorted(number for number in self._alike if number > 1)
        if alike:
            count = sum(self._alike[number] for number in alike)
            numbers = str(alike[0]) if len(alike) == 1 else f"{alike[0]} to {alike[-1]}"
            yield (
                f"{numbers} cubins share CUPTI's checksum: {_instructions_of(count)} have text "
                "only where these cubins agree"
            )


def agreed_code(codes: Sequence[Code]) -> Code:
    """Return the code that several ``codes`` of one function have in common.

    Instructions that are not in all of them, or not the same, say so instead of a text.
    """
    differs = f"[{len(codes)} cubins differ]"
    offsets = reduce(np.union1d, (code.offset for code in codes))
    rows = [_rows_at(code, offsets) for code in codes]
    alike = zip(offsets.tolist(), *rows, strict=True)
    return build_code(codes[0].name, (_agreed_row(*one, differs=differs) for one in alike))


def _agreed_row(offset: int, *rows: tuple[str, str, int], differs: str) -> InstructionRow:
    texts, places = {row[0] for row in rows}, {row[1:] for row in rows}
    text = rows[0][0] if len(texts) == 1 else differs
    return (offset, text, *(rows[0][1:] if len(places) == 1 else ("", 0)))


def _rows_at(code: Code, offsets: I8) -> list[tuple[str, str, int]]:
    """Return text, file and line at each of ``offsets``; empty where it has no instruction."""
    files = (*code.files, "")  # the last is that of -1
    rows = zip(code.text, code.file.tolist(), code.line.tolist(), strict=True)
    known = [(text, files[file], line) for text, file, line in rows]
    known_rows = dict(zip(code.offset.tolist(), known, strict=True))
    return [known_rows.get(offset, ("", "", 0)) for offset in offsets.tolist()]


def _instructions_of(functions: int) -> str:
    return f"the instructions of {format_counted(functions, 'function', 'functions')}"
