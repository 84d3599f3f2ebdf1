"""The least share of the total that a subtree must have to be shown for itself."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np

from flame.core.columns import I8, Bool, sum_by
from flame.core.model.tree import Breadth, by_depth


def merge_smaller(columns: Breadth, percent: float, rest: int) -> tuple[Breadth, I8]:
    """Per parent, one node of frame ``rest`` for its subtrees of less than ``percent`` of all.

    One that is small alone among its siblings stays itself, and where one is ``rest`` already they
    go there. All sums stay what they were. Returns the tree and, for every node of ``columns``, the
    node that has its value now.
    """
    home = _home(columns, _cut(columns, percent))
    kept = np.flatnonzero(home < 0)
    parents, number = _numbers(columns, home, kept, rest)
    # -1 of the root finds the last place.
    above = np.append(number, -1)[np.append(columns.parent[kept], parents)]
    frame = np.append(columns.frame[kept], np.full(len(parents), rest))
    depth = np.append(columns.depth[kept], columns.depth[parents] + 1)
    merged, place = by_depth(above, frame, depth)
    now = place[number]
    own, own_count = (
        sum_by(now, values, len(frame)) for values in (columns.own, columns.own_count)
    )
    return replace(merged, own=own, own_count=own_count), now


def _numbers(columns: Breadth, home: I8, kept: I8, rest: int) -> tuple[I8, I8]:
    """Parents that get a node ``rest`` after those ``kept``, and where every node goes."""
    gone, there = np.flatnonzero(home >= 0), np.full(len(home), -1, np.int64)
    known = kept[columns.frame[kept] == rest]
    there[columns.parent[known]] = known
    goal = there[home[gone]]
    parents = np.unique(home[gone][goal < 0])
    number = np.empty(len(home), np.int64)
    number[kept] = np.arange(len(kept))
    new = len(kept) + np.searchsorted(parents, home[gone])
    number[gone] = np.where(goal < 0, new, number[goal])
    return parents, number


def _cut(columns: Breadth, percent: float) -> Bool:
    """Nodes whose subtree is small, as that of a sibling is too."""
    total = columns.sums(columns.own)
    small = total < percent * float(total[0]) / 100
    small[0] = False
    siblings = np.bincount(columns.parent[small], minlength=len(small))
    return small & (siblings[columns.parent] > 1)


def _home(columns: Breadth, cut: Bool) -> I8:
    """For nodes at or below one in ``cut``, the parent of the uppermost such one; -1 for others."""
    home = np.full(len(cut), -1, np.int64)
    bounds = columns.bounds()
    for low, high in itertools.pairwise(bounds[1:]):
        parent = columns.parent[low:high]
        own = np.where(cut[low:high], parent, -1)
        home[low:high] = np.where(home[parent] >= 0, home[parent], own)
    return home
