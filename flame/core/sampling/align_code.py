"""Align the instructions of two codes of a kernel, of which one was compiled otherwise."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

import numpy as np

from flame.core.columns import I4, I8, distinct
from flame.core.names.cuda import split_instruction

_MOST_CELLS = 1 << 28
"""Pairs of instructions that are looked at in all: about a second."""

_MOST_OF_GAP = 1 << 24
"""Pairs that are looked at together before instructions that occur once divide them."""

_TEXTS, _OPCODES = 0, 1
_WINDOWS = ((_TEXTS, 32), (_OPCODES, 32), (_TEXTS, 8), (_OPCODES, 12), (_TEXTS, 1))
"""By what, and how many in a row, instructions are looked for that occur once on either side."""

_SAME, _ALIKE = 3, 2
"""What a pair of instructions is worth: of one text; of one opcode, with other registers."""

_Numbers = tuple[I4, I4]
"""Numbers of the instructions of one code, and of the other."""


def align_code(code: Sequence[str], other: Sequence[str]) -> tuple[I8, I8]:
    """Pair the instructions of two codes, by their texts: (places in code, in other), i8[k] each.

    Both ascend. Instructions of a pair have the same opcode: registers and targets of jumps are
    others wherever anything was compiled otherwise. What is worth most in all is paired; of very
    many instructions that are all alike those at the same places, as that takes too long.
    """
    if list(code) > list(other):  # either way round the pairs are the same
        there, here = align_code(other, code)
        return here, there
    texts = _numbers(code, other)
    both = texts, _numbers(*map(_opcodes, (code, other)))
    begin = _common(texts[0], texts[1])
    ends = tuple(side[begin:][::-1] for side in texts)
    end = _common(ends[0], ends[1])
    room, pairs = _MOST_CELLS, [np.tile(np.arange(begin), (2, 1))]
    inner = len(code) - end, len(other) - end
    for first, last in _gaps(both, (begin, begin), inner, _WINDOWS):
        parts = [(one[first[0] : last[0]], other[first[1] : last[1]]) for one, other in both]
        cells = len(parts[0][0]) * len(parts[0][1])
        found = _best(*parts) if cells <= room else _at_same_places(parts[1])
        room -= cells if cells <= room else 0
        pairs.append(found + np.array([[first[0]], [first[1]]]))
    pairs.append(np.arange(end) + np.array([[inner[0]], [inner[1]]]))
    here, there = np.concatenate(pairs, axis=1)
    return here, there


def _common(one: I4, other: I4) -> int:
    """How many are the same from the first on."""
    size = min(len(one), len(other))
    apart = np.flatnonzero(one[:size] != other[:size])
    return int(apart[0]) if len(apart) else size


def _opcodes(texts: Sequence[str]) -> list[str]:
    known = {text: split_instruction(text).opcode for text in {*texts}}
    return [known[text] for text in texts]


def _numbers(one: Sequence[str], other: Sequence[str]) -> _Numbers:
    """Number the texts of both, the same ones alike."""
    known: dict[str, int] = {}
    numbers = np.array([known.setdefault(text, len(known)) for text in (*one, *other)], np.int32)
    return numbers[: len(one)], numbers[len(one) :]


# Where both are divided


_Place = tuple[int, int]


def _gaps(
    both: tuple[_Numbers, _Numbers], first: _Place, last: _Place, windows: Sequence[tuple[int, int]]
) -> Iterator[tuple[_Place, _Place]]:
    """Divide both sides from ``first`` until before ``last`` into parts that are looked at."""
    if (last[0] - first[0]) * (last[1] - first[1]) <= _MOST_OF_GAP or not windows:
        yield first, last
        return
    at = first
    what, window = windows[0]
    for anchor in _anchors(both[what], first, last, window):
        yield from _gaps(both, at, anchor, windows[1:])
        at = anchor
    yield from _gaps(both, at, last, windows[1:])


def _anchors(numbers: _Numbers, first: _Place, last: _Place, window: int) -> list[_Place]:
    """Find as many places as can be, in order on both sides, of rows that occur once on each."""
    rows = [side[low:high] for side, low, high in zip(numbers, first, last, strict=True)]
    if min(map(len, rows)) < window:
        return []
    keys = distinct(np.concatenate([_hashes(row, window) for row in rows]))[1]
    split = len(rows[0]) - window + 1
    size = int(keys.max()) + 1
    once = np.ones(size, bool)
    places = np.zeros((2, size), np.int64)
    for side, some in enumerate((keys[:split], keys[split:])):
        once &= np.bincount(some, minlength=size) == 1
        places[side, some] = np.arange(len(some))
    here, there = places[:, once]
    order = np.argsort(here)
    chosen = _longest_ascent(there[order].tolist())
    return [(first[0] + int(here[order[at]]), first[1] + int(there[order[at]])) for at in chosen]


def _hashes(row: I4, window: int) -> I8:
    """A number for each ``window`` instructions in a row, the same ones alike."""
    found = np.zeros(len(row) - window + 1, np.int64)
    for at in range(window):  # what is too large goes around, which is no harm
        found = found * np.int64(1_000_003) + row[at : at + len(found)]
    return found


def _longest_ascent(values: list[int]) -> list[int]:
    """The places of a longest ascending part of ``values``."""
    ends: list[int] = []
    last: list[int] = []
    before = [-1] * len(values)
    for at, value in enumerate(values):
        place = bisect_left(ends, value)
        before[at] = last[place - 1] if place else -1
        ends[place : place + 1] = [value]
        last[place : place + 1] = [at]
    found, at = [], last[-1] if last else -1
    while at >= 0:
        found.append(at)
        at = before[at]
    return found[::-1]


# What is paired


def _best(texts: _Numbers, opcodes: _Numbers) -> I8:
    """Pair what is worth most in all, (places in one, in other), i8[2, k]."""
    size, width = len(texts[0]), len(texts[1])
    worth = np.zeros(width + 1, np.int32)
    # Whether the best up to each pair goes on without the last of one, or of other.
    without = np.zeros((2, size, (width + 7) // 8), np.uint8)
    for at in range(size):
        gain = np.where(texts[1] == texts[0][at], _SAME, _ALIKE) * (opcodes[1] == opcodes[0][at])
        paired = np.where(gain, worth[:-1] + gain, 0)
        found = np.maximum.accumulate(np.maximum(worth[1:], paired))
        without[0, at] = np.packbits(found == worth[1:])
        without[1, at] = np.packbits(found == np.append(0, found[:-1]))
        worth[1:] = found
    return _traced(without, size, width)


def _at_same_places(opcodes: _Numbers) -> I8:
    size = min(map(len, opcodes))
    return np.tile(np.flatnonzero(opcodes[0][:size] == opcodes[1][:size]), (2, 1))


def _traced(without: np.ndarray, size: int, width: int) -> I8:
    """Go back through what `_best` has noted, from the end of both."""
    pairs, at, to = list[_Place](), size - 1, width - 1
    while at >= 0 and to >= 0:
        of_one, of_other = (bool(side[at, to >> 3] >> (7 - to % 8) & 1) for side in without)
        if not (of_one or of_other):
            pairs.append((at, to))
        at, to = at - (of_one or not of_other), to - (not of_one)
    return np.array(pairs[::-1], np.int64).reshape(-1, 2).T
