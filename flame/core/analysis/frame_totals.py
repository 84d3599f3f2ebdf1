"""Sum totals per frame over a whole tree, with recursion counted once; find percentiles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from flame.core.analysis.node_activities import NodeActivities
from flame.core.columns import I4, I8, expand_ranges, order_by, sum_by, unique
from flame.core.gpu_metrics.kernels import LaneRows
from flame.core.lazy_dataclass import dataclass
from flame.core.model.frames import PART_KINDS
from flame.core.model.tree import GroupParts, StackTree

if TYPE_CHECKING:
    from flame.core.analysis.node_activities import NodeActivities

PERCENTS = (50, 95, 99)
_AT_A_TIME = 1 << 22
"""Pairs of frame and activity that are sorted at a time: 32 MB."""


@dataclass(frozen=True, eq=False)
class FrameTotals:
    """Hold totals of every frame of a tree but the root's, in the order of their ids.

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
class Percentiles:
    """Hold percentiles of the activities below frames, i8 each, in the metric's unit; 0 of none.

    They are nearest-rank: values that occur, as in `flame.core.analysis.distribution`. Where they
    are ``estimated`` they are within 1 % of that, but for ``maximum``.
    """

    p50: I8
    p95: I8
    p99: I8
    maximum: I8
    estimated: bool = field(default=False, kw_only=True)


def outermost_by_frame(tree: StackTree) -> tuple[I8, I8]:
    """Find the nodes with no ancestor of the same frame: summing these counts recursion once.

    (nodes, their frames), by frame and in preorder.
    """
    node = order_by([tree.frame])
    frame = tree.frame[node].astype(np.int64)
    # Ends are lifted per frame, so that one running maximum serves all frames at once.
    lift = frame * (len(tree) + 1)
    reach = np.maximum.accumulate(tree.end[node] + lift)
    kept = np.concatenate([[True], node[1:] + lift[1:] >= reach[:-1]])
    return node[kept], frame[kept]


def frame_totals(tree: StackTree) -> FrameTotals:
    """Sum up the totals of every frame of ``tree``."""
    size = len(tree.text)
    places = np.bincount(tree.frame[1:], minlength=size)
    used = np.flatnonzero(places)
    node, frame = outermost_by_frame(tree)
    columns = (
        sum_by(frame, tree.total[node], size),
        sum_by(tree.frame, tree.own, size),
        sum_by(frame, tree.count[node], size),
        places,
    )
    return FrameTotals(used.astype(np.int32), *(column[used] for column in columns))


def heaviest_rows(sums: FrameTotals, most: int) -> list[int]:
    """List the rows of ``sums`` that weigh most themselves, at most so many, and anything."""
    heaviest = np.lexsort((-sums.total, -sums.own))[:most].tolist()
    return [row for row in heaviest if sums.own[row]]


def percentiles(activities: NodeActivities, values: I8, frames: I4) -> Percentiles:
    """Find percentiles of ``values`` (a value per row of the table) below ``frames`` (ascending).

    There are none of instructions and stall reasons, which have parts of activities.
    """
    order = order_by([values])
    rank = np.empty(len(values), np.int64)
    rank[order] = np.arange(len(values))
    slices = _slices(activities, frames)
    ranks = np.zeros((len(PERCENTS) + 1, len(frames)), np.int64)
    for part in _rows_of(activities, slices):
        count = slices.pairs[part.first : part.last]
        ranks[:, part.first : part.last] = _percentile_ranks(part, count, rank[part.row])
    return Percentiles(*np.where(slices.pairs, np.append(values[order], 0)[ranks], 0))


def rows_by_frame(activities: NodeActivities, frames: I4) -> Iterator[LaneRows]:
    """Collect the rows below each of ``frames`` (ascending), each once; many frames at a time.

    Lanes are places in ``frames``.
    """
    yield from _rows_of(activities, _slices(activities, frames))


def _rows_of(activities: NodeActivities, slices: _Slices) -> Iterator[LaneRows]:
    for first, last in _split_frames(slices.pairs):
        low, high = np.searchsorted(slices.frame, [first, last])
        start, size = slices.low[low:high], slices.size[low:high]
        lane = np.repeat(slices.frame[low:high], size)
        yield LaneRows(first, last, lane, activities.rows[expand_ranges(start, size)])


class _Slices(NamedTuple):
    """Slices of ``NodeActivities.rows`` that belong to frames: ``size`` rows from ``low`` on.

    ``frame`` is each slice's frame, by its place in the list asked for, ascending; ``pairs`` is per
    frame the number of its activities.
    """

    low: I8
    size: I8
    frame: I8
    pairs: I8


def _slices(activities: NodeActivities, frames: I4) -> _Slices:
    tree = activities.tree
    if tree.parts:
        first, frame = _units_below(tree, tree.parts)
        end = first + 1
    else:
        first, frame = outermost_by_frame(tree)
        end = tree.end[first].astype(np.int64)
    wanted = np.isin(frame, frames)
    low, place = activities.bounds[first[wanted]], np.searchsorted(frames, frame[wanted])
    size = activities.bounds[end[wanted]] - low
    return _Slices(low, size, place, sum_by(place, size, len(frames)))


def _units_below(tree: StackTree, parts: GroupParts) -> tuple[I8, I8]:
    """(units with any part below a frame, the frame), each pair once, by frame.

    Instructions and stall reasons have no units.
    """
    counted = np.isin(tree.frames.kind, PART_KINDS, invert=True)
    shown = np.flatnonzero(parts.node > 0)
    node, unit = parts.node[shown], parts.unit[shown]
    pairs = [np.zeros(0, np.int64)]
    while len(node):
        frame = tree.frame[node].astype(np.int64)
        pairs.append(unique((frame << 32 | unit)[counted[frame]]))
        above = tree.parent[node]
        node, unit = above[above > 0], unit[above > 0]
    keys = unique(np.concatenate(pairs))
    return keys & 0xFFFFFFFF, keys >> 32


def _split_frames(pairs: I8) -> Iterator[tuple[int, int]]:
    """Split the list of frames into stretches [first, last) of about `_AT_A_TIME` pairs."""
    before, first = np.cumsum(pairs) - pairs, 0
    while first < len(pairs):
        last = int(np.searchsorted(before, before[first] + _AT_A_TIME))
        yield first, max(last, first + 1)
        first = max(last, first + 1)


def _percentile_ranks(part: LaneRows, count: I8, rank: I8) -> I8:
    """The rank of each percentile, and of the maximum, of the frames of ``part``."""
    ordered = np.sort(((part.lane - part.first) << 32) | rank) & 0xFFFFFFFF
    before = np.cumsum(count) - count
    places = [before + (count * percent + 99) // 100 - 1 for percent in (*PERCENTS, 100)]
    # A frame without activities has no place: what stands there is not looked at.
    picked: I8 = np.append(ordered, 0)[np.maximum(places, 0)]
    return picked
