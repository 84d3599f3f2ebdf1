"""Check that a summary holds together, whoever has written it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from flame.core.columns import Bool, Column, sum_by
from flame.core.frame import Kind
from flame.core.rank_summary.collective_table import COLUMNS, CollectiveTable
from flame.core.rank_summary.content_hash import is_ascending
from flame.core.rank_summary.duration_histogram import BINS, MOST_BIN
from flame.core.rank_summary.summary import FRAMES, METRICS, STACKS, RankSummary

_MOST = float(1 << 62)
_COUNT = METRICS.index("count")


def holds_together(summary: RankSummary) -> bool:
    """Tell whether all places are there, all orders right, and all sums as they must be.

    Columns have the lengths that they must have.
    """
    return (
        _has_ranks_in_order(summary)
        and _has_groups(summary)
        and _has_cells(summary)
        and _has_sums(summary)
        and _has_bins(summary)
        and _has_collectives(summary.collectives)
    )


def _has_ranks_in_order(summary: RankSummary) -> bool:
    names = [(one.rank, one.path) for one in summary.info]
    lengths = all(len(one.step_numbers) == len(one.step_times) for one in summary.info)
    in_order = all(before < after for before, after in pairwise(names))
    known = all(0 <= one.rank < 1 << 31 for one in summary.info)
    lost_in_order = all(before < after for before, after in pairwise(summary.lost))
    return lengths and in_order and known and lost_in_order


def _has_groups(summary: RankSummary) -> bool:
    groups, frames, stacks = summary.groups, len(summary.frames), len(summary.stack_hash)
    return (
        all(map(is_ascending, (summary.frame_hash, summary.stack_hash, summary.group_hash)))
        and _are_within(groups.kind, 0, len(Kind))
        and all(_are_within(column, 0, 2) for column in (groups.launched, groups.host))
        and all(_are_within(getattr(groups, name), -1, stacks) for name in STACKS)
        and all(_are_within(getattr(groups, name), -1, frames) for name in FRAMES)
        and bool((summary.shortest >= 0).all() and (summary.longest >= summary.shortest).all())
        and bool(np.isin(summary.longest_rank, summary.rank).all())
    )


def _has_cells(summary: RankSummary) -> bool:
    """Whether the cells of each rank are of groups that are there, in their order."""
    start, group = summary.cell_start, summary.cell_group
    if start[0] != 0 or start[-1] != len(group) or (np.diff(start) < 0).any():
        return False
    rising = np.append(True, group[1:] > group[:-1])
    rising[start[:-1][start[:-1] < len(group)]] = True
    return _are_within(group, 0, len(summary.group_hash)) and bool(rising[: len(group)].all())


def _has_sums(summary: RankSummary) -> bool:
    """Whether ranks and groups have one total, and cells no more than these."""
    total, of_ranks = summary.total, summary.rank_total
    if not all(map(_can_be_added, (*total, *of_ranks, *summary.cell))):
        return False
    rank = np.repeat(np.arange(len(summary)), np.diff(summary.cell_start))
    for row, values in enumerate(summary.cell):
        by_group = sum_by(summary.cell_group, values, total.shape[1])
        by_rank = sum_by(rank, values, of_ranks.shape[1])
        if (by_group > total[row]).any() or (by_rank > of_ranks[row]).any():
            return False
    return bool((total.sum(axis=1) == of_ranks.sum(axis=1)).all())


def _can_be_added(values: Column) -> bool:
    """Whether no value is negative, and no sum of them too large."""
    return bool((values >= 0).all()) and float(values.sum(dtype=np.float64)) < _MOST


def _has_bins(summary: RankSummary) -> bool:
    """Whether the bins are in order, and have all activities of each group."""
    group, bins, counts = summary.bin_group, summary.bin, summary.bin_count
    size = len(summary.group_hash)
    if not (_are_within(group, 0, size) and _are_within(bins, -1, MOST_BIN + 1)):
        return False
    key = group.astype(np.int64) * BINS + bins
    if not (key[1:] > key[:-1]).all() or not _can_be_added(counts) or not (counts > 0).all():
        return False
    return bool((sum_by(group, counts, size) == summary.total[_COUNT]).all())


def _has_collectives(table: CollectiveTable) -> bool:
    """Whether the collectives are in order, each once."""
    communicator, ordinal = table.communicator, table.ordinal
    if len({len(getattr(table, name)) for name in COLUMNS}) > 1:
        return False
    later: Bool = communicator[1:] > communicator[:-1]
    later |= (communicator[1:] == communicator[:-1]) & (ordinal[1:] > ordinal[:-1])
    names = (*pairwise(table.communicators), *pairwise(table.kinds))
    return bool(later.all()) and all(before < after for before, after in names)


def _are_within(column: Column, low: int, end: int) -> bool:
    return bool(((column >= low) & (column < end)).all())
