"""The columnar stack tree: preorder columns, widest child first, and thin node views."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from flame.core.columns import I4, I8, Bool, sum_by
from flame.core.frames import FrameTable, Kind
from flame.core.metrics import Metric


@dataclass(frozen=True)
class StackTree:
    """A weighted tree of frames in preorder; node 0 is the root.

    | column | dtype | meaning |
    |---|---|---|
    | parent | i4 | parent's node, -1 for the root; always below the node's own index |
    | frame | i4 | frame id, into ``frames`` and ``text`` |
    | depth | i4 | 0 for the root |
    | end | i4 | one past the last node of the subtree |
    | own | i8 | the metric of activities that end exactly here |
    | own_count | i8 | their number |
    """

    frames: FrameTable
    text: tuple[str, ...]
    metric: Metric
    levels: tuple[str, ...]
    parent: I4
    frame: I4
    depth: I4
    end: I4
    own: I8
    own_count: I8

    def __len__(self) -> int:
        return len(self.parent)

    @cached_property
    def total(self) -> I8:
        """Inclusive metric per node, i8[n]."""
        return _subtree_sums(self.own, self.end)

    @cached_property
    def count(self) -> I8:
        """Inclusive number of activities per node, i8[n]."""
        return _subtree_sums(self.own_count, self.end)

    @cached_property
    def x(self) -> I8:
        """Left edge of every node in metric units from the root's left edge.

        A node's own value comes before its children's, so that preorder is drawing order.
        """
        return np.cumsum(self.own) - self.own

    @cached_property
    def rows(self) -> tuple[I8, ...]:
        """Nodes of each depth, left to right."""
        order = np.argsort(self.depth, kind="stable")
        bounds = np.cumsum(np.bincount(self.depth))
        return tuple(np.split(order, bounds[:-1]))

    @cached_property
    def root(self) -> Node:
        """The root as a node view."""
        return Node(self, 0)

    def name(self, node: int) -> str:
        """Display name of ``node``."""
        return self.text[int(self.frame[node])]

    def kind(self, node: int) -> Kind:
        """Kind of ``node``'s frame."""
        return self.frames[int(self.frame[node])].kind

    def children(self, node: int) -> list[int]:
        """Children of ``node``, widest first."""
        found = []
        child = node + 1
        while child < self.end[node]:
            found.append(child)
            child = int(self.end[child])
        return found

    def path(self, node: int) -> list[int]:
        """Nodes from the root down to ``node``, both included."""
        nodes = []
        while node >= 0:
            nodes.append(node)
            node = int(self.parent[node])
        return nodes[::-1]

    def names(self, node: int) -> tuple[str, ...]:
        """Display names from below the root down to ``node``."""
        return tuple(self.name(step) for step in self.path(node)[1:])

    def outermost(self, mask: Bool) -> Bool:
        """Of the nodes in ``mask`` (bool[n]), those below no other one: their totals add up.

        This is how recursion and nested matches are counted once.
        """
        reach = np.maximum.accumulate(np.where(mask, self.end, 0))
        before = np.concatenate([[0], reach[:-1]])
        return mask & (np.arange(len(self)) >= before)

    def find(self, names: tuple[str, ...]) -> int:
        """The deepest node along ``names`` from the root; the root where nothing matches."""
        node = 0
        for name in names:
            below = (child for child in self.children(node) if self.name(child) == name)
            found = next(below, None)
            if found is None:
                break
            node = found
        return node


@dataclass(frozen=True)
class Node:
    """A view of one tree node, made on demand."""

    tree: StackTree
    index: int

    @property
    def name(self) -> str:
        """Display name."""
        return self.tree.name(self.index)

    @property
    def kind(self) -> str:
        """Level of the frame, such as ``nvtx`` or ``kernel``."""
        return self.tree.kind(self.index).title

    @property
    def total(self) -> int:
        """Inclusive value in the metric's unit."""
        return int(self.tree.total[self.index])

    @property
    def self(self) -> int:
        """Value of activities that end exactly here."""
        return int(self.tree.own[self.index])

    @property
    def count(self) -> int:
        """Inclusive number of activities."""
        return int(self.tree.count[self.index])

    @property
    def children(self) -> list[Node]:
        """Children, widest first."""
        return [Node(self.tree, child) for child in self.tree.children(self.index)]

    def __iter__(self) -> Iterator[Node]:
        return iter(self.children)


def _subtree_sums(own: I8, end: I4) -> I8:
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(own)])
    sums: I8 = before[end] - before[:-1]
    return sums


@dataclass(frozen=True)
class Breadth:
    """Tree columns in breadth-first order (parents before children), as a projection makes them."""

    parent: I4
    frame: I4
    depth: I4
    own: I8
    own_count: I8

    def sums(self, values: I8) -> I8:
        """Inclusive sums of ``values`` per node."""
        result = values.copy()
        bounds = np.concatenate([[0], np.cumsum(np.bincount(self.depth))])
        for level in range(len(bounds) - 2, 0, -1):
            low, high = bounds[level], bounds[level + 1]
            above = bounds[level - 1]
            place = self.parent[low:high] - above
            result[above:low] += sum_by(place, result[low:high], int(low - above))
        return result

    def preorder(self) -> tuple[I8, I8]:
        """(old index of every new node, subtree size of every new node), widest child first."""
        total, size = self.sums(self.own), self.sums(np.ones(len(self.parent), np.int64))
        new = np.zeros(len(self.parent), np.int64)
        bounds = np.concatenate([[0], np.cumsum(np.bincount(self.depth))])
        for low, high in itertools.pairwise(bounds[1:]):
            order = low + np.lexsort(
                (self.frame[low:high], -total[low:high], self.parent[low:high])
            )
            parent = self.parent[order]
            before = np.cumsum(size[order]) - size[order]
            first = np.concatenate([[True], parent[1:] != parent[:-1]])
            base = before[first][np.cumsum(first) - 1]
            new[order] = new[parent] + 1 + before - base
        old = np.empty(len(new), np.int64)
        old[new] = np.arange(len(new))
        return old, size[old]


def in_preorder(
    columns: Breadth,
    frames: FrameTable,
    text: tuple[str, ...],
    metric: Metric,
    levels: tuple[str, ...],
) -> StackTree:
    """Lay breadth-first ``columns`` out as a `StackTree`."""
    old, size = columns.preorder()
    new = np.empty(len(old), np.int32)
    new[old] = np.arange(len(old), dtype=np.int32)
    above = columns.parent[old]
    parent = np.where(above >= 0, new[np.maximum(above, 0)], -1).astype(np.int32)
    end = (np.arange(len(old)) + size).astype(np.int32)
    return StackTree(
        frames,
        text,
        metric,
        levels,
        parent,
        columns.frame[old],
        columns.depth[old],
        end,
        columns.own[old],
        columns.own_count[old],
    )
