"""Write folded stacks, the format of flamegraph.pl: frames joined by ``;``, a space, a value."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import BinaryIO

from flame.core.columns import I8
from flame.core.model.frames import Kind
from flame.core.model.tree import StackTree
from flame.exporters.line_sums import sum_sorted
from flame.exporters.stacks import NO_NAME, encodable, fraction_digits, weighed_stacks

NO_FRAMES = b"all"

_MOST_NAMES = 1 << 14
"""Names kept as they are written: a file of stacks may have millions."""

# `;` separates frames. All of the others end a line for one reader or another (str.splitlines,
# the `$` of regular expressions in JavaScript).
_REPLACED = str.maketrans(dict.fromkeys("\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029", " ") | {";": ":"})


def write(tree: StackTree, file: BinaryIO) -> None:
    """Write one line per stack of ``tree``, sorted, as UTF-8; numbers in the metric's unit.

    They are whole but for metrics with fractions (which flamegraph.pl reads, speedscope does not).
    In names ``;`` becomes ``:``, a line break a space, and no text at all ``[empty]``; stacks that
    are equal then are one line. Python functions are written as py-spy does, with file and line:
    ``forward (model.py:12)``. Stacks without a value are left out. Activities with no frame in
    the chosen levels make the line ``all``, so that the lines always add up to the root's total.
    """
    digits = fraction_digits(tree.metric.unit)
    for line, value in sum_sorted(_lines(tree)):
        file.write(b"%b %b\n" % (line, _number(value, digits)))


def write_two(tree: StackTree, first: I8, second: I8, file: BinaryIO) -> None:
    """Write lines as `write` does, each with two values, i8[nodes] of the nodes of ``tree``.

    It is what difffolded.pl writes, and flamegraph.pl draws: as wide as the second value.
    """
    digits = fraction_digits(tree.metric.unit)
    sums: defaultdict[bytes, list[int]] = defaultdict(lambda: [0, 0])
    for place, values in enumerate((first, second)):
        for line, value in _lines(replace(tree, own=values)):
            sums[line][place] += value
    for line, both in sorted(sums.items()):
        numbers = b" ".join(_number(value, digits) for value in both)
        file.write(b"%b %b\n" % (line, numbers))


def _lines(tree: StackTree) -> Iterator[tuple[bytes, int]]:
    """Spell the stacks that have a value."""
    name = lru_cache(_MOST_NAMES)(lambda frame: _name(_placed(tree, frame)))
    spelled = weighed_stacks(tree, lambda frames: map(name, frames.tolist()))
    return ((b";".join(stack) or NO_FRAMES, value) for stack, value in spelled)


def _number(value: int, digits: int) -> bytes:
    """``value`` with its last ``digits`` digits after the point, as short as it can be written."""
    if not digits:
        return b"%d" % value
    whole, rest = divmod(value, 10**digits)
    return f"{whole}.{rest:0{digits}}".rstrip("0").rstrip(".").encode()


def _placed(tree: StackTree, frame: int) -> str:
    """The frame's name; of a Python function also where it is: many are called ``forward``."""
    name, known = tree.text[frame], tree.frames[frame]
    if known.kind != Kind.PYTHON or not known.file:
        return name
    return f"{name} ({known.file}:{known.line})" if known.line else f"{name} ({known.file})"


def _name(text: str) -> bytes:
    return (encodable(text).translate(_REPLACED) or NO_NAME).encode()
