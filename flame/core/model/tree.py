"""The columnar stack tree: preorder columns, siblings in order, and thin node views."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from flame.core.columns import I4, I8, Bool, Column, sum_by
from flame.core.model.arrangement import Arrangement
from flame.core.model.frames import FrameTable, Kind
from flame.core.model.metrics import Metric

NO_GROUPS: I4 = np.zeros(0, np.int32)


@dataclass(frozen=True, eq=False)
class Parts:
    """Where groups end that have several ends: each is in a unit, whose parts are all ends of it.

    ``unit_of_group`` i8[groups], -1: filtered out. ``unit`` i8[parts]; ``node`` i4[parts], -1:
    filtered out.
    """

    unit_of_group: I8
    unit: I8
    node: I4

    @property
    def units(self) -> int:
        """Number of units."""
        return int(self.unit.max(initial=-1)) + 1

    def units_with(self, marked: Bool) -> Bool:
        """Whether a part of each unit ends in a node of ``marked`` (bool[nodes]), bool[units]."""
        found = np.zeros(self.units, bool)
        found[self.unit[np.append(marked, False)[self.node]]] = True
        return found


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

    ``node_of_group`` (i4) is the node where each group of the metric's table ends, -1 where it was
    filtered out; it is empty in a tree that is not a projection. Of a group that PC samples split
    it is the last node that all its ``parts`` have in common.
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
    arrangement: Arrangement = field(default_factory=Arrangement)
    node_of_group: I4 = field(default_factory=NO_GROUPS.copy, repr=False)
    parts: Parts | None = field(default=None, repr=False)

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
        """Children of ``node``, in the order of the tree's arrangement."""
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

    def part(self, node: int) -> StackTree:
        """Only the stacks through ``node``, whose ancestors stay as a chain above it."""
        above, end = self.path(node)[:-1], int(self.end[node])
        nodes = np.concatenate([above, np.arange(node, end)]).astype(np.int64)
        chain, below, shift = len(above), slice(node, end), len(above) - node
        own, own_count = self.own[nodes], self.own_count[nodes]
        own[:chain] = own_count[:chain] = 0
        return replace(
            self,
            parent=np.append(np.arange(-1, chain), self.parent[below][1:] + shift).astype(np.int32),
            frame=self.frame[nodes],
            depth=self.depth[nodes],
            end=np.append(np.full(chain, len(nodes)), self.end[below] + shift).astype(np.int32),
            own=own,
            own_count=own_count,
            node_of_group=NO_GROUPS,
            parts=None,
        )

    def with_units(self, unit_of_group: I8, unit: I8 | None) -> StackTree:
        """The same for groups in units, of which ``node_of_group`` was by part until now.

        ``unit`` (i8[parts]) is that of each part, None where a unit is a part.
        """
        node = self.node_of_group
        if unit is None:
            return replace(self, node_of_group=np.append(node, np.int32(-1))[unit_of_group])
        low, high = _range_of_units(unit, node)
        common = np.append(self._common(low, high), np.int32(-1))
        parts = Parts(unit_of_group, unit, node)
        return replace(self, node_of_group=common[unit_of_group], parts=parts)

    def _common(self, low: I4, high: I4) -> I4:
        """The last node above or at both ``low`` and ``high``, which are not before; -1 for -1."""
        node = low.copy()
        while True:
            short = (node >= 0) & (self.end[node] <= high)
            if not short.any():
                return node
            node[short] = self.parent[node[short]]

    def groups_below(self, marked: Bool) -> Bool:
        """The groups of which anything ends in a node of ``marked`` (bool[nodes])."""
        found: Bool = np.append(marked, False)[self.node_of_group]
        if self.parts:
            found |= np.append(self.parts.units_with(marked), False)[self.parts.unit_of_group]
        return found

    def outermost(self, mask: Bool) -> Bool:
        """Of the nodes in ``mask`` (bool[n]), those below no other one: their totals add up.

        This is how recursion and nested matches are counted once.
        """
        reach = np.maximum.accumulate(np.where(mask, self.end, 0))
        before = np.concatenate([[0], reach[:-1]])
        return mask & (np.arange(len(self)) >= before)

    def outermost_of(self, nodes: I8) -> I8:
        """The same of a list of ``nodes``, which ascend and may be none."""
        reach = np.maximum.accumulate(self.end[nodes])
        first = np.ones(len(nodes[:1]), bool)
        outer: I8 = nodes[np.concatenate([first, nodes[1:] >= reach[:-1]])]
        return outer

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
        """Children, in the order of the tree's arrangement."""
        return [Node(self.tree, child) for child in self.tree.children(self.index)]

    def __iter__(self) -> Iterator[Node]:
        return iter(self.children)


