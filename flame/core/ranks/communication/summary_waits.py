"""Put what ranks have measured, knowing the collectives of all, into their summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from flame.core.columns import I8
from flame.core.rank_summary.content_hash import Hashes
from flame.core.rank_summary.rank_waits import UNKNOWN, RankWaitTable
from flame.core.rank_summary.summary import RankSummary
from flame.core.ranks.communication.clocks import clocks_of
from flame.core.ranks.communication.matching import Matching, match_table
from flame.core.ranks.communication.waits import RankWaits, waits_by_sums


def with_waits(summary: RankSummary, measured: Sequence[RankWaits]) -> RankSummary:
    """Return ``summary`` with the waiting of its ranks, as far as it was ``measured`` or is known.

    There is none where no collective is matched over its ranks, or two ranks have one number: then
    nobody knows whose a collective is.
    """
    ranks = summary.rank
    matching = match_table(summary.collectives, len(summary))
    if not matching.matched.any() or (np.diff(ranks) == 0).any():
        return replace(summary, waits=None)
    return replace(summary, waits=_waits(summary, matching, {one.rank: one for one in measured}))


def _waits(
    summary: RankSummary, matching: Matching, measured: dict[int, RankWaits]
) -> RankWaitTable:
    ranks = summary.rank
    wait = waits_by_sums(summary.communication, summary.collectives, matching, ranks)
    for at, rank in enumerate(ranks.tolist()):
        if rank in measured:
            wait[at] = measured[rank].wait
    found = [measured.get(one.rank) for one in summary.info]
    return RankWaitTable(
        wait,
        *_clocks(ranks, list(measured.values())),
        _of_steps(summary, found),
        *_by_group(summary.group_hash, found),
    )


def _clocks(ranks: I8, measured: Sequence[RankWaits]) -> tuple[I8, I8, I8]:
    """(offset, error, part) of the clock of each of ``ranks``."""
    clocks = clocks_of(measured)
    at = np.searchsorted(ranks, clocks.rank)
    offset, part = np.zeros((2, len(ranks)), np.int64)
    error = np.full(len(ranks), UNKNOWN, np.int64)
    offset[at], error[at], part[at] = clocks.offset, clocks.error, clocks.part
    return offset, error, part


def _of_steps(summary: RankSummary, found: Sequence[RankWaits | None]) -> I8:
    """How long each rank waited in each of its steps."""
    parts = [np.zeros(0, np.int64)]
    for info, one in zip(summary.info, found, strict=True):
        size = len(info.step_numbers)
        known = one is not None and len(one.step_wait) == size
        parts.append(one.step_wait if known and one else np.full(size, UNKNOWN, np.int64))
    return np.concatenate(parts)


def _by_group(groups: Hashes, found: Sequence[RankWaits | None]) -> tuple[I8, I8, I8, I8, I8]:
    """(where those of each rank begin, their `OF_GROUPS`) where all are measured by groups."""
    measured = [one for one in found if one is not None and one.group_calls.sum() == one.matched]
    if len(measured) < len(found):
        nothing = np.zeros(0, np.int64)
        return np.zeros(len(found) + 1, np.int64), nothing, nothing, nothing, nothing
    parts = [_of_rank(groups, one) for one in measured]
    start = np.cumsum([0, *(part.shape[1] for part in parts)])
    place, calls, wait, transfer = np.concatenate(parts, axis=1)
    return start, place, calls, wait, transfer


def _of_rank(groups: Hashes, one: RankWaits) -> I8:
    """The `OF_GROUPS` of a rank, i8[columns, groups], by place among ``groups``."""
    mine = np.flatnonzero(one.group_calls)
    place = np.searchsorted(groups[:, 0], one.group_hash[mine, 0])
    columns = np.stack(
        [place, one.group_calls[mine], one.group_wait[mine], one.group_transfer[mine]]
    )
    return columns[:, np.argsort(place, kind="stable")]
