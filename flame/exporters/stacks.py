"""Take from a tree what every exporter needs: weighed stacks, and text that UTF-8 can hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

import numpy as np

from flame.core.model.tree import StackTree

T = TypeVar("T")


def used_frames(tree: StackTree) -> list[int]:
    """Return the ids of frames that stand anywhere below the root of ``tree``."""
    frames: list[int] = np.unique(tree.frame[1:]).tolist()
    return frames


def weighed_stacks(tree: StackTree, spelling: Mapping[int, T]) -> Iterator[tuple[list[T], int]]:
    """Yield every stack with a value of its own, and that value, in the order of the tree.

    A stack is spelled from the outermost frame in, without the tree's root; what belongs to the
    root itself comes as the empty stack. The values add up to the root's total. The list is the
    same one each time: copy it to keep it. One pass over the nodes, however deep they lie.
    """
    stack: list[T] = []
    columns = (tree.frame.tolist(), tree.depth.tolist(), tree.own.tolist())
    for frame, depth, own in zip(*columns, strict=True):
        if depth:
            del stack[depth - 1 :]
            stack.append(spelling[frame])
        if own:
            yield stack, own


def fraction_digits(unit: str) -> int:
    """Return how many digits after the point values have: k of the unit ``1e-k``, else 0."""
    return int(unit.removeprefix("1e-")) if unit.startswith("1e-") else 0


def encodable(text: str) -> str:
    """Spell out in ASCII every lone surrogate in ``text``, which UTF-8 cannot hold."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
