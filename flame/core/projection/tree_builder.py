"""Build the nodes of a tree from stacks, prune small subtrees, lay it out in preorder."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from flame.core.columns import I4, I8, Bool, Column, distinct, order_by, run_starts, sum_by, unique
from flame.core.lazy_dataclass import dataclass
from flame.core.model.frames import FrameTable
from flame.core.model.metrics import Metric
from flame.core.model.tree import NO_GROUPS, StackTree, TreeLayout
from flame.core.projection.filters import Filter, MinShare
from flame.core.projection.level_columns import StackColumns
from flame.core.projection.weights import Weights


def prune_small(
    nodes: BreadthFirst, node: Column, filters: Iterable[Filter], rest: int
) -> tuple[BreadthFirst, Column]:
    """Merge the small siblings that each `MinShare` of ``filters`` hides into frames ``rest``.

    ``node`` (-1: none) is where each stack ends; both are returned as they are afterwards.
    """
    for filter_ in filters:
        if isinstance(filter_, MinShare):
            nodes, now = merge_small_siblings(nodes, filter_.percent, rest)
            node = np.append(now, -1)[node]
    return nodes, node


def merge_small_siblings(
    columns: BreadthFirst, percent: float, rest: int
) -> tuple[BreadthFirst, I8]:
    """Merge, per parent, subtrees of less than ``percent`` of all into one node of frame ``rest``.

    The only small node among its siblings stays itself, and where a sibling is ``rest`` already
    they go there. All sums stay what they were. Returns the tree and, for every node of
    ``columns``, the node that has its value now.
    """
    parent = _merging_parents(columns, _small_siblings(columns, percent))
    kept = np.flatnonzero(parent < 0)
    parents, number = _number_nodes(columns, parent, kept, rest)
    # -1 of the root finds the last place.
    above = np.append(number, -1)[np.append(columns.parent[kept], parents)]
    frame = np.append(columns.frame[kept], np.full(len(parents), rest))
    depth = np.append(columns.depth[kept], columns.depth[parents] + 1)
    merged, place = sort_by_depth(above, frame, depth)
    now = place[number]
    own, own_count = (
        sum_by(now, values, len(frame)) for values in (columns.own, columns.own_count)
    )
    return replace(merged, own=own, own_count=own_count), now


def _number_nodes(columns: BreadthFirst, parent: I8, kept: I8, rest: int) -> tuple[I8, I8]:
    """Parents that get a node ``rest`` after those ``kept``, and where every node goes.

    ``parent`` is as `_merging_parents` gives it.
    """
    gone, rest_below = np.flatnonzero(parent >= 0), np.full(len(parent), -1, np.int64)
    existing = kept[columns.frame[kept] == rest]
    rest_below[columns.parent[existing]] = existing
    goal = rest_below[parent[gone]]
    parents = unique(parent[gone][goal < 0])
    number = np.empty(len(parent), np.int64)
    number[kept] = np.arange(len(kept))
    new = len(kept) + np.searchsorted(parents, parent[gone])
    number[gone] = np.where(goal < 0, new, number[goal])
    return parents, number


def _small_siblings(columns: BreadthFirst, percent: float) -> Bool:
    """Nodes whose subtree is small, as that of a sibling is too."""
    total = columns.sums(columns.own)
    small = total < percent * float(total[0]) / 100
    small[0] = False
    siblings = np.bincount(columns.parent[small], minlength=len(small))
    return small & (siblings[columns.parent] > 1)


def _merging_parents(columns: BreadthFirst, small: Bool) -> I8:
    """The parent of the uppermost ``small`` node at or above each node; -1 without one."""
    merging = np.full(len(small), -1, np.int64)
    bounds = columns.bounds()
    for low, high in itertools.pairwise(bounds[1:]):
        parent = columns.parent[low:high]
        own = np.where(small[low:high], parent, -1)
        merging[low:high] = np.where(merging[parent] >= 0, merging[parent], own)
    return merging


def build_nodes(stacks: StackColumns, weights: Weights) -> tuple[BreadthFirst, Column]:
    """Build the nodes of ``stacks``, and find the node at which each stack ends (-1: none).

    ``weights`` are by number of the stack.
    """
    builder = _NodeBuilder(len(stacks.rows))
    for step in stacks.close_gaps().frames:
        builder.extend(step)
    parent, frame, depth = builder.build()
    own_count = _narrow(_sum_stacks(builder, stacks, weights.activities, len(parent)))
    own = _sum_stacks(builder, stacks, weights.value, len(parent))
    node_of_row = np.full(len(weights.value), -1, np.int32)
    node_of_row[stacks.rows] = builder.node
    return BreadthFirst(parent, frame, depth, own, own_count), node_of_row


def _sum_stacks(builder: _NodeBuilder, stacks: StackColumns, values: Column, size: int) -> I8:
    """Sum ``values``, by number of the stack, per node; not copied where all stacks are left."""
    every = len(stacks.rows) == len(values)
    return sum_by(builder.node, values if every else values[stacks.rows], size)


def _narrow(counts: I8) -> Column:
    fits = counts.max() <= np.iinfo(np.int32).max
    return counts.astype(np.int32) if fits else counts


class _NodeBuilder:
    """The nodes so far, breadth first, and ``node``, where every stack has come to."""

    def __init__(self, stacks: int) -> None:
        self.node: I4 = np.zeros(stacks, np.int32)
        self._parents: list[I4] = [np.array([-1], np.int32)]
        self._frames: list[I4] = [np.array([0], np.int32)]
        self._size = 1

    def extend(self, frame: Column) -> None:
        """Move every stack with ``frame`` >= 0 to the child with that frame, one step down."""
        moved = frame >= 0
        rows = slice(None) if moved.all() else np.flatnonzero(moved)
        bits = int(frame.max(initial=0)).bit_length()
        child = self.node[rows].astype(np.int64) << bits
        child |= frame[rows]
        # Stacks that PC samples split stand together, and all have the frames above in common.
        first = run_starts(child)
        are_alone = len(first) == len(child)
        wanted, place = self._distinct(child if are_alone else child[first], bits)
        self._parents.append((wanted >> bits).astype(np.int32))
        self._frames.append((wanted & ((1 << bits) - 1)).astype(np.int32))
        place += self._size
        runs = np.diff(np.append(first, len(child)))
        self.node[rows] = place if are_alone else np.repeat(place, runs)
        self._size += len(wanted)

    def _distinct(self, child: I8, bits: int) -> tuple[I8, I8]:
        """Do as `distinct`; no two of as many stacks as nodes are at one: these need no sorting."""
        nodes = len(self._parents[-1])
        if len(child) > nodes:
            return distinct(child)
        at = (child >> bits) - (self._size - nodes)
        stacks = np.bincount(at, minlength=nodes)
        if stacks.max(initial=0) > 1:
            return distinct(child)
        place = (np.cumsum(stacks) - 1)[at]
        wanted = np.empty(len(child), np.int64)
        wanted[place] = child
        return wanted, place

    def build(self) -> tuple[I4, I4, I4]:
        """Return parent, frame and depth of the nodes; no more are added afterwards."""
        sizes = [len(parents) for parents in self._parents]
        depth = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        parent, frame = np.concatenate(self._parents), np.concatenate(self._frames)
        self._parents, self._frames = [], []
        return parent, frame, depth


@dataclass
class BreadthFirst:
    """Hold a tree's columns in breadth-first order (parents before children)."""

    parent: I4
    frame: I4
    depth: I4
    own: I8
    own_count: Column

    def __len__(self) -> int:
        return len(self.parent)

    def take(self, name: str) -> Column:
        """Take the column ``name`` out."""
        column: Column = getattr(self, name)
        setattr(self, name, column[:0].copy())
        return column

    def sums(self, values: Column) -> Column:
        """Sum ``values`` per node and all below it, in their own type."""
        result = values.copy()
        for above, low, high in self._rows_upwards():
            place = self.parent[low:high] - above
            result[above:low] += sum_by(place, result[low:high], low - above)
        return result

    def minima(self, values: I8) -> I8:
        """Find the least of ``values`` at each node and below it."""
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
        """List the first node of every row, and the number of nodes."""
        rows = np.arange(self.depth[-1] + 1, dtype=self.depth.dtype)
        ends: list[int] = np.searchsorted(self.depth, rows, "right").tolist()
        return [0, *ends]

    def preorder(self, key: I8 | None = None) -> tuple[I4, I8, I4]:
        """Find the preorder: (new index of every old node, old and subtree size of every new one).

        Behind the new ones stands -1. Siblings stand by ``key``, the least first, and those of
        equal keys widest first.
        """
        total, size = self.sums(self.own), self.sums(np.ones(len(self), np.int32))
        new = np.zeros(len(self) + 1, np.int32)
        new[-1] = -1
        within: list[Column] = [self.frame, total] if key is None else [self.frame, total, key]
        np.negative(total, out=total)
        for low, high in itertools.pairwise(self.bounds()[1:]):
            order = sort_siblings(self.parent[low:high], [column[low:high] for column in within])
            rows = slice(low, high) if order is None else order + low
            parent = self.parent[rows]
            place = new[parent] + 1
            first = np.concatenate([[True], parent[1:] != parent[:-1]])
            if not first.all():
                place += _before_each(size[rows], first)
            new[rows] = place
        del total, within
        old = np.empty(len(self), np.int64)  # numpy converts others at each use
        old[new[:-1]] = np.arange(len(self))
        return new, old, size[old]


