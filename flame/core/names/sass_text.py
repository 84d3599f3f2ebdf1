"""The parts of a SASS instruction: its predicate, its opcode, and what it works on."""

from __future__ import annotations

import re
from typing import NamedTuple

_PARTS = re.compile(r"(\s*(?:@!?U?P(?:T|\d+)\s+)?)(\S*)(.*)", re.DOTALL)
_OFFSET = re.compile(r"\+0x[0-9a-f]+ (?=\S)")


class InstructionParts(NamedTuple):
    """An instruction in three parts, which together are its text; each may be empty."""

    predicate: str
    opcode: str
    operands: str


def split_instruction(text: str) -> InstructionParts:
    """``@!P0 EXIT`` begins with a predicate, ``LDG.E R2, [R4]`` with its opcode."""
    found = _PARTS.fullmatch(text)
    assert found is not None  # every part may be empty
    return InstructionParts(*found.groups())


def strip_offset(name: str) -> str:
    """The instruction that a frame is called by: ``+0x0120 EXIT`` is ``EXIT``."""
    return _OFFSET.sub("", name, count=1) if name.startswith("+") else name
