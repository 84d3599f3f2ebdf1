"""Folded stacks, the format of flamegraph.pl: frames joined by ``;``, a space, and the value."""

from __future__ import annotations

from collections import defaultdict
from typing import BinaryIO

from flame.core.tree import StackTree
from flame.exporters.stacks import encodable, used_frames, weighed_stacks

# flamegraph.pl and speedscope drop or blank out a frame without a name.
NO_NAME = "[empty]"
NO_FRAMES = b"all"

# `;` separates frames. All of the others end a line for one reader or another (str.splitlines,
# the `$` of regular expressions in JavaScript).
_REPLACED = str.maketrans(dict.fromkeys("\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029", " ") | {";": ":"})


def write(tree: StackTree, file: BinaryIO) -> None:
    """Write one line per stack of ``tree``, sorted, as UTF-8; whole numbers in the metric's unit.

    In names ``;`` becomes ``:``, a line break a space, and no text at all ``[empty]``; stacks that
    are equal then are one line. Stacks without a value are left out. Activities with no frame in
    the chosen levels make the line ``all``, so that the lines always add up to the root's total.
    """
    names = {frame: _name(tree.text[frame]) for frame in used_frames(tree)}
    values: defaultdict[bytes, int] = defaultdict(int)
    for stack, value in weighed_stacks(tree, names):
        values[b";".join(stack) or NO_FRAMES] += value
    file.writelines(b"%b %d\n" % (stack, values[stack]) for stack in sorted(values))


def _name(text: str) -> bytes:
    return (encodable(text).translate(_REPLACED) or NO_NAME).encode()
