"""Find when a rank came to which collective, and what it did before."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, distinct, sum_by
from flame.core.model.activities import NONE, has_times
from flame.core.model.profile import Profile
from flame.core.rank_summary.collective_table import UNKNOWN_END, CollectiveTable
from flame.core.rank_summary.content_hash import Hashes, hash_text, unite_hashes
from flame.core.rank_summary.merge_collectives import merge_collectives
from flame.core.rank_summary.rank_communication import (
    RankCommunication,
    merge_communication,
    no_communication,
)
from flame.core.ranks.communication.communicators import TOGETHER, identify
from flame.core.ranks.communication.rank_steps import (
    RankSteps,
    no_steps,
    rows_besides,
    steps_of_rank,
)
from flame.core.report.parties.collectives import CommunicationRows
from flame.core.timeline.busy_time import BusyTime


class Arrivals(NamedTuple):
    """Hold the collectives of a rank that bring all their ranks together, by start.

    ``communicator``, ``ordinal``, ``source`` and ``size`` (i8[n]) are as in `CollectiveTable`,
    ``kind`` i8[n] is the hash of what it is called. ``start`` and ``duration`` (i8[n]) are in ns on
    the rank's own clock, which is 0 at ``origin`` ns since 1970, None unknown. ``own`` i8[n] is the
    time from the end of what it communicated before to ``start``, 0 of the first, and ``work``
    i8[n] the part of it in which its GPU did anything.

    ``group`` i8[n] is a place in ``group_hash``, the groups of activities; -1 unknown. ``step``
    i8[n] is a place in ``steps``; -1 of none. ``others`` is what else the rank communicates.
    ``communicators`` and ``kinds`` say what the hashes are of.
    """

    rank: int
    origin: int | None
    communicator: I8
    ordinal: I8
    source: I8
    size: I8
    kind: I8
    group: I8
    step: I8
    start: I8
    duration: I8
    own: I8
    work: I8
    group_hash: Hashes
    steps: RankSteps
    others: RankCommunication
    communicators: tuple[tuple[int, str], ...]
    kinds: tuple[tuple[int, str], ...]


def arrivals_of(
    profile: Profile, rank: int, group_hash: Hashes | None = None, rows: I8 | None = None
) -> Arrivals:
    """Find the collectives of ``rank``, whose activities are ``rows`` (all, if None).

    ``group_hash`` u8[groups, 2] names the groups of `Profile.activities`. Collectives of several
    GPUs, or processes, are counted, but not told which they are: ask for the rows of each.
    """
    if profile.resolved:
        return no_arrivals(rank)
    table = profile.activities
    timed = has_times(table)
    rows = np.flatnonzero(timed) if rows is None else rows[timed[rows]]
    found = CommunicationRows.among(profile, rows)
    together = np.array([one.name in TOGETHER for one in found.collectives], bool)
    chosen = np.flatnonzero(together[found.of])
    others = np.flatnonzero(~together[found.of])
    own, work = _before(profile, rows, found.row)
    identity = identify(profile, found, chosen)
    kind, kinds = _kinds(found, chosen)
    group, group_hash = _groups(profile, found.row[chosen], group_hash)
    steps, step = steps_of_rank(profile, rows, found.row)
    return Arrivals(
        rank,
        profile.meta.origin,
        *identity[:4],
        kind,
        group,
        step[chosen],
        table.start[found.row[chosen]],
        table.duration[found.row[chosen]],
        own[chosen],
        work[chosen],
        group_hash,
        steps,
        _others(rank, found, others, table.duration[found.row[others]]),
        identity.names,
        kinds,
    )


COLUMNS = Arrivals._fields[2:13]


def no_arrivals(rank: int) -> Arrivals:
    """Make those of a ``rank`` that has none."""
    return Arrivals(
        rank,
        None,
        **dict.fromkeys(COLUMNS, np.zeros(0, np.int64)),
        group_hash=np.zeros((0, 2), np.uint64),
        steps=no_steps(),
        others=no_communication(),
        communicators=(),
        kinds=(),
    )


def _before(profile: Profile, rows: I8, communication: I8) -> tuple[I8, I8]:
    """(time from the end of the communication before each, busy part of it), ns.

    ``communication`` are those of ``rows`` that communicate, by start.
    """
    table = profile.activities
    others = rows_besides(rows, communication)
    busy = BusyTime.union(table.start[others], table.start[others] + table.duration[others])
    start = table.start[communication]
    end = start + table.duration[communication]
    before = np.concatenate([start[:1], np.maximum.accumulate(end)[:-1]])
    own = np.maximum(start - before, 0)
    work = np.clip(busy.sums_until(start) - busy.sums_until(before), 0, own)
    return own, work


def _kinds(found: CommunicationRows, chosen: I8) -> tuple[I8, tuple[tuple[int, str], ...]]:
    names = [one.name for one in found.collectives]
    hashes = {name: hash_text(name) for name in names}
    of = np.array([hashes[name] for name in names], np.int64)
    used = sorted({names[at] for at in distinct(found.of[chosen])[0].tolist()})
    return of[found.of[chosen]], tuple((hashes[name], name) for name in used)


def _groups(profile: Profile, row: I8, group_hash: Hashes | None) -> tuple[I8, Hashes]:
    """(place of the group of each row among the groups that they have, hashes of these)."""
    if group_hash is None:
        return np.full(len(row), NONE), np.zeros((0, 2), np.uint64)
    used, place = distinct(profile.activities.groups.of_row[row].astype(np.int64))
    hashes, (of_used,) = unite_hashes([group_hash[used]])
    return of_used[place], hashes


def _others(rank: int, found: CommunicationRows, others: I8, duration: I8) -> RankCommunication:
    """Count the ``others`` of what was ``found`` by kind."""
    names = sorted({one.name for one in found.collectives} - TOGETHER)
    place = {name: at for at, name in enumerate(names)}
    of = np.array([place.get(one.name, NONE) for one in found.collectives], np.int64)
    of = of[found.of[others]]
    hashes = [hash_text(name) for name in names]
    nothing = np.zeros(len(names), np.int64)
    columns = (
        np.full(len(names), rank),
        np.array(hashes, np.int64),
        nothing,
        np.bincount(of, minlength=len(names)).astype(np.int64),
        sum_by(of, duration, len(names)),
        nothing,
        nothing,
    )
    pairs = tuple(zip(hashes, names, strict=True))
    return merge_communication([RankCommunication(*columns, pairs)])


def table_of(arrivals: Arrivals) -> CollectiveTable:
    """Make the table of the collectives of one rank."""
    rank, one = np.full(len(arrivals.start), arrivals.rank), np.ones(len(arrivals.start), np.int64)
    table = CollectiveTable(
        arrivals.communicator,
        arrivals.ordinal,
        kind_low=arrivals.kind,
        kind_high=arrivals.kind,
        ranks=one,
        shortest=arrivals.duration,
        last=rank,
        last_own=arrivals.own,
        last_work=arrivals.work,
        longest=arrivals.duration,
        first=rank,
        duration=arrivals.duration,
        own=arrivals.own,
        work=arrivals.work,
        latest_end=ends_of(arrivals),
        source=arrivals.source,
        size=arrivals.size,
        communicators=arrivals.communicators,
        kinds=arrivals.kinds,
    )
    return merge_collectives([table])


def ends_of(arrivals: Arrivals) -> I8:
    """When each collective ended, ns since 1970; `UNKNOWN_END` where that is not known."""
    if arrivals.origin is None:
        return np.full(len(arrivals.start), UNKNOWN_END)
    return arrivals.start + arrivals.duration + arrivals.origin


def communication_of(arrivals: Arrivals) -> RankCommunication:
    """Sum up what a rank communicates, by communicator."""
    communicator, place = distinct(arrivals.communicator)
    size = len(communicator)
    own = RankCommunication(
        rank=np.full(size, arrivals.rank),
        communicator=communicator,
        together=np.ones(size, np.int64),
        calls=np.bincount(place, minlength=size).astype(np.int64),
        duration=sum_by(place, arrivals.duration, size),
        own=sum_by(place, arrivals.own, size),
        work=sum_by(place, arrivals.work, size),
        names=arrivals.communicators,
    )
    return merge_communication([own, arrivals.others])
