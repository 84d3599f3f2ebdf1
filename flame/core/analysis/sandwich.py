"""Make the sandwich of a frame: merge all its callers into a tree, and all its callees.

The root of both trees is the frame, and both weigh what the frame weighs everywhere, recursion
counted once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from flame.core.columns import I4, I8, Column, distinct, expand_ranges, order_by, sum_by, unique
from flame.core.model.tree import NO_GROUPS, StackTree, TreeLayout
from flame.core.projection.tree_builder import BreadthFirst, lay_out_preorder


class _Level(NamedTuple):
    """A row of a forest: where each node's parent stands in the row before, and its columns."""

    above: I8
    frame: I4
    own: I8
    own_count: I8


def callers_of(tree: StackTree, frame: int) -> StackTree:
    """Merge the callers of ``frame``, which must have a node in ``tree``: the upper half.

    A node's children call it; the outermost frames end the chains, the root of the whole tree is
    left out. In an inverted tree the callers lie below: they are still the callers here.
    """
    return _below_all(tree, frame) if tree.layout.inverted else _above_all(tree, frame)


def callees_of(tree: StackTree, frame: int) -> StackTree:
    """Merge the callees of ``frame``, which must have a node in ``tree``: the lower half."""
    return _above_all(tree, frame) if tree.layout.inverted else _below_all(tree, frame)


def _above_all(tree: StackTree, frame: int) -> StackTree:
    return _merge(tree, _chains(tree, outermost_places(tree, frame)))


def _below_all(tree: StackTree, frame: int) -> StackTree:
    outer = outermost_places(tree, frame)
    return _subtree(tree, int(outer[0])) if len(outer) == 1 else _merge(tree, _below(tree, outer))


def outermost_places(tree: StackTree, frame: int) -> I8:
    """Find the nodes of ``frame`` that lie below no other node of it, in preorder."""
    return tree.outermost_nodes(np.flatnonzero(tree.frame == frame))


def merge_places(tree: StackTree, places: I8) -> StackTree:
    """Merge ``places``, all nodes of a frame (ascending, one at least), with their children below.

    The root weighs what the frame weighs everywhere, recursion counted once. What is below the
    children is theirs: work grows with the places and their children.
    """
    return _merge(tree, _family(tree, tree.outermost_nodes(places)))


def _family(tree: StackTree, outer: I8) -> Iterator[_Level]:
    """The nodes ``outer``, and their children with all that is below these."""
    own, own_count = tree.own[outer], tree.own_count[outer]
    yield _Level(np.zeros(len(outer), np.int64), tree.frame[outer], own, own_count)
    above, children = _children(tree, outer)
    yield _Level(above, tree.frame[children], tree.total[children], tree.count[children])


def _children(tree: StackTree, outer: I8) -> tuple[I8, I8]:
    """(place of its parent in ``outer``, node) of every child of nodes that are in no other."""
    found = [np.zeros((2, 0), np.int64)]
    depth, has_children = tree.depth[outer], tree.end[outer] > outer + 1
    for row in unique(depth[has_children]).tolist():
        places = np.flatnonzero(depth == row)
        nodes = tree.rows[row + 1]
        low = np.searchsorted(nodes, outer[places])
        size = np.searchsorted(nodes, tree.end[outer[places]]) - low
        found.append(np.stack((np.repeat(places, size), nodes[expand_ranges(low, size)])))
    above, children = np.concatenate(found, axis=1)
    return above, children


def _chains(tree: StackTree, outer: I8) -> Iterator[_Level]:
    """The ways up from ``outer``, which end below the root; each weighs what it starts with."""
    nodes, total, count = outer, tree.total[outer], tree.count[outer]
    above = np.zeros(len(outer), np.int64)
    while len(nodes):
        parent = tree.parent[nodes].astype(np.int64)
        goes_on = parent > 0
        own, own_count = np.where(goes_on, 0, total), np.where(goes_on, 0, count)
        yield _Level(above, tree.frame[nodes], own, own_count)
        above = np.flatnonzero(goes_on)
        nodes, total, count = parent[goes_on], total[goes_on], count[goes_on]


def _below(tree: StackTree, outer: I8) -> Iterator[_Level]:
    """The subtrees of ``outer``, row by row."""
    sizes = tree.end[outer] - outer
    nodes = expand_ranges(outer, sizes)
    depth = tree.depth[nodes] - np.repeat(tree.depth[outer], sizes)
    rows = np.split(nodes[order_by([depth])], np.cumsum(np.bincount(depth))[:-1])
    place = np.zeros(len(tree), np.int64)
    above = np.zeros(len(outer), np.int64)
    for row, following in zip(rows, [*rows[1:], outer[:0]], strict=True):
        yield _Level(above, tree.frame[row], tree.own[row], tree.own_count[row])
        place[row] = np.arange(len(row))
        above = place[tree.parent[following]]


def _merge(tree: StackTree, rows: Iterator[_Level]) -> StackTree:
    """Merge a forest into a tree: nodes with the same frame below the same merged node are one."""
    columns: list[tuple[Column, ...]] = []
    place, first = np.zeros(1, np.int64), -1
    for depth, row in enumerate(rows):
        wanted, node = distinct((place[row.above] << 32) | row.frame)
        size = len(wanted)
        own = [sum_by(node, values, size) for values in (row.own, row.own_count)]
        columns.append(((wanted >> 32) + first, wanted & 0xFFFFFFFF, np.full(size, depth), *own))
        place, first = node, first + len(columns[-2][0]) if depth else 0
    parent, frame, depths, own_value, own_count = map(np.concatenate, zip(*columns, strict=True))
    laid = BreadthFirst(
        parent.astype(np.int32),
        frame.astype(np.int32),
        depths.astype(np.int32),
        own_value,
        own_count,
    )
    return lay_out_preorder(laid, tree.frames, tree.text, tree.metric, tree.levels)


def _subtree(tree: StackTree, node: int) -> StackTree:
    """Take the subtree of ``node``, which becomes the root; nothing of it has to be merged."""
    below = slice(node, int(tree.end[node]))
    parent = tree.parent[below] - np.int32(node)
    parent[0] = -1
    return replace(
        tree,
        parent=parent,
        frame=tree.frame[below],
        depth=tree.depth[below] - tree.depth[node],
        end=tree.end[below] - np.int32(node),
        own=tree.own[below],
        own_count=tree.own_count[below],
        layout=TreeLayout(),
        node_of_group=NO_GROUPS,
        parts=None,
    )
