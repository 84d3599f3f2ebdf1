"""Split the text of a SASS instruction into its predicate, its opcode and its operands."""

from __future__ import annotations

import re
from typing import NamedTuple

_PARTS = re.compile(r"(\s*(?:@!?U?P(?:T|\d+)\s+)?)(\S*)(.*)", re.DOTALL)
_OFFSET = re.compile(r"\+0x[0-9a-f]+ (?=\S)")


class InstructionParts(NamedTuple):
    """Hold an instruction in three parts, which together are its text; each may be empty."""

    predicate: str
    opcode: str
    operands: str


def split_instruction(text: str) -> InstructionParts:
    """Split an instruction: ``@!P0 EXIT`` begins with a predicate, ``LDG.E R2`` with its opcode."""
    match = _PARTS.fullmatch(text)
    assert match is not None  # every part may be empty
    return InstructionParts(*match.groups())


def strip_offset(name: str) -> str:
    """Strip the offset from the name of an instruction's frame: ``+0x0120 EXIT`` → ``EXIT``."""
    return _OFFSET.sub("", name, count=1) if name.startswith("+") else name
