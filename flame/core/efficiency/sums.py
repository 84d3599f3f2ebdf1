"""Add up the work of activities by group, node and frame, exactly."""

from __future__ import annotations

import numpy as np

from flame.core.analysis.frame_totals import outermost_by_frame
from flame.core.columns import I8, sum_by
from flame.core.efficiency.overlaps import overlapped_times
from flame.core.efficiency.work_counts import WorkCounts
from flame.core.kept_results import kept
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree, subtree_sums
from flame.core.projection.filters import Filter
from flame.core.projection.weights import row_indices


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
    if profile.work is None:
        return None
    chosen = row_indices(profile, profile.activities, filters) if rows is None else rows
    take = slice(None) if chosen is None else chosen
    return of_rows(profile).map(lambda column: column[take].sum(keepdims=True))


def _of_groups(profile: Profile, tree: StackTree, filters: tuple[Filter, ...]) -> WorkCounts | None:
    if tree.metric.table != "gpu" or tree.parts or profile.work is None:
        return None
    table = profile.activities
    rows = row_indices(profile, table, filters)
    group, size = table.groups.of_row, len(table.groups)
    group = group if rows is None else group[rows]
    return of_rows(profile).map(
        lambda column: sum_by(group, column if rows is None else column[rows], size)
    )


@kept
def of_rows(profile: Profile) -> WorkCounts:
    """Count the work of each activity alone; there must be some work."""
    work, table = profile.work, profile.activities
    assert work is not None
    covered, rated, duration = work.operator >= 0, work.rated, table.duration
    causal = [frame for frame, cost in work.costs.items() if cost.causal]
    return WorkCounts(
        kernel_ns=np.where(table.kind == Kind.KERNEL, duration, 0),
        covered=covered.astype(np.int64),
        covered_ns=np.where(covered, duration, 0),
        flops=work.flops,
        bytes=work.bytes,
        rated=rated.astype(np.int64),
        rated_ns=np.where(rated, duration, 0),
        compute_ps=work.compute_ps,
        fast_compute_ps=work.fast_compute_ps,
        memory_ps=work.memory_ps,
        bound_ps=np.maximum(work.compute_ps, work.memory_ps),
        fast_bound_ps=np.maximum(work.fast_compute_ps, work.memory_ps),
        overlapped_ns=np.where(rated, overlapped_times(profile), 0),
        causal_ns=np.where(rated & np.isin(work.operator, causal), duration, 0),
        waste=work.waste,
        memory_known=work.memory_known,
    )
