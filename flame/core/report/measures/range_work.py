"""Sum up what ran on the GPUs below ranges, as the tree shows it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.analysis.frame_totals import FrameTotals, frame_totals, outermost_by_frame
from flame.core.columns import I4, I8, sum_by, taken
from flame.core.kept_results import kept
from flame.core.model.frames import Kind
from flame.core.model.metrics import metric_of
from flame.core.model.tree import StackTree, subtree_sums
from flame.core.projection.level_columns import StackColumns, level_columns
from flame.core.projection.tree_builder import build_nodes, lay_out_preorder
from flame.core.report.measures.launching_calls import (
    first_rows,
    launch_numbers,
    launches_by_group,
)
from flame.core.report.scope import Scope


@kept
def shown_ranges(scope: Scope) -> I4:
    """Find what ranges are shown as, i4[frames], those of several domains apart."""
    shown = scope.labels.shown.copy()
    first: dict[tuple[int, str | None], int] = {}
    for at in np.flatnonzero(scope.profile.frames.kind == Kind.NVTX).tolist():
        key = int(shown[at]), scope.profile.frames[at].get("domain")
        shown[at] = first.setdefault(key, at)
    return shown


class RangeWork(NamedTuple):
    """Sum up what ran below ranges, recursion once: ``totals`` by shown frame, in ns.

    ``launches`` (i8[n]) counts the calls that launched it, ``idle`` is how long GPUs had been empty
    when it began, ns; ``widest`` is the place of each frame in ``tree``, the heaviest of several.
    """

    tree: StackTree
    totals: FrameTotals
    launches: I8
    idle: I8
    widest: I8


def range_work(scope: Scope, shown: I4) -> RangeWork:
    """Sum up the activities of ``scope`` by range, which are ``shown`` as these frames."""
    table = scope.shown.activities
    kept = np.flatnonzero(scope.weights.activities)
    columns = [np.asarray(one) for one in level_columns(scope.shown, table, kept, ("nvtx",), shown)]
    stacks = StackColumns(np.arange(len(kept)), tuple(columns))
    nodes, node = build_nodes(stacks, scope.weights.take(kept))
    metric = metric_of("gpu", scope.profile.metrics)
    frames, text = scope.profile.frames, scope.labels.text
    tree = lay_out_preorder(nodes, frames, text, metric, ("nvtx",), node_of_group=node)
    totals = frame_totals(tree)
    outer, frame = outermost_by_frame(tree)

    def by_frame(column: I8) -> I8:
        below = subtree_sums(sum_by(tree.node_of_group, column[kept], len(tree)), tree.end)
        return sum_by(frame, below[outer], len(text))[totals.frame]

    launches, idle = by_frame(_launches(scope)), by_frame(_idle(scope))
    return RangeWork(tree, totals, launches, idle, _widest(tree, outer, frame)[totals.frame])


def _widest(tree: StackTree, nodes: I8, frame: I8) -> I8:
    """The heaviest of the ``nodes`` of each frame, of equals the first, i8[frames]."""
    order = np.lexsort((-nodes, tree.total[nodes], frame))
    widest = np.zeros(len(tree.text), np.int64)
    widest[frame[order]] = nodes[order]
    return widest


def _launches(scope: Scope) -> I8:
    """Count the calls that launched anything, i8[groups]; each for the first that it launched."""
    table, groups = scope.profile.activities, scope.shown.activities.groups
    if len(scope.rows) == len(table) and groups.of_row is table.groups.of_row:
        return launches_by_group(scope)
    rows = scope.rows[table.launched[scope.rows]]
    first = first_rows(launch_numbers(scope.profile), rows)
    return np.bincount(groups.of_row[first], minlength=len(groups)).astype(np.int64)


def _idle(scope: Scope) -> I8:
    groups = scope.shown.activities.groups
    idle = taken(scope.profile.activities.idle, scope.rows)
    return sum_by(taken(groups.of_row, scope.rows), idle, len(groups))
