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
from flame.core.model.metrics import metric_of
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree, subtree_sums
from flame.core.operators.work import OperatorWork, SharedWork
from flame.core.projection.filters import Filter
from flame.core.projection.weights import row_indices

_GPU_TIME = metric_of("gpu")

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


def count_operators(profile: Profile, rows: I8 | None = None) -> WorkCounts | None:
    """Count the work of ``rows`` of the activities (None: all) by operator: a row for each frame.

    Times are of the kernels of operators with a formula alone. None where nothing tells of work.
    """
    if profile.work is None:
        return None
    if rows is None or len(rows) == len(profile.activities):
        return _of_all_operators(profile)
    return count_by_operator(
        profile, profile.work, profile.work.shared_once(), _mask(profile, rows)
    )


@kept
def _of_all_operators(profile: Profile) -> WorkCounts:
    work = profile.work
    assert work is not None
    known = work.known
    if known is None:
        return count_by_operator(profile, work, work.shared_once())
    counts = WorkCounts.of_columns(known.sums, known.memory_known)
    return counts.map(lambda column: sum_by(known.frames, column, len(profile.frames)))


def count_by_operator(
    profile: Profile, work: OperatorWork, shared: SharedWork, chosen: Bool | None = None
) -> WorkCounts:
    """Count the ``shared`` work of the ``chosen`` activities (bool[n]; None: all) by operator.

    That is ``work`` of ``profile``, which does not keep it for this.
    """
    size = len(profile.frames)
    return _add_up(profile, work, shared, chosen, lambda part: shared.operator[part], size)


def whole_of(profile: Profile, operators: WorkCounts, rows: I8 | None = None) -> WorkCounts:
    """Count the work of ``rows`` of the activities (None: all), which is that of ``operators``.

    One row.
    """
    counts = operators.map(lambda column: column.sum(keepdims=True))
    return replace(counts, kernel_ns=np.array([_kernel_time(profile, rows)]))


def _kernel_time(profile: Profile, rows: I8 | None) -> int:
    table = profile.activities
    if rows is None or len(rows) == len(table):
        times, _ = profile.totals_by_group(_GPU_TIME)
        return int(times.sum(where=table.groups.kind == Kind.KERNEL))
    return int(table.duration[rows].sum(where=table.kind[rows] == Kind.KERNEL))


def _of_groups(profile: Profile, tree: StackTree, filters: tuple[Filter, ...]) -> WorkCounts | None:
    work, table = profile.work, profile.activities
    if tree.metric.table != "gpu" or tree.parts or work is None:
        return None
    rows, group = row_indices(profile, table, filters), table.groups.of_row
    own = (group, table.duration) if rows is None else (group[rows], table.duration[rows])
    times = sum_by(*own, len(table.groups))
    chosen = None if rows is None else _mask(profile, rows)
    shared = work.shared
    counts = _add_up(
        profile, work, shared, chosen, lambda part: group[shared.rows[part]], len(times)
    )
    return replace(counts, kernel_ns=np.where(table.groups.kind == Kind.KERNEL, times, 0))


def _mask(profile: Profile, rows: I8) -> Bool:
    chosen = np.zeros(len(profile.activities), bool)
    chosen[rows] = True
    return chosen


def _add_up(
    profile: Profile,
    work: OperatorWork,
    shared: SharedWork,
    chosen: Bool | None,
    place: Callable[[slice], Column],
    size: int,
) -> WorkCounts:
    """Add up the ``shared`` work of the ``chosen`` activities (None: all) by a ``place``.

    ``place`` tells it of a slice of those with any; it is below ``size``.
    """
    found = WorkCounts.none(size, work.memory_known)
    for begin in range(0, len(shared.rows), _AT_ONCE):
        part = slice(begin, begin + _AT_ONCE)
        at, counts = place(part), of_covered(profile, work, shared, part)
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


def of_covered(
    profile: Profile, work: OperatorWork, shared: SharedWork, part: slice = slice(None)
) -> WorkCounts:
    """Count the ``shared`` work of each activity alone, of a ``part`` of those with any."""
    duration = profile.activities.duration
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
