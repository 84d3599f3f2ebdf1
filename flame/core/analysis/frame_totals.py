"""Totals and percentiles per name over a whole tree, with recursion counted once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from flame.core.analysis.node_activities import Members
from flame.core.columns import I4, I8, Bool, stretches, sum_by
from flame.core.model.frames import SAMPLE_KINDS, Kind
from flame.core.model.tree import GroupParts, StackTree

PERCENTS = (50, 95, 99)
_AT_A_TIME = 1 << 22
"""Pairs of frame and activity that are sorted at a time: 32 MB."""


@dataclass(frozen=True)
class NameTotal:
    """One name of one kind: inclusive total, own value (metric units), and activities."""

    name: str
    kind: Kind
    total: int
    own: int
    count: int


@dataclass(frozen=True, eq=False)
class FrameTotals:
    """Every frame of a tree but the root's, in the order of their ids.

    ``frame`` is i4, all other columns are i8: inclusive ``total`` and ``count`` of activities with
    recursion counted once, ``own`` value, and the number of ``places`` in the tree.
    """

    frame: I4
    total: I8
    own: I8
    count: I8
    places: I8

    def __len__(self) -> int:
        return len(self.frame)


@dataclass(frozen=True, eq=False)
class Spread:
    """Percentiles of the activities below frames, i8 each, in the metric's unit; 0 of none.

    They are nearest-rank: values that occur, as in `flame.core.analysis.distribution`.
    """

    p50: I8
    p95: I8
    p99: I8
    maximum: I8


def outermost_of_name(tree: StackTree) -> Bool:
    """Nodes with no ancestor of the same frame: summing these counts recursion once, bool[n]."""
    result = np.zeros(len(tree), bool)
    result[_outermost(tree)[0]] = True
    return result


def _outermost(tree: StackTree) -> tuple[I8, I8]:
    """(nodes with no ancestor of the same frame, their frames), by frame and in preorder."""
    # Sorting keys of both is several times faster than sorting by two columns.
    keys = np.sort((tree.frame.astype(np.int64) << 32) | np.arange(len(tree)))
    node, frame = keys & 0xFFFFFFFF, keys >> 32
    # Ends are lifted per frame, so that one running maximum serves all frames at once.
    lift = frame * (len(tree) + 1)
    reach = np.maximum.accumulate(tree.end[node] + lift)
    kept = np.concatenate([[True], node[1:] + lift[1:] >= reach[:-1]])
    return node[kept], frame[kept]


def totals(tree: StackTree) -> FrameTotals:
    """Totals of every frame of ``tree``."""
    size = len(tree.text)
    places = np.bincount(tree.frame[1:], minlength=size)
    used = np.flatnonzero(places)
    node, frame = _outermost(tree)
    columns = (
        sum_by(frame, tree.total[node], size),
        sum_by(tree.frame, tree.own, size),
        sum_by(frame, tree.count[node], size),
        places,
    )
    return FrameTotals(used.astype(np.int32), *(column[used] for column in columns))


def top(tree: StackTree, kinds: tuple[Kind, ...] | None = None) -> list[NameTotal]:
    """Totals of every frame in ``tree``, largest first; only of ``kinds`` where given."""
    found = totals(tree)
    columns = (found.frame, found.total, found.own, found.count)
    rows = [
        NameTotal(tree.text[frame], tree.frames[frame].kind, *values)
        for frame, *values in zip(*(column.tolist() for column in columns), strict=True)
        if kinds is None or tree.frames[frame].kind in kinds
    ]
    return sorted(rows, key=lambda row: (-row.total, row.name))


def spread(members: Members, values: I8, frames: I4) -> Spread:
    """Percentiles of ``values`` (one per row of the table) below each of ``frames`` (ascending).

    There are none of instructions and stall reasons, which have parts of activities.
    """
    order = np.argsort(values)
    rank = np.empty(len(values), np.int64)
    rank[order] = np.arange(len(values))
    slices = _slices(members, frames)
    shape = (len(PERCENTS) + 1, len(frames))
    found = np.zeros(shape, np.int64)
    for first, last in _parts(slices.pairs):
        found[:, first:last] = _percentiles(slices, first, last, rank[members.rows])
    return Spread(*np.where(slices.pairs, np.append(values[order], 0)[found], 0))


class _Slices(NamedTuple):
    """Where in ``Members.rows`` the activities of frames lie: ``size`` of them from ``low`` on.

    ``of`` is each slice's frame, by its place in the list asked for, ascending; ``pairs`` is per
    frame the number of its activities.
    """

    low: I8
    size: I8
    of: I8
    pairs: I8


def _slices(members: Members, frames: I4) -> _Slices:
    tree = members.tree
    if tree.parts:
        first, frame = _units_below(tree, tree.parts)
        end = first + 1
    else:
        first, frame = _outermost(tree)
        end = tree.end[first].astype(np.int64)
    wanted = np.isin(frame, frames)
    low, of = members.bounds[first[wanted]], np.searchsorted(frames, frame[wanted])
    size = members.bounds[end[wanted]] - low
    return _Slices(low, size, of, sum_by(of, size, len(frames)))


def _units_below(tree: StackTree, parts: GroupParts) -> tuple[I8, I8]:
    """(units with any part below a frame, the frame), each pair once, by frame.

    Instructions and stall reasons have no units.
    """
    counted = np.isin(tree.frames.kind, SAMPLE_KINDS, invert=True)
    shown = np.flatnonzero(parts.node > 0)
    node, unit = parts.node[shown], parts.unit[shown]
    found = [np.zeros(0, np.int64)]
    while len(node):
        frame = tree.frame[node].astype(np.int64)
        found.append(np.unique((frame << 32 | unit)[counted[frame]]))
        above = tree.parent[node]
        node, unit = above[above > 0], unit[above > 0]
    keys = np.unique(np.concatenate(found))
    return keys & 0xFFFFFFFF, keys >> 32


def _parts(pairs: I8) -> Iterator[tuple[int, int]]:
    """Cuts the list of frames into parts [first, last) of about `_AT_A_TIME` pairs."""
    before, first = np.cumsum(pairs) - pairs, 0
    while first < len(pairs):
        last = int(np.searchsorted(before, before[first] + _AT_A_TIME))
        yield first, max(last, first + 1)
        first = max(last, first + 1)


def _percentiles(slices: _Slices, first: int, last: int, rank: I8) -> I8:
    """The rank of each percentile, and of the maximum, for frames [first, last)."""
    low, high = np.searchsorted(slices.of, [first, last])
    start, size = slices.low[low:high], slices.size[low:high]
    of = np.repeat(slices.of[low:high] - first, size)
    ordered = np.sort((of << 32) | rank[stretches(start, size)]) & 0xFFFFFFFF
    count = slices.pairs[first:last]
    before = np.cumsum(count) - count
    places = [before + (count * percent + 99) // 100 - 1 for percent in (*PERCENTS, 100)]
    # A frame without activities has no place: what stands there is not looked at.
    picked: I8 = np.append(ordered, 0)[np.maximum(places, 0)]
    return picked