def _before_each(sizes: I4, first: Bool) -> I4:
    """Sum the ``sizes`` of the siblings before each node; the ``first`` ones have none."""
    before = np.cumsum(sizes, dtype=np.int32)
    before -= sizes
    before -= before[first][np.cumsum(first, dtype=np.int32) - 1]
    return before


def sort_siblings(parent: Column, keys: Sequence[Column]) -> I8 | None:
    """Find the order of nodes by ``parent``, and of siblings by ``keys``, the last one first.

    None: as they are. Mostly parents are in order, and siblings by the first key: then only those
    siblings are sorted of which one is in the wrong place.
    """
    first = np.concatenate([[True], parent[1:] != parent[:-1]])
    in_order = not (parent[1:] < parent[:-1]).any()
    if in_order and first.all():
        return None
    if not in_order or (_out_of_order(keys[:1]) & ~first[1:]).any():
        return order_by([*keys, parent])
    wrong = _out_of_order(keys) & ~first[1:]
    if not wrong.any():
        return None
    order = np.arange(len(parent))
    family = np.cumsum(first) - 1
    mixed = np.zeros(int(family[-1]) + 1, bool)
    mixed[family[1:][wrong]] = True
    some = np.flatnonzero(mixed[family])
    order[some] = some[order_by([*(key[some] for key in keys[1:]), parent[some]])]
    return order


