"""Match the collectives of several ranks, operation by operation: who waited, and who came last."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from flame.core.columns import I4, I8, distinct, pack, run_starts, sum_by, unique_rows
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import NONE
from flame.core.model.frames import FrameTable, Kind
from flame.core.model.launches import RecordedCollective
from flame.core.model.profile import Profile
from flame.core.names.collectives import (
    Collective,
    collective_of,
    group_label,
    is_collective,
    told_collective,
)
from flame.core.report.scope import Scope
from flame.core.timeline.exposure import WorkClass, class_of_groups, work_classes


@dataclass(frozen=True, eq=False)
class CommunicationRows:
    """Hold the kernels of communication that pass, by start; i8[n] each.

    ``row`` is that of `Profile.activities`, ``rank`` the place of its rank: a process on a GPU,
    ``of`` the place of its collective in ``collectives``, ``sequence`` the number of the call in
    its group, equal on all ranks, -1 where the trace does not say it. ``told`` is the place in
    `Profile.collectives` of what it says, -1 of nothing. ``processes`` and ``devices``
    (i8[ranks], the latter -1 where it is not known) say which rank is whose.
    """

    row: I8
    rank: I8
    of: I8
    sequence: I8
    told: I8
    collectives: tuple[Collective, ...]
    processes: I8
    devices: I8

    def __len__(self) -> int:
        return len(self.row)

    @classmethod
    def of_scope(cls, scope: Scope) -> CommunicationRows:
        """Find them among what passes the filters."""
        return cls.among(scope.profile, scope.rows)

    @classmethod
    def among(cls, profile: Profile, rows: I8) -> CommunicationRows:
        """Find them among ``rows`` of `Profile.activities`."""
        table = profile.activities
        of_group = class_of_groups(profile) == WorkClass.COMMUNICATION
        rows = (
            rows[work_classes(profile)[rows] == WorkClass.COMMUNICATION]
            if of_group.any()
            else rows[:0]
        )
        rows = rows[np.argsort(table.start[rows], kind="stable")]
        devices = len(profile.devices) + 1
        ranks, rank = distinct(
            table.process[rows].astype(np.int64) * devices + table.device[rows] + 1
        )
        told, sequence = _told(profile, rows)
        collectives, of = _collectives(profile, table.groups.of_row[rows], told)
        whose = ranks // devices, ranks % devices - 1
        return cls(rows, rank, of, sequence, told, collectives, *whose)

    @property
    def ranks(self) -> int:
        """How many ranks communicate."""
        return len(self.processes)


def _told(profile: Profile, rows: I8) -> tuple[I8, I8]:
    """What the trace tells of ``rows``: places in `Collectives.kinds`, and sequence numbers.

    -1 where it tells nothing.
    """
    found = profile.collectives
    if found is None or not len(found):
        return np.full(len(rows), NONE), np.full(len(rows), NONE)
    at = np.minimum(np.searchsorted(found.row, rows), len(found) - 1)
    known = found.row[at] == rows
    return np.where(known, found.kind[at], NONE), np.where(known, found.sequence[at], NONE)


def _collectives(profile: Profile, group: I4, told: I8) -> tuple[tuple[Collective, ...], I8]:
    """The different collectives of rows of these groups, and the place of each row's.

    They are those that the trace ``told``, else of the ranges around, else of the kernel's name.
    """
    first, place = unique_rows([group, told])
    table, frames = profile.activities, profile.frames
    groups = group[first]
    around = table.stacks.innermost(_telling(frames))[table.groups.nvtx[groups]]

    @cache  # many groups are of one kernel
    def named(kernel: int, operator: int) -> Collective:
        detail = frames[operator].get("detail") if operator >= 0 else ""
        return collective_of(frames[kernel].name, detail)

    known: dict[Collective, int] = {}
    numbers = []
    for kernel, operator, kind in zip(
        table.groups.frame[groups].tolist(), around.tolist(), told[first].tolist(), strict=True
    ):
        if kind >= 0:
            assert profile.collectives is not None, "what was told of rows"
            one = _of_kind(frames[kernel].name, profile.collectives.kinds[kind])
        else:
            one = named(kernel, operator)
        numbers.append(known.setdefault(one, len(known)))
    return tuple(known), np.array(numbers, np.int64)[place]


def _of_kind(kernel: str, told: RecordedCollective) -> Collective:
    group = group_label(told.group, told.about, told.members)
    moved = told.dtype, told.sent, told.received
    found = told_collective(kernel, told.name, *moved, told.ranks, group)
    return found._replace(reduction=told.reduction, root=told.root)


def _telling(frames: FrameTable) -> I4:
    """The ids of ranges that tell their collective, -1 of all other frames."""
    ids = np.full(len(frames), NONE, np.int32)
    for at in np.flatnonzero(frames.kind == Kind.NVTX).tolist():
        if is_collective(frames[at].get("detail")):
            ids[at] = at
    return ids


class Operation(NamedTuple):
    """Say how a collective matches over ranks: ``number`` operations, or ``why`` it does not.

    ``ranks`` is how many take part, ``alone`` the number of calls that some rank lacks.
    ``transfer`` is the sum of the least duration of each
    operation, ``wait`` of what all ranks together took longer, ``skew`` of how much later the last
    rank began than the first, None where the clocks differ; ns.
    """

    collective: Collective
    ranks: int
    number: int
    transfer: int
    wait: int
    skew: int | None
    alone: int = 0
    why: str = ""


@dataclass(frozen=True, eq=False)
class MatchedRanks:
    """Hold what each rank took for collectives, i8[ranks], ns.

    ``number`` and ``total`` are of all; ``matched``, ``wait``, ``transfer`` and ``last`` (how often
    it began last) of those that match over ranks. ``last`` is None where the clocks differ.
    ``rows`` i8[n] are the matched ones, of `Profile.activities`, and ``waits`` i8[n] how long each
    waited, before anything was transferred.
    """

    number: I8
    total: I8
    matched: I8
    wait: I8
    transfer: I8
    last: I8 | None
    operations: tuple[Operation, ...]
    rows: I8
    waits: I8


def match_ranks(profile: Profile, rows: CommunicationRows, labels: Sequence[str]) -> MatchedRanks:
    """Take calls of a collective on each rank for one operation.

    They are those of one number in their group where the trace says it; else the k-th of each rank,
    if all ranks have equally many. The ranks are all that communicate, or as many as the trace says
    the group has. ``labels`` name them.
    """
    duration = profile.activities.duration[rows.row]
    aligned = on_one_clock(profile)
    sums = np.zeros((4, rows.ranks), np.int64)
    operations, waiting = [], [np.zeros((2, 0), np.int64)]
    order = np.lexsort((rows.rank, rows.of))
    for low, high in pairwise([*run_starts(rows.of[order]).tolist(), len(order)]):
        members = order[low:high]
        operation, of_ranks, waits = _match(profile, rows, members, labels, aligned)
        operations.append(operation)
        waiting.append(waits)
        sums += of_ranks
    matched, wait, transfer, last = sums
    return MatchedRanks(
        np.bincount(rows.rank, minlength=rows.ranks),
        sum_by(rows.rank, duration, rows.ranks),
        matched,
        wait,
        transfer,
        last if aligned else None,
        tuple(operations),
        *np.concatenate(waiting, axis=1),
    )


def _match(
    profile: Profile, rows: CommunicationRows, members: I8, labels: Sequence[str], aligned: bool
) -> tuple[Operation, I8, I8]:
    """Match the ``members``, by rank and start, of one collective.

    (how it matches, i8[4, ranks] sums of it, i8[2, n] matched rows and how long each waited).
    """
    table, rank = profile.activities, rows.rank[members]
    collective = rows.collectives[int(rows.of[members[0]])]
    counts = np.bincount(rank, minlength=rows.ranks)
    ranks = np.flatnonzero(counts)
    sums = np.zeros((4, rows.ranks), np.int64)
    numbered = bool((rows.sequence[members] >= 0).all())
    if why := _unmatched(collective, counts, labels, numbered):
        return Operation(collective, len(ranks), 0, 0, 0, None, why=why), sums, sums[:2, :0]
    matched = _of_one_number(rows, members, len(ranks)) if numbered else members
    alone = len(members) - len(matched)
    if not len(matched):
        why = "no call was recorded on all ranks"
        return Operation(collective, len(ranks), 0, 0, 0, None, alone, why), sums, sums[:2, :0]
    row = rows.row[matched].reshape(len(ranks), -1)
    duration, start = table.duration[row], table.start[row]
    transfer = duration.min(axis=0)
    wait = duration - transfer
    last = np.bincount(np.argmax(start, axis=0), minlength=len(ranks))
    number = row.shape[1]
    sums[0, ranks], sums[1, ranks] = number, wait.sum(axis=1)
    sums[2, ranks], sums[3, ranks] = transfer.sum(), last
    skew = int((start.max(axis=0) - start.min(axis=0)).sum()) if aligned else None
    times = int(transfer.sum()), int(wait.sum()), skew
    found = Operation(collective, len(ranks), number, *times, alone)
    return found, sums, np.array([row.ravel(), wait.ravel()])


def _of_one_number(rows: CommunicationRows, members: I8, ranks: int) -> I8:
    """Those of ``members`` whose number all ``ranks`` have, by rank and number.

    Of several calls of one number on a rank the k-th of each belong together.
    """
    order = members[np.lexsort((rows.sequence[members], rows.rank[members]))]
    first = run_starts(pack([rows.rank[order], rows.sequence[order]]))
    size = np.diff(np.append(first, len(order)))
    repeat = np.arange(len(order)) - np.repeat(first, size)
    _, call = unique_rows([rows.sequence[order], repeat])
    complete: I8 = order[np.bincount(call)[call] == ranks]
    return complete


def _unmatched(collective: Collective, counts: I8, labels: Sequence[str], numbered: bool) -> str:
    """Say why the calls of the ranks do not match; empty where they do, or are ``numbered``."""
    some = counts[counts > 0]
    if collective.ranks is not None and len(some) != collective.ranks:
        return f"{len(some)} ranks were recorded, its group has {collective.ranks}"
    if len(some) < 2:
        return "one rank alone"
    expected = counts if collective.ranks is None else some
    if not numbered and (expected != expected[0]).any():
        usual, place = distinct(expected)
        others = np.bincount(place)
        most = int(usual[np.argmax(others)])
        odd = int(np.flatnonzero((counts != most) & np.isin(counts, expected))[0])
        return f"{labels[odd]} has {int(counts[odd])}, others {most}"
    return ""


def on_one_clock(profile: Profile) -> bool:
    """Tell whether times of different ranks compare: one file, one recording, or known times."""
    clocks = {source.meta.clock for source in profile.sources}
    together = len(clocks) == 1 and "" not in clocks
    return len(profile.sources) < 2 or together or profile.meta.origin is not None
