"""Check that a summary holds together, whoever has written it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from flame.core.columns import I8, Bool, Column, distinct, sum_by
from flame.core.frame import ACTIVITY_KINDS, Kind
from flame.core.rank_summary.collective_table import COLUMNS, CollectiveTable, IdentitySource
from flame.core.rank_summary.content_hash import is_ascending
from flame.core.rank_summary.duration_histogram import BINS, MOST_BIN
from flame.core.rank_summary.rank_communication import COLUMNS as OF_RANKS
from flame.core.rank_summary.rank_communication import RankCommunication
from flame.core.rank_summary.rank_waits import OF_GROUPS, RankWaitTable
from flame.core.rank_summary.rank_waits import OF_RANKS as WAITS_OF_RANKS
from flame.core.rank_summary.summary import FRAMES, METRICS, STACKS, RankInfo, RankSummary
from flame.core.rank_summary.waits_of_groups import cells_with_waits

_MOST = float(1 << 62)
_RANK_BITS = 31
_SUMS = (("ranks", "calls"), ("duration", "duration"), ("own", "own"), ("work", "work"))
"""Of collectives, and of ranks: what both have one sum of."""
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
        and _has_collectives(summary.collectives, summary.rank)
        and _has_communication(summary.communication, summary.rank)
        and _has_members(summary.collectives, summary.communication)
        and _has_waits(summary)
    )


def _has_ranks_in_order(summary: RankSummary) -> bool:
    names = [(one.rank, one.path) for one in summary.info]
    lengths = all(
        len(one.step_numbers) == len(one.step_times) == len(one.step_work) for one in summary.info
    )
    in_order = all(before < after for before, after in pairwise(names))
    known = all(0 <= one.rank < 1 << 31 and _has_small_numbers(one) for one in summary.info)
    lost_in_order = all(before < after for before, after in pairwise(summary.lost))
    return lengths and in_order and known and lost_in_order


def _has_small_numbers(info: RankInfo) -> bool:
    """Whether columns can hold the numbers of a rank, and sums of them."""
    numbers = [info.begin, info.end, info.origin or 0, info.activities]
    numbers += [
        *info.step_numbers,
        *info.step_times,
        *info.step_work,
        *(ns for _, ns in info.coverage),
    ]
    return all(-_MOST < number < _MOST for number in numbers)


def _has_groups(summary: RankSummary) -> bool:
    groups, frames, stacks = summary.groups, len(summary.frames), len(summary.stack_hash)
    return (
        all(map(is_ascending, (summary.frame_hash, summary.stack_hash, summary.group_hash)))
        and _are_within(groups.kind, 0, len(Kind))
        and all(_are_within(column, 0, 2) for column in (groups.launched, groups.host))
        and all(_are_within(getattr(groups, name), -1, stacks) for name in STACKS)
        and all(_are_within(getattr(groups, name), -1, frames) for name in FRAMES)
        and all(-_MOST < frame.line < _MOST for frame in summary.frames)
        and _are_of_their_table(summary)
        and bool((summary.shortest >= 0).all() and (summary.longest >= summary.shortest).all())
        and bool(np.isin(summary.longest_rank, summary.rank).all())
    )


def _are_of_their_table(summary: RankSummary) -> bool:
    """Whether groups of a GPU have a call and something that runs there, and others do not."""
    groups, none = summary.groups, len(Kind)
    kinds = np.array([*(frame.kind for frame in summary.frames), none])
    own, launch = kinds[groups.frame], kinds[groups.launch]
    on_gpu = (own == groups.kind) & np.isin(own, ACTIVITY_KINDS) & (launch == Kind.LAUNCH)
    on_host = (own == none) & np.isin(launch, (Kind.LAUNCH, none))
    return bool(np.where(groups.host > 0, on_host, on_gpu).all())


def _has_cells(summary: RankSummary) -> bool:
    """Whether the cells of each rank are of groups that are there, in their order."""
    start, group = summary.cell_start, summary.cell_group
    in_order = _rise_by_rank(start, group, len(summary))
    return in_order and _are_within(group, 0, len(summary.group_hash))


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


def _has_collectives(table: CollectiveTable, rank: I8) -> bool:
    """Whether the collectives are in order, each once, of ranks that are there."""
    if len({len(getattr(table, name)) for name in COLUMNS}) > 1:
        return False
    times = table.shortest, table.longest, table.duration, table.own, table.work
    known = np.isin(table.last, rank) & np.isin(table.first, rank)
    known &= (table.size >= 0) & (table.shortest <= table.longest)
    return (
        bool(known.all())
        and all(map(_can_be_added, times))
        and _are_within(table.source, 0, len(IdentitySource))
        and _are_within(table.ranks, 1, len(rank) + 1)
        and _are_rising(table.communicator, table.ordinal)
        and _are_in_order(table.communicators, table.kinds)
    )


def _has_communication(found: RankCommunication, rank: I8) -> bool:
    """Whether sums of communication are in order, of ranks that are there."""
    if len({len(getattr(found, name)) for name in OF_RANKS}) > 1:
        return False
    return (
        bool(np.isin(found.rank, rank).all())
        and all(map(_can_be_added, (found.calls, found.duration, found.own, found.work)))
        and _are_within(found.together, 0, 2)
        and _are_rising(found.rank, found.communicator)
        and _are_in_order(found.names)
    )


def _has_members(table: CollectiveTable, found: RankCommunication) -> bool:
    """Whether ranks and collectives have one sum by communicator, and who came last is of it."""
    together = np.flatnonzero(found.together)
    both = np.concatenate([table.communicator, found.communicator[together]])
    known, place = distinct(both)
    of, own = np.split(place, [len(table.communicator)])
    for name, sums in _SUMS:
        ours = sum_by(of, getattr(table, name), len(known))
        if (ours != sum_by(own, getattr(found, sums)[together], len(known))).any():
            return False
    members = own << _RANK_BITS | found.rank[together]
    ends = np.concatenate([of << _RANK_BITS | one for one in (table.last, table.first)])
    return bool(np.isin(ends, members).all())


def _has_waits(summary: RankSummary) -> bool:
    """Whether the waits are of the ranks, steps and groups that are there."""
    waits = summary.waits
    if waits is None:
        return True
    lengths = all(len(getattr(waits, name)) == len(summary) for name in WAITS_OF_RANKS)
    lengths &= len(waits.step_wait) == sum(len(one.step_numbers) for one in summary.info)
    lengths &= {len(getattr(waits, name)) for name in OF_GROUPS} == {len(waits.group)}
    return (
        lengths
        and all(_can_be_added(one + 1) for one in (waits.wait, waits.error, waits.step_wait))
        and all(map(_can_be_added, (waits.offset, waits.part)))
        and all(_can_be_added(getattr(waits, name)) for name in OF_GROUPS)
        and _rise_by_rank(waits.group_start, waits.group, len(summary))
        and _are_within(waits.group, 0, len(summary.group_hash))
        and (not waits.by_group or _has_waits_by_group(summary, waits))
    )


def _has_waits_by_group(summary: RankSummary, waits: RankWaitTable) -> bool:
    """Whether groups have no more waiting than GPU time, and ranks have that of their groups."""
    rank = np.repeat(np.arange(len(summary)), np.diff(waits.group_start))
    if (sum_by(rank, waits.group_wait, len(summary)) != waits.wait).any():
        return False
    cell = cells_with_waits(summary)
    if cell is None or (summary.groups.host[waits.group] > 0).any():
        return False
    count, gpu = (summary.cell[METRICS.index(key)][cell] for key in ("count", "gpu"))
    fits = (waits.group_calls <= count) & (waits.group_wait + waits.group_transfer <= gpu)
    return bool(fits.all())


def _rise_by_rank(start: Column, group: Column, ranks: int) -> bool:
    """Whether the groups of each rank rise, which begin at ``start``."""
    if len(start) != ranks + 1 or start[0] != 0 or start[-1] != len(group):
        return False
    if (np.diff(start) < 0).any():
        return False
    rising = np.append(True, group[1:] > group[:-1])
    rising[start[:-1][start[:-1] < len(group)]] = True
    return bool(rising[: len(group)].all())


def _are_rising(first: Column, second: Column) -> bool:
    """Whether pairs of both rise, each once."""
    later: Bool = first[1:] > first[:-1]
    later |= (first[1:] == first[:-1]) & (second[1:] > second[:-1])
    return bool(later.all())


def _are_in_order(*names: tuple[tuple[int, str], ...]) -> bool:
    return all(before < after for one in names for before, after in pairwise(one))


def _are_within(column: Column, low: int, end: int) -> bool:
    return bool(((column >= low) & (column < end)).all())
