"""Take from a tree what every exporter needs: weighed stacks, and text that UTF-8 can hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from flame.core.columns import Column
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.projection.project import project
from flame.core.projection.selection import Selection

NO_NAME = "[empty]"
"""A frame without a name, which some viewers drop or leave blank."""

_AT_ONCE = 1 << 14
"""Nodes whose numbers are objects at the same time."""

T = TypeVar("T")


def weighed_stacks(
    tree: StackTree, spell: Callable[[Column], Iterable[T]]
) -> Iterator[tuple[list[T], int]]:
    """Yield every stack with a value of its own, and that value, in the order of the tree.

    A stack is what ``spell`` makes of its frames, from the outermost in, without the tree's root;
    what belongs to the root itself comes as the empty stack. The values add up to the root's total.
    The list is the same one each time: copy it to keep it. One pass over the nodes, however deep
    they lie.
    """
    stack: list[T] = []
    if tree.own[0]:
        yield stack, int(tree.own[0])
    for low in range(1, len(tree), _AT_ONCE):
        part = slice(low, low + _AT_ONCE)
        columns = spell(tree.frame[part]), tree.depth[part].tolist(), tree.own[part].tolist()
        for frame, depth, own in zip(*columns, strict=True):
            del stack[depth - 1 :]
            stack.append(frame)
            if own:
                yield stack, own


def metric_trees(profile: Profile, selection: Selection, first: StackTree) -> list[StackTree]:
    """Project ``profile`` for each metric that is not zero, after ``first``, that of ``selection``.

    The others measure the same activities on the same levels, but for those that are made only when
    they are asked for. ``first`` is always there. Raises as `project.project`.
    """
    trees = [first]
    for metric in profile.metrics:
        if metric.table == first.metric.table and metric != first.metric and not metric.when_asked:
            tree = project(profile, replace(selection, metric=metric.key))
            if tree.own.any():
                trees.append(tree)
    return trees


def fraction_digits(unit: str) -> int:
    """Return how many digits after the point values have: k of the unit ``1e-k``, else 0."""
    return int(unit.removeprefix("1e-")) if unit.startswith("1e-") else 0


def encodable(text: str) -> str:
    """Spell out in ASCII every lone surrogate in ``text``, which UTF-8 cannot hold."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
