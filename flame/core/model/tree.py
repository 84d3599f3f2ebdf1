"""Hold a stack tree in preorder columns, siblings in order, with thin views of nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from flame.core.columns import I4, I8, Bool, order_by
from flame.core.errors import UsageError
from flame.core.lazy_dataclass import dataclass
from flame.core.model.frames import FrameTable, Kind
from flame.core.model.metrics import Metric
from flame.core.names.numbers import are_folded_alike
from flame.core.nearest import did_you_mean

Order = Literal["weight", "name", "start"]
ORDERS: tuple[Order, ...] = get_args(Order)

NO_GROUPS: I4 = np.zeros(0, np.int32)


@dataclass(frozen=True)
class TreeLayout:
    """Say how stacks become a tree: turned round, recursion collapsed, siblings in which order.

    ``inverted``: bottom-up, the leaf first; ``collapsed``: frames right below the same frame are
    left out. ``order`` is that of siblings: the widest first, by name (numbers by value), or by
    the first start of an activity below them.
    """

    inverted: bool = False
    collapsed: bool = False
    order: Order = "weight"

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            choices = ", ".join(ORDERS) + did_you_mean(self.order, ORDERS)
            raise UsageError(f"--sort: unknown order '{self.order}': choose from {choices}")


SHARES = ("unknown", "waiting", "transfer")
"""Parts of a group: what is not known to be of collectives that met, and what these did."""


@dataclass(frozen=True, eq=False)
class GroupParts:
    """Hold the nodes where groups end that PC samples, or waiting, split into parts.

    Groups that are split alike are one unit: ``unit_of_group`` i8[groups], -1: filtered out. Each
    part is of a unit and ends in a node: ``unit`` i8[parts]; ``node`` i4[parts], -1: filtered out.
    Where collectives are split ``share`` i8[parts] is which `SHARES` of its only group each is.
    """

    unit_of_group: I8
    unit: I8
    node: I4
    share: I8 | None = None

    @property
    def units(self) -> int:
        """Number of units."""
        return int(self.unit.max(initial=-1)) + 1

    def units_with(self, marked: Bool) -> Bool:
        """Tell which units have a part in a node of ``marked`` (bool[nodes]), bool[units]."""
        ending = np.zeros(self.units, bool)
        ending[self.unit[np.append(marked, False)[self.node]]] = True
        return ending


@dataclass(frozen=True)
class StackTree:
    """Hold a weighted tree of frames in preorder; node 0 is the root.

    | column | dtype | meaning |
    |---|---|---|
    | parent | i4 | parent's node, -1 for the root; always below the node's own index |
    | frame | i4 | frame id, into ``frames`` and ``text`` |
    | depth | i4 | 0 for the root |
    | end | i4 | one past the last node of the subtree |
    | own | i8 | the metric of activities that end exactly here |
    | own_count | i8 | their number |

    ``node_of_group`` (i4) is the node where each group of the metric's table ends, -1 where it was
    filtered out; it is empty in a tree that is not a projection. Of a group that is split it is the
    last node that all its ``parts`` have in common.
    """

    frames: FrameTable
    text: Sequence[str]
    metric: Metric
    levels: tuple[str, ...]
    parent: I4
    frame: I4
    depth: I4
    end: I4
    own: I8
    own_count: I8
    layout: TreeLayout = field(default_factory=TreeLayout)
    node_of_group: I4 = field(default_factory=NO_GROUPS.copy, repr=False)
    parts: GroupParts | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.parent)

    @cached_property
    def total(self) -> I8:
        """Inclusive metric per node, i8[n]."""
        return subtree_sums(self.own, self.end)

    @cached_property
    def count(self) -> I8:
        """Inclusive number of activities per node, i8[n]."""
        return subtree_sums(self.own_count, self.end)

    @cached_property
    def x(self) -> I8:
        """Left edge of every node in metric units from the root's left edge.

        A node's own value comes before its children's, so that preorder is drawing order.
        """
        return np.cumsum(self.own) - self.own

    @cached_property
    def rows(self) -> tuple[I8, ...]:
        """Nodes of each depth, left to right."""
        order = order_by([self.depth])
        bounds = np.cumsum(np.bincount(self.depth))
        return tuple(np.split(order, bounds[:-1]))

    @cached_property
    def root(self) -> Node:
        """View of the root."""
        return Node(self, 0)

    def name(self, node: int) -> str:
        """Get the display name of ``node``."""
        return self.text[int(self.frame[node])]

    def kind(self, node: int) -> Kind:
        """Get the kind of ``node``'s frame."""
        return self.frames[int(self.frame[node])].kind

    def children(self, node: int) -> list[int]:
        """List the children of ``node``, in the order of the tree's layout."""
        children = []
        child = node + 1
        while child < self.end[node]:
            children.append(child)
            child = int(self.end[child])
        return children

    def path(self, node: int) -> list[int]:
        """List the nodes from the root down to ``node``, both included."""
        nodes = []
        while node >= 0:
            nodes.append(node)
            node = int(self.parent[node])
        return nodes[::-1]

    def names(self, node: int) -> tuple[str, ...]:
        """List the display names from below the root down to ``node``."""
        return tuple(self.name(step) for step in self.path(node)[1:])

    def restrict_to(self, node: int) -> StackTree:
        """Keep only the stacks through ``node``, whose ancestors stay as a chain above it."""
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

    def assign_groups(
        self, unit_of_group: I8, unit: I8 | None, share: I8 | None = None
    ) -> StackTree:
        """Replace ``node_of_group``, which was by part until now, by that of groups in units.

        ``unit`` (i8[parts]) is that of each part, None where every unit is one part; ``share`` as
        in `GroupParts`.
        """
        node = self.node_of_group
        if unit is None:
            return replace(self, node_of_group=np.append(node, np.int32(-1))[unit_of_group])
        low, high = _range_of_units(unit, node)
        common = np.append(self._common_ancestor(low, high), np.int32(-1))
        parts = GroupParts(unit_of_group, unit, node, share)
        return replace(self, node_of_group=common[unit_of_group], parts=parts)

    def _common_ancestor(self, low: I4, high: I4) -> I4:
        """The last node above or at both ``low`` and ``high``, which are not before; -1 for -1."""
        node = low.copy()
        while True:
            short = (node >= 0) & (self.end[node] <= high)
            if not short.any():
                return node
            node[short] = self.parent[node[short]]

    def groups_below(self, marked: Bool) -> Bool:
        """Tell which groups have anything in a node of ``marked`` (bool[nodes]), bool[groups]."""
        below: Bool = np.append(marked, False)[self.node_of_group]
        if self.parts:
            below |= np.append(self.parts.units_with(marked), False)[self.parts.unit_of_group]
        return below

    def outermost(self, mask: Bool) -> Bool:
        """Keep the nodes in ``mask`` (bool[n]) that are below no other: their totals add up.

        This is how recursion and nested matches are counted once.
        """
        reach = np.maximum.accumulate(np.where(mask, self.end, 0))
        before = np.concatenate([[0], reach[:-1]])
        return mask & (np.arange(len(self)) >= before)

    def outermost_nodes(self, nodes: I8) -> I8:
        """Keep of ``nodes`` (ascending, may be empty) those below no other, as `outermost`."""
        reach = np.maximum.accumulate(self.end[nodes])
        first = np.ones(len(nodes[:1]), bool)
        outer: I8 = nodes[np.concatenate([first, nodes[1:] >= reach[:-1]])]
        return outer

    def find(self, names: tuple[str, ...]) -> int:
        """Find the deepest node along ``names`` from the root; the root where nothing matches.

        A name that is not there may be there with folded numbers or, if it has some itself,
        without: then at the widest such node.
        """
        node = 0
        for name in names:
            child = self._child_called(node, name)
            if child is None:
                break
            node = child
        return node

    def _child_called(self, node: int, name: str) -> int | None:
        children = self.children(node)
        same = (child for child in children if self.name(child) == name)
        if (child := next(same, None)) is not None:
            return child
        alike = (child for child in children if are_folded_alike(name, self.name(child)))
        return max(alike, key=self.total.__getitem__, default=None)


@dataclass(frozen=True)
class Node:
    """Show one node of a tree as an object, made on demand."""

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
        """Children, in the order of the tree's layout."""
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


def subtree_sums(own: I8, end: I4) -> I8:
    """Sum ``own`` over each node in preorder and all below it, up to ``end``; i8[n]."""
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(own)])
    sums: I8 = before[end] - before[:-1]
    return sums
