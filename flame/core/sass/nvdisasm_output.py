"""Parse what nvdisasm prints with ``-c -g``, section by section."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import field

import numpy as np

from flame.core.lazy_dataclass import dataclass
from flame.core.lazy_regex import lazy_regex
from flame.core.model.pc_samples import Code

_SECTION = lazy_regex(r"(\.text\..+):")
_LABEL = lazy_regex(r"(\.L\w+):")
_LINE = lazy_regex(r'\s*//## File "(.*?)", line (\d{1,9})\b')
_INSTRUCTION = lazy_regex(r"\s*/\*([0-9a-f]{4,15})\*/\s+(\S.*?)\s*;?\s*")
_TARGET = lazy_regex(r"`\(([^()]*)\)")
_USED_LABEL = lazy_regex(r"\.L_x_\d+")

InstructionRow = tuple[int, str, str, int]
"""Of an instruction: offset, text, file ("" unknown), line."""


@dataclass
class CodeSection:
    """The instructions of a section.

    ``in_doubt``: those at the beginning have no line, but the same line may have been printed last,
    for the section before: nvdisasm says a line only where it changes.
    """

    rows: list[InstructionRow] = field(default_factory=list)
    in_doubt: bool = False

    def function_code(self, name: str, start: int, end: int) -> Code:
        """Return the code of the function ``name`` in the bytes from ``start`` to ``end``."""
        rows = {row[0] - start: row for row in self.rows if start <= row[0] < end}
        return build_code(name, ((offset, *rows[offset][1:]) for offset in sorted(rows)))


def build_code(name: str, rows: Iterable[InstructionRow]) -> Code:
    """Build the code of these instructions, which are in order."""
    files: dict[str, int] = {"": -1}
    offsets, texts, of_file, lines = [], [], [], []
    for offset, text, file, line in rows:
        offsets.append(offset)
        texts.append(text)
        of_file.append(files.setdefault(file, len(files) - 1))
        lines.append(line)
    return Code(
        name,
        np.array(offsets, np.int64),
        tuple(texts),
        np.array(of_file, np.int32),
        np.array(lines, np.int32),
        tuple(files)[1:],
    )


def parse_sections(printed: Iterable[str]) -> dict[str, CodeSection]:
    """Parse the sections in the lines of nvdisasm, by name (``.text.gemm``).

    Labels that are jumped to become offsets: ``BRA 0x1f0``.
    """
    reading = _OutputParser()
    for line in printed:
        reading.add(line)
    return reading.resolve_labels()


class _OutputParser:
    def __init__(self) -> None:
        self._found: dict[str, CodeSection] = {}
        self._section = CodeSection()
        self._place = ("", 0)
        self._waiting: list[str] = []
        self._labels: dict[str, int] = {}
        self._any_line = False

    def add(self, line: str) -> None:
        if match := _INSTRUCTION.fullmatch(line):
            self._add(int(match[1], 16), match[2])
        elif match := _LINE.match(line):
            self._place, self._any_line = (match[1], int(match[2])), True
        elif match := _LABEL.fullmatch(line):
            self._waiting.append(match[1])
        elif match := _SECTION.fullmatch(line):
            self._section = self._found.setdefault(match[1], CodeSection())
            self._place, self._waiting = ("", 0), []

    def _add(self, offset: int, text: str) -> None:
        if not self._section.rows:
            self._section.in_doubt = self._any_line and not self._place[1]
        self._labels.update(dict.fromkeys(self._waiting, offset))
        self._waiting = []
        self._section.rows.append((offset, text, *self._place))

    def resolve_labels(self) -> dict[str, CodeSection]:
        for section in self._found.values():
            section.rows = [
                (row[0], self._replace_labels(row[1]), *row[2:]) for row in section.rows
            ]
        return self._found

    def _replace_labels(self, text: str) -> str:
        if "`" in text:
            text = _TARGET.sub(r"\1", text)
        return _USED_LABEL.sub(self._target, text) if ".L_x_" in text else text

    def _target(self, match: re.Match[str]) -> str:
        return f"0x{self._labels[match[0]]:x}" if match[0] in self._labels else match[0]