def _range_of_units(unit: I8, node: I4) -> tuple[I4, I4]:
    """The first and the last node of each unit's parts, -1 where all are filtered out."""
    size = int(unit.max(initial=-1)) + 1
    low, high = np.full(size, np.iinfo(np.int32).max, np.int32), np.full(size, -1, np.int32)
    there = node >= 0
    np.minimum.at(low, unit[there], node[there])
    np.maximum.at(high, unit[there], node[there])
    return np.where(high < 0, high, low), high


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
        for above, low, high in self._rows_upwards():
            place = self.parent[low:high] - above
            result[above:low] += sum_by(place, result[low:high], low - above)
        return result

    def minima(self, values: I8) -> I8:
        """The least of ``values`` at each node and below it."""
        result = values.copy()
        for _, low, high in self._rows_upwards():
            np.minimum.at(result, self.parent[low:high], result[low:high])
        return result

    def _rows_upwards(self) -> Iterator[tuple[int, int, int]]:
        """(first of the row above, first, end) of every row but the root's, the deepest first."""
        bounds = self.bounds()
        for row in range(len(bounds) - 2, 0, -1):
            yield bounds[row - 1], bounds[row], bounds[row + 1]

    def bounds(self) -> list[int]:
        """First node of every row, and the number of nodes."""
        ends: list[int] = np.cumsum(np.bincount(self.depth)).tolist()
        return [0, *ends]

    def preorder(self, key: I8 | None = None) -> tuple[I8, I8]:
        """(old index of every new node, subtree size of every new node).

        Siblings stand by ``key``, the least first, and those of one key widest first.
        """
        total, size = self.sums(self.own), self.sums(np.ones(len(self.parent), np.int64))
        new = np.zeros(len(self.parent), np.int64)
        within: list[Column] = [self.frame, -total] if key is None else [self.frame, -total, key]
        for low, high in itertools.pairwise(self.bounds()[1:]):
            order = low + np.lexsort([column[low:high] for column in (*within, self.parent)])
            parent = self.parent[order]
            before = np.cumsum(size[order]) - size[order]
            first = np.concatenate([[True], parent[1:] != parent[:-1]])
            base = before[first][np.cumsum(first) - 1]
            new[order] = new[parent] + 1 + before - base
        old = np.empty(len(new), np.int64)
        old[new] = np.arange(len(new))
        return old, size[old]


def by_depth(parent: Column, frame: Column, depth: Column) -> tuple[Breadth, I8]:
    """Nodes in any order, laid out breadth-first without values; and where each of them stands."""
    order = np.argsort(depth, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    above = np.where(parent >= 0, place[parent], -1)
    nothing = np.zeros(len(order), np.int64)
    above, frame, depth = (column[order].astype(np.int32) for column in (above, frame, depth))
    return Breadth(above, frame, depth, nothing, nothing), place


def in_preorder(
    columns: Breadth,
    frames: FrameTable,
    text: tuple[str, ...],
    metric: Metric,
    levels: tuple[str, ...],
    arrangement: Arrangement | None = None,
    key: I8 | None = None,
    node_of_group: Column = NO_GROUPS,
) -> StackTree:
    """Lay breadth-first ``columns`` out as a `StackTree`, siblings by ``key`` or else by weight.

    ``node_of_group`` refers to nodes of ``columns``; -1 stays -1.
    """
    old, size = columns.preorder(key)
    new = np.empty(len(old) + 1, np.int32)
    new[old] = np.arange(len(old), dtype=np.int32)
    new[-1] = -1
    return StackTree(
        frames,
        text,
        metric,
        levels,
        new[columns.parent[old]],
        columns.frame[old],
        columns.depth[old],
        (np.arange(len(old)) + size).astype(np.int32),
        columns.own[old],
        columns.own_count[old],
        arrangement or Arrangement(),
        new[node_of_group],
    )
