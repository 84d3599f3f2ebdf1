"""Take lines of folded stacks apart by columns, where all are written as most programs do."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.columns import I8

_SHORT = 18  # digits that always fit 64 bits

# Comments, blank lines, white space that is not one space before the number, and stacks without
# frames or with an empty one at their end. Looking for each is ten times faster than one pattern.
_ODD_BEGINS = (b"#", b" ", b"\n")
_ODD = (
    b"\t",
    b"\r",
    b"\x0b",
    b"\x0c",
    b"  ",
    b" \n",
    b"; ",
    *(b"\n" + sign for sign in _ODD_BEGINS),
)
_SPACE, _LINE_END, _BETWEEN = b" \n;"


class PlainLines(NamedTuple):
    """Lines taken apart: ``stacks`` with ``;`` between them, ``lengths`` and ``values`` i8[n]."""

    stacks: bytes
    lengths: I8
    values: I8


def split_plain(batch: bytes) -> PlainLines | None:
    """Split lines of a stack, a space and a whole number; None where any may be something else."""
    lines = batch + b"\n"
    if lines.startswith(_ODD_BEGINS) or any(sign in lines for sign in _ODD):
        return None
    text = np.frombuffer(lines, np.uint8)
    ends, spaces = np.flatnonzero(text == _LINE_END), np.flatnonzero(text == _SPACE)
    begins = np.concatenate([[0], ends[:-1] + 1])
    place = np.searchsorted(spaces, ends) - 1
    if not len(spaces) or (place < 0).any():
        return None
    last = spaces[place]
    digits = ends - last - 1
    if (last <= begins).any() or digits.max() > _SHORT:
        return None
    in_number = _mark(last, ends, len(text))
    numbers = text[in_number].tobytes()
    if not numbers.translate(None, b" ").isdigit():
        return None
    betweens = np.flatnonzero(text == _BETWEEN)
    lengths = np.diff(np.searchsorted(betweens, np.append(begins, len(text)))) + 1
    stacks = text[~in_number].tobytes()[:-1].replace(b"\n", b";")
    return PlainLines(stacks, lengths, np.fromstring(numbers, np.int64, sep=" "))


def _mark(begins: I8, ends: I8, size: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Mark the places from each of ``begins`` up to each of ``ends``, bool[size]."""
    steps = np.zeros(size + 1, np.int8)
    steps[begins] = 1
    steps[ends] = -1
    return np.cumsum(steps[:-1], dtype=np.int8).astype(bool)
