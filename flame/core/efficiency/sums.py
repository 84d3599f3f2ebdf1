"""Add up the work of activities by operator, group, node and frame, exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from flame.core.analysis.frame_totals import outermost_by_frame
from flame.core.columns import I8, Bool, Column, is_any, sum_by
from flame.core.efficiency.overlaps import overlapped_times
from flame.core.efficiency.work_counts import WorkCounts
from flame.core.kept_results import kept
from flame.core.model.activities import repeat
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree, subtree_sums
from flame.core.operators.work import SharedWork
from flame.core.projection.filters import Filter
from flame.core.projection.weights import row_indices

_AT_ONCE = 1 << 18
"""Activities that are added up at once: more take more memory, and no less time."""


def count_nodes(
    profile: Profile, tree: StackTree, filters: tuple[Filter, ...] = ()
) -> WorkCounts | None:
    """Count the work below each node of ``tree``, which `project` made with ``filters``.

    ``profile`` is the one that was projected. None where nothing tells of work (see
    `Profile.work`), where the tree is of something else than activities of GPUs, and where it
    splits these into parts.
    """
    groups = _of_groups(profile, tree, filters)
    if groups is None:
        return None
    inside = np.flatnonzero(tree.node_of_group >= 0)
    node = tree.node_of_group[inside]

    def of_nodes(column: I8) -> I8:
        return subtree_sums(sum_by(node, column[inside], len(tree)), tree.end)

    return groups.map(of_nodes)


def count_frames(
    profile: Profile, tree: StackTree, filters: tuple[Filter, ...] = ()
) -> WorkCounts | None:
    """Count the work below each frame of ``tree``: rows as those of `frame_totals`.

    Recursion is counted once. None as of `count_nodes`.
    """
    nodes = count_nodes(profile, tree, filters)
    if nodes is None:
        return None
    size = len(tree.text)
    used = np.flatnonzero(np.bincount(tree.frame[1:], minlength=size))
    node, frame = outermost_by_frame(tree)
    return nodes.map(lambda column: sum_by(frame, column[node], size)[used])


def count_whole(
    profile: Profile, filters: tuple[Filter, ...] = (), rows: I8 | None = None
) -> WorkCounts | None:
    """Count the work of all that passes ``filters`` on single activities, one row.

    ``rows`` says which activities these are, whatever the filters are. None where nothing tells of
    work.
    """
    chosen = row_indices(profile, profile.activities, filters) if rows is None else rows
    operators = count_operators(profile, chosen)
    return None if operators is None else whole_of(profile, operators, chosen)


def count_operators(profile: Profile, rows: I8 | None = None) -> WorkCounts | None:
    """Count the work of ``rows`` of the activities (None: all) by operator: a row for each frame.

    Times are of the kernels of operators with a formula alone. None where nothing tells of work.
    """
    if profile.work is None:
        return None
    if rows is None or len(rows) == len(profile.activities):
        return _of_all_operators(profile)
    return _of_operators(profile, profile.work.shared_once(), _mask(profile, rows))


@kept
def _of_all_operators(profile: Profile) -> WorkCounts:
    assert profile.work is not None
    return _of_operators(profile, profile.work.shared_once(), None)


def _of_operators(profile: Profile, shared: SharedWork, chosen: Bool | None) -> WorkCounts:
    return _add_up(profile, shared, chosen, lambda part: shared.operator[part], len(profile.frames))


def whole_of(profile: Profile, operators: WorkCounts, rows: I8 | None = None) -> WorkCounts:
    """Count the work of ``rows`` of the activities, one row, which is that of ``operators``."""
    table = profile.activities
    kind, duration = table.kind, table.duration
    if rows is not None and len(rows) < len(table):
        kind, duration = kind[rows], duration[rows]
    counts = operators.map(lambda column: column.sum(keepdims=True))
    kernels = duration.sum(where=kind == Kind.KERNEL, keepdims=True)
    return replace(counts, kernel_ns=kernels)


def _of_groups(profile: Profile, tree: StackTree, filters: tuple[Filter, ...]) -> WorkCounts | None:
    work, table = profile.work, profile.activities
    if tree.metric.table != "gpu" or tree.parts or work is None:
        return None
    rows, group = row_indices(profile, table, filters), table.groups.of_row
    own = (group, table.duration) if rows is None else (group[rows], table.duration[rows])
    times = sum_by(*own, len(table.groups))
    chosen = None if rows is None else _mask(profile, rows)
    shared = work.shared
    counts = _add_up(profile, shared, chosen, lambda part: group[shared.rows[part]], len(times))
    return replace(counts, kernel_ns=np.where(table.groups.kind == Kind.KERNEL, times, 0))


def _mask(profile: Profile, rows: I8) -> Bool:
    chosen = np.zeros(len(profile.activities), bool)
    chosen[rows] = True
    return chosen


def _add_up(
    profile: Profile,
    shared: SharedWork,
    chosen: Bool | None,
    place: Callable[[slice], Column],
    size: int,
) -> WorkCounts:
    """Add up the ``shared`` work of the ``chosen`` activities (None: all) by a ``place``.

    ``place`` tells it of a slice of those with any; it is below ``size``.
    """
    assert profile.work is not None
    found = WorkCounts.none(size, profile.work.memory_known)
    for begin in range(0, len(shared.rows), _AT_ONCE):
        part = slice(begin, begin + _AT_ONCE)
        at, counts = place(part), of_covered(profile, shared, part)
        if chosen is not None:
            inside = np.flatnonzero(chosen[shared.rows[part]])
            at, counts = at[inside], counts.map(partial(_some, inside))
        found = found.plus(counts.map(partial(_sum, at, size=size)))
    return found


def _some(rows: I8, column: I8) -> I8:
    """Take ``rows`` of a column, which stays one value where it is no more than that."""
    return column[: len(rows)] if column.strides == (0,) else column[rows]


def _sum(place: Column, column: I8, size: int) -> I8:
    """Sum a column by ``place``, which is soon done where it is nothing but 0."""
    if column.strides == (0,) and not column[:1].any():
        return np.zeros(size, np.int64)
    return sum_by(place, column, size)


def of_covered(profile: Profile, shared: SharedWork, part: slice = slice(None)) -> WorkCounts:
    """Count the ``shared`` work of each activity alone, of a ``part`` of those with any."""
    work, duration = profile.work, profile.activities.duration
    assert work is not None
    rows, rating = shared.rows[part], work.rate(shared, part)
    time, ones, none = (
        duration[rows],
        repeat(np.int64(1), len(rows)),
        repeat(np.int64(0), len(rows)),
    )
    is_rated = bool(rating.rated.any())
    rated_ns = time * rating.rated if is_rated else none
    causal = [frame for frame, cost in work.costs.items() if cost.causal] if is_rated else []
    return WorkCounts(
        kernel_ns=time,
        covered=ones,
        covered_ns=time,
        flops=shared.flops[part],
        bytes=shared.bytes[part],
        rated=rating.rated.astype(np.int64) if is_rated else none,
        rated_ns=rated_ns,
        compute_ps=rating.compute_ps,
        fast_compute_ps=rating.fast_compute_ps,
        memory_ps=rating.memory_ps,
        bound_ps=np.maximum(rating.compute_ps, rating.memory_ps) if is_rated else none,
        fast_bound_ps=np.maximum(rating.fast_compute_ps, rating.memory_ps) if is_rated else none,
        overlapped_ns=overlapped_times(profile)[rows] * rating.rated if is_rated else none,
        causal_ns=rated_ns * is_any(shared.operator[part], causal) if causal else none,
        waste=rating.waste,
        memory_known=work.memory_known,
    )
