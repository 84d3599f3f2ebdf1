"""Measure how long ranks waited in collectives, and how long others waited for whom.

A collective ends on all ranks together, and the last rank to come waits for nobody: the least of
the durations is the transfer, all above is waiting. So each rank's own clock is enough.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, Bool, distinct, places_on_lanes, sum_by
from flame.core.rank_summary.collective_table import UNKNOWN_END, CollectiveTable
from flame.core.rank_summary.content_hash import Hashes
from flame.core.rank_summary.rank_communication import RankCommunication
from flame.core.ranks.communication.arrivals import Arrivals, ends_of
from flame.core.ranks.communication.matching import Matching, match_table


class RankWaits(NamedTuple):
    """Say how a rank waited in collectives that are matched over all their ranks; ns.

    ``found`` is how many collectives it has, ``matched`` how many of them count here. They took
    ``duration``, of which it waited ``wait``. ``group_wait`` i8[groups] divides this by the groups
    of activities ``group_hash``, ``group_transfer`` what else they took, and ``group_calls`` their
    number; ``step_wait`` i8[steps] is by the rank's steps (what is in none is left out),
    ``communicator_wait`` by ``communicator`` (i8[m], hashes, which rise, with their number of
    ``communicator_calls``).

    ``behind`` i8[m] is the median of how much earlier its clock said that a collective had ended
    than the latest clock of the ranks, ``behind_error`` i8[m] what 95 % of them are within;
    `UNKNOWN_END` where the time of day is not known.
    """

    rank: int
    found: int
    matched: int
    duration: int
    wait: int
    group_hash: Hashes
    group_calls: I8
    group_wait: I8
    group_transfer: I8
    step_wait: I8
    communicator: I8
    communicator_calls: I8
    communicator_wait: I8
    behind: I8
    behind_error: I8


def waits_of(arrivals: Arrivals, table: CollectiveTable, expected: int | Matching) -> RankWaits:
    """Measure how a rank waited, by the merged ``table`` of all ranks, of which it is one.

    ``expected`` is how many ranks there are, or what `match_table` makes of that, for many.
    """
    matching = match_table(table, expected) if isinstance(expected, int) else expected
    at, found = _rows_in(table, matching, arrivals)
    mine = np.flatnonzero(found)[matching.matched[at[found]]]
    at, duration = at[mine], arrivals.duration[mine]
    transfer = table.shortest[at]
    wait = duration - transfer
    group, groups = arrivals.group[mine], len(arrivals.group_hash)
    communicator, place = distinct(arrivals.communicator[mine])
    behind = _behind(table.latest_end[at], ends_of(arrivals)[mine], place, len(communicator))
    return RankWaits(
        arrivals.rank,
        len(arrivals.start),
        len(mine),
        int(duration.sum()),
        int(wait.sum()),
        arrivals.group_hash,
        _sum_known(group, np.ones_like(wait), groups),
        _sum_known(group, wait, groups),
        _sum_known(group, transfer, groups),
        _sum_known(arrivals.step[mine], wait, len(arrivals.steps.number)),
        communicator,
        np.bincount(place, minlength=len(communicator)).astype(np.int64),
        sum_by(place, wait, len(communicator)),
        *behind,
    )


def _rows_in(table: CollectiveTable, matching: Matching, arrivals: Arrivals) -> tuple[I8, Bool]:
    """(row of ``table`` of each collective, whether it is there)."""
    if not len(table.ordinal):
        return np.zeros(len(arrivals.start), np.int64), np.zeros(len(arrivals.start), bool)
    known = matching.communicator
    lane = np.minimum(np.searchsorted(known, arrivals.communicator), len(known) - 1)
    at = places_on_lanes(matching.of_row, table.ordinal, lane, arrivals.ordinal)
    at = np.minimum(at, len(table.ordinal) - 1)
    found = (table.communicator[at] == arrivals.communicator) & (
        table.ordinal[at] == arrivals.ordinal
    )
    return at, found


def _sum_known(place: I8, values: I8, size: int) -> I8:
    """Sum ``values`` by ``place``, without those whose place is -1."""
    known = place >= 0
    return sum_by(place[known], values[known], size)


def _behind(latest: I8, own: I8, place: I8, size: int) -> tuple[I8, I8]:
    """(median, what 95 % differ from it at most) of ``latest`` less ``own`` ends, by ``place``."""
    known = (latest != UNKNOWN_END) & (own != UNKNOWN_END)
    behind, place = (latest - own)[known], place[known]
    median = _ranked(behind, place, size, 50)
    return median, _ranked(np.abs(behind - median[place]), place, size, 95)


def _ranked(values: I8, place: I8, size: int, percent: int) -> I8:
    """The percentile of ``values`` by ``place``, nearest rank, `UNKNOWN_END` of none."""
    order = np.lexsort((values, place))
    count = np.bincount(place, minlength=size)
    at = np.cumsum(count) - count + np.maximum(-(-count * percent // 100), 1) - 1
    found = np.append(values[order], UNKNOWN_END)[np.where(count > 0, at, -1)]
    return np.where(count > 0, found, UNKNOWN_END)


class RankCauses(NamedTuple):
    """Say what ranks made others wait, i8[ranks] each; ns.

    ``last`` is how often a rank came last (not counted where all came at once), ``caused`` how long
    all others waited then. Compared with the mean of the ranks ``by_work`` is how much longer its
    GPU was busy before these, ``by_idle`` how much longer idle: its host was late.
    """

    last: I8
    caused: I8
    by_work: I8
    by_idle: I8


def causes_of(table: CollectiveTable, matching: Matching, rank: I8) -> RankCauses:
    """Sum up what each ``rank`` (i8[ranks], rising, with all that ``table`` has) caused."""
    rows = late_rows(table, matching)
    place = np.searchsorted(rank, table.last[rows])
    ranks = table.ranks[rows]
    own = (table.last_own[rows] * ranks - table.own[rows]) // ranks
    work = (table.last_work[rows] * ranks - table.work[rows]) // ranks
    size = len(rank)
    return RankCauses(
        np.bincount(place, minlength=size).astype(np.int64),
        sum_by(place, caused_waits(table)[rows], size),
        sum_by(place, np.maximum(work, 0), size),
        sum_by(place, np.maximum(own - work, 0), size),
    )


def late_rows(table: CollectiveTable, matching: Matching) -> I8:
    """List the matched collectives to which the ranks did not come all at once."""
    return np.flatnonzero(matching.matched & (table.longest > table.shortest))


def caused_waits(table: CollectiveTable) -> I8:
    """How long all ranks together waited in each collective, i8[n] in ns."""
    return table.duration - table.ranks * table.shortest


def waits_by_sums(
    communication: RankCommunication, table: CollectiveTable, matching: Matching, rank: I8
) -> I8:
    """Work out how long each ``rank`` (i8[ranks], rising) waited, without what it recorded.

    Return that, i8[ranks] in ns, -1 where it is not known. In a communicator all of whose
    collectives are matched each rank has all of them: its waiting is what they took it, less the
    sum of all transfers. Where only some are matched nobody knows which of its time was in those;
    where none is, no waiting counts.
    """
    size = len(matching.calls)
    transfer = sum_by(matching.of_row, table.shortest * matching.matched, size)
    of = np.flatnonzero(np.isin(communication.communicator, matching.communicator))
    place = np.searchsorted(matching.communicator, communication.communicator[of])
    whole = matching.complete[place] == matching.calls[place]
    whole &= communication.calls[of] == matching.calls[place]
    partly = ~whole & (matching.complete[place] > 0)
    wait = np.where(whole, communication.duration[of] - transfer[place], 0)
    own = np.searchsorted(rank, communication.rank[of])
    unknown = np.bincount(own[partly], minlength=len(rank)) > 0
    sums = sum_by(own, wait, len(rank))
    return np.where(unknown, -1, sums)
