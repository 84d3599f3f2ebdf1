"""Codes of several processes, or files, that are one: it is listed once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import reduce

import numpy as np

from flame.core.model.pc_samples import Code


def as_one(codes: Mapping[int, Code]) -> list[tuple[Code, tuple[int, ...]]]:
    """Each code that there is among ``codes`` once, and the numbers of all that are it.

    It has all instructions of these: where none has a text, each may know of others.
    """
    same: dict[Hashable, list[int]] = {}
    for number, code in codes.items():
        same.setdefault(_key(code), []).append(number)
    return [(_whole([codes[one] for one in mine]), tuple(mine)) for mine in same.values()]


def _key(code: Code) -> Hashable:
    return (code.name, code.offset.tobytes(), code.text) if any(code.text) else code.name


def _whole(codes: Sequence[Code]) -> Code:
    """One for all ``codes``: where there are texts the one of which most lines are known."""
    if any(codes[0].text):
        return max(codes, key=lambda code: int((code.line > 0).sum()))
    return Code.unknown(codes[0].name, reduce(np.union1d, (code.offset for code in codes)))
