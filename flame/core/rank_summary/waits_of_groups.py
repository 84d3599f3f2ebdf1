"""Look up how long the collectives of each group waited: of all ranks, or of single ones."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, sum_by
from flame.core.kept_results import kept
from flame.core.rank_summary.rank_waits import RankWaitTable
from flame.core.rank_summary.summary import RankSummary
from flame.core.units import format_count

_TOGETHER = "flame ranks FILE… -o run.flamesum"
"""What sums up the files of all ranks, and measures how they waited."""

_OF_COLLECTIVES = ("group_calls", "group_wait", "group_transfer")


def why_no_waits(summary: RankSummary) -> str:
    """Say why it is not known how long collectives of ``summary`` waited; empty where it is."""
    waits, table = summary.waits, summary.collectives
    if waits is not None and waits.by_group:
        return ""
    if not len(table.ordinal):
        return "no collective was recorded that brings ranks together"
    if len(summary) == 1:
        return f"it takes the files of all ranks: {_TOGETHER}"
    if (table.ranks < 2).all():
        return "no collective is there on two ranks"
    if waits is None:
        return f"collectives do not match, or ranks were not read in one go: {_TOGETHER}"
    return f"some ranks were summed up before: {_TOGETHER}"


class CommunicationCounts(NamedTuple):
    """Count what ranks communicate: ``met`` are calls whose waiting is known.

    The ``unmatched`` are not known to be the same on all their ranks, ``others`` do not bring all
    ranks together, as a broadcast.
    """

    met: int
    unmatched: int
    others: int

    @property
    def note(self) -> str:
        """Say how many have no waiting, and why; empty where all have."""
        reasons = [
            f"{format_count(self.unmatched)} do not match over ranks" * (self.unmatched > 0),
            f"{format_count(self.others)} do not bring all ranks together" * (self.others > 0),
        ]
        why, whole = ", ".join(filter(None, reasons)), format_count(sum(self))
        return why and f"waiting is known of {format_count(self.met)} of {whole} collectives: {why}"


def count_calls(summary: RankSummary, waits: RankWaitTable) -> CommunicationCounts:
    """Count the collectives of all ranks of ``summary``, graphs that hide some not looked into."""
    calls, together = summary.communication.calls, summary.communication.together > 0
    met = int(waits.group_calls.sum())
    return CommunicationCounts(met, int(calls[together].sum()) - met, int(calls[~together].sum()))


def waits_of_all(summary: RankSummary, waits: RankWaitTable) -> tuple[I8, I8, I8]:
    """(calls, waiting, transfer) of the collectives of each group, i8[groups] each; times in ns."""
    size = len(summary.group_hash)
    calls, waiting, transfer = (
        sum_by(waits.group, getattr(waits, name), size) for name in _OF_COLLECTIVES
    )
    return calls, waiting, transfer


def waits_of_cells(summary: RankSummary, waits: RankWaitTable, cells: I8) -> tuple[I8, I8, I8]:
    """(calls, waiting, transfer) of the collectives in ``cells``, i8[cells] each; times in ns."""
    known = cells_with_waits(summary)
    assert known is not None
    at = np.minimum(np.searchsorted(known, cells), max(len(known) - 1, 0))
    is_known = known[at] == cells
    calls, waiting, transfer = (
        np.where(is_known, getattr(waits, name)[at], 0) for name in _OF_COLLECTIVES
    )
    return calls, waiting, transfer


@kept
def cells_with_waits(summary: RankSummary) -> I8 | None:
    """Find the cell of each group of each rank of its `RankWaitTable`, ascending.

    None where one has none.
    """
    waits = summary.waits
    assert waits is not None
    found = np.zeros(len(waits.group), np.int64)
    of_ranks = pairwise(summary.cell_start.tolist()), pairwise(waits.group_start.tolist())
    for (low, high), (first, last) in zip(*of_ranks, strict=True):
        groups, wanted = summary.cell_group[low:high], waits.group[first:last]
        at = np.searchsorted(groups, wanted)
        if (at == high - low).any() or (groups[at] != wanted).any():
            return None
        found[first:last] = low + at
    return found
