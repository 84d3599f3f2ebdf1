"""Align the trees of several runs: one tree with the paths of all, and columns of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from flame.core.columns import I4, I8, Column, distinct, sum_by
from flame.core.compare.common_frames import CommonFrames, join_frames
from flame.core.frame import Frame, Kind
from flame.core.lazy_dataclass import dataclass
from flame.core.model.frames import SMALLER
from flame.core.model.tree import NO_GROUPS, StackTree, TreeLayout, subtree_sums
from flame.core.projection.labels import Labels
from flame.core.projection.tree_builder import (
    BreadthFirst,
    lay_out_preorder,
    merge_small_siblings,
)

_REST = Frame(Kind.REST, SMALLER)
_ABSENT = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class UnionTree:
    """Hold the union of several trees: a node for every path that any of them has.

    ``tree.own`` and ``own_count`` are sums over all. ``own`` and ``own_count``, i8[trees, nodes],
    are of each; ``node`` is for each the node here of every node of its own (i4).
    """

    tree: StackTree
    own: I8
    own_count: I8
    node: tuple[I4, ...]

    def __len__(self) -> int:
        return len(self.tree)

    @cached_property
    def total(self) -> I8:
        """Inclusive metric of each tree, i8[trees, nodes]."""
        return np.stack([subtree_sums(own, self.tree.end) for own in self.own])

    @cached_property
    def count(self) -> I8:
        """Inclusive number of activities of each tree, i8[trees, nodes]."""
        return np.stack([subtree_sums(own, self.tree.end) for own in self.own_count])


def unite(
    trees: Sequence[StackTree],
    iterations: Sequence[Column],
    scale: Sequence[float],
    min_share: float = 0,
) -> UnionTree:
    """Unite ``trees``, at least one, all of the same metric, levels and layout.

    Nodes are the same whose frames are, from the root down (see `join_frames`, which takes the
    ``iterations`` of each tree). Values of a tree count ``scale`` times where siblings are put in
    order: the widest first is the one that is widest in any tree. Siblings of less than
    ``min_share`` percent of all are merged.
    """
    frames = join_frames(trees, iterations, [_REST] if min_share else [])
    nodes, place = _common_nodes(trees, frames)
    if min_share:
        pairs = zip(trees, place, scale, strict=True)
        scaled = [sum_by(at, tree.own, len(nodes)) * by for tree, at, by in pairs]
        nodes.own = np.rint(np.sum(scaled, axis=0)).astype(np.int64)
        nodes, now = merge_small_siblings(nodes, min_share, int(frames.of_others[0]))
        place = [now[at] for at in place]
    return _laid_out(trees, frames, nodes, place, scale)


def _common_nodes(
    trees: Sequence[StackTree], frames: CommonFrames
) -> tuple[BreadthFirst, list[Column]]:
    """Lay the union of ``trees`` out breadth-first, and say where each of their nodes is in it."""
    place = [np.zeros(len(tree), np.int32) for tree in trees]
    parents, names = [np.array([-1], np.int32)], [np.zeros(1, np.int32)]
    bits = len(frames.text).bit_length()
    size = 1
    for depth in range(1, max(len(tree.rows) for tree in trees)):
        rows = [tree.rows[depth] if depth < len(tree.rows) else NO_GROUPS for tree in trees]
        keys = [
            (at[tree.parent[row]].astype(np.int64) << bits) | common[tree.frame[row]]
            for tree, row, at, common in zip(trees, rows, place, frames.of_tree, strict=True)
        ]
        wanted, found = distinct(np.concatenate(keys))
        ends = np.cumsum([len(row) for row in rows])[:-1]
        for at, row, numbers in zip(place, rows, np.split(found, ends), strict=True):
            at[row] = numbers + size
        parents.append((wanted >> bits).astype(np.int32))
        names.append((wanted & ((1 << bits) - 1)).astype(np.int32))
        size += len(wanted)
    depth_of = np.repeat(np.arange(len(names), dtype=np.int32), [len(each) for each in names])
    nothing = np.zeros(size, np.int64)
    nodes = BreadthFirst(np.concatenate(parents), np.concatenate(names), depth_of, nothing, nothing)
    return nodes, [*place]


def _laid_out(
    trees: Sequence[StackTree],
    frames: CommonFrames,
    nodes: BreadthFirst,
    place: Sequence[Column],
    scale: Sequence[float],
) -> UnionTree:
    size, layout, last = len(nodes), trees[-1].layout, trees[-1]
    pairs = [*zip(trees, place, strict=True)]
    own = [sum_by(at, tree.own, size) for tree, at in pairs]
    own_count = [sum_by(at, tree.own_count, size) for tree, at in pairs]
    nodes.own, nodes.own_count = np.sum(own, axis=0), np.sum(own_count, axis=0)
    key = _sibling_key(layout, frames, nodes, own, pairs, scale)
    every = np.arange(size)
    tree = lay_out_preorder(
        nodes, frames.table, frames.text, last.metric, last.levels, layout, key, every
    )
    new = tree.node_of_group
    old = np.empty(size, np.int64)
    old[new] = every
    return UnionTree(
        replace(tree, node_of_group=NO_GROUPS),
        np.stack(own)[:, old],
        np.stack(own_count)[:, old],
        tuple(new[at] for at in place),
    )


def _sibling_key(
    layout: TreeLayout,
    frames: CommonFrames,
    nodes: BreadthFirst,
    own: Sequence[I8],
    pairs: Sequence[tuple[StackTree, Column]],
    scale: Sequence[float],
) -> I8:
    """Make the sort key of siblings, i8[nodes]: by width, name, or the last tree's order."""
    if layout.order == "name":
        return Labels(frames.text, NO_GROUPS).rank[nodes.frame]
    if layout.order == "start":
        first = np.full(len(nodes), _ABSENT)
        for behind, (tree, at) in enumerate(reversed(pairs)):
            np.minimum.at(first, at, (behind << 32) + np.arange(len(tree)))
        return first
    widths = [np.rint(nodes.sums(each) * by) for each, by in zip(own, scale, strict=True)]
    widest: I8 = -np.max(widths, axis=0).astype(np.int64)
    return widest