def _out_of_order(keys: Sequence[Column]) -> Bool:
    """Tell where a row of ``keys``, of which the last one counts most, is less than that before."""
    less: Bool = np.zeros(max(len(keys[0]) - 1, 0), bool)
    for key in keys:
        less = (key[1:] < key[:-1]) | ((key[1:] == key[:-1]) & less)
    return less


def sort_by_depth(parent: Column, frame: Column, depth: Column) -> tuple[BreadthFirst, I8]:
    """Lay nodes in any order out breadth-first, without values; and say where each stands then."""
    order = np.argsort(depth, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    above = np.where(parent >= 0, place[parent], -1)
    nothing = np.zeros(len(order), np.int64)
    above, frame, depth = (column[order].astype(np.int32) for column in (above, frame, depth))
    return BreadthFirst(above, frame, depth, nothing, nothing), place


def lay_out_preorder(
    columns: BreadthFirst,
    frames: FrameTable,
    text: Sequence[str],
    metric: Metric,
    levels: tuple[str, ...],
    layout: TreeLayout | None = None,
    key: I8 | None = None,
    node_of_group: Column = NO_GROUPS,
) -> StackTree:
    """Lay breadth-first ``columns`` out as a `StackTree`, siblings by ``key`` or else by weight.

    ``node_of_group`` refers to nodes of ``columns``; -1 stays -1. ``columns`` is used up: each of
    its columns is let go when it has been laid out, for two trees may be more than memory holds.
    """
    new, old, end = columns.preorder(key)
    end += np.arange(len(old), dtype=np.int32)  # it was the size
    parent, groups = new[columns.take("parent")[old]], new[node_of_group]
    del new
    return StackTree(
        frames,
        text,
        metric,
        levels,
        parent,
        columns.take("frame")[old],
        columns.take("depth")[old],
        end,
        columns.take("own")[old],
        columns.take("own_count")[old].astype(np.int64),
        layout or TreeLayout(),
        groups,
    )
