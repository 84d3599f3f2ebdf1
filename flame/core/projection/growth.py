"""A tree grown from stacks, one step down for all of them at a time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from flame.core.columns import I8, Column, distinct, runs, sum_by
from flame.core.model.tree import Breadth, by_depth
from flame.core.projection.level_columns import Steps


def grow(stacks: Steps, value: I8, count: I8) -> tuple[Breadth, I8]:
    """The tree of ``stacks``, and the node at which each of all stacks ends (-1: not in it).

    ``value`` and ``count`` are by number of the stack, i8 each.
    """
    growth = _Growth(len(stacks.rows))
    for step in stacks.without_gaps().frames:
        growth.extend(step)
    columns, place = by_depth(*map(np.concatenate, zip(*growth.columns, strict=True)))
    node, size = place[growth.node], len(place)
    own, own_count = (sum_by(node, of[stacks.rows], size) for of in (value, count))
    node_of_row = np.full(len(value), -1, np.int64)
    node_of_row[stacks.rows] = node
    return replace(columns, own=own, own_count=own_count), node_of_row


class _Growth:
    """The nodes so far, and ``node``, where every stack has come to."""

    def __init__(self, stacks: int) -> None:
        self.node = np.zeros(stacks, np.int64)
        self.columns = [(np.array([-1]), np.array([0]), np.array([0]))]
        self._depth = np.zeros(1, np.int64)

    def extend(self, frame: Column) -> None:
        """Move every stack with ``frame`` >= 0 to the child with that frame."""
        rows = np.flatnonzero(frame >= 0)
        child = (self.node[rows] << 32) | frame[rows]
        # Stacks that PC samples split stand together, and all have the frames above in common.
        first = runs(child)
        wanted, place = distinct(child[first])
        parent = wanted >> 32
        depth = self._depth[parent] + 1
        self.columns.append((parent, wanted & 0xFFFFFFFF, depth))
        self.node[rows] = np.repeat(len(self._depth) + place, np.diff(np.append(first, len(rows))))
        self._depth = np.concatenate([self._depth, depth])
