"""Find the collectives in which ranks waited longest: one by one, and by what they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, run_starts, sum_by, unique_rows
from flame.core.rank_summary.collective_table import CollectiveTable, IdentitySource
from flame.core.ranks.communication.matching import Matching
from flame.core.ranks.communication.waits import caused_waits, late_rows

MOST_TOLD = 1_000
"""Collectives that are told one by one, and kinds of them."""


class CollectiveKind(NamedTuple):
    """Sum up the collectives of one ``name`` in a ``communicator`` of so many ``ranks``.

    All of its ranks together ``waited`` in its ``calls``, which took ``transfer`` besides, ns. The
    rank ``last`` made others wait longest: for ``last_caused`` in the ``last_calls`` to which it
    came last. It is None where nobody waited.
    """

    name: str
    communicator: str
    ranks: int
    calls: int
    waited: int
    transfer: int
    last: int | None
    last_calls: int
    last_caused: int


class CollectiveCall(NamedTuple):
    """Describe a collective in which ``ranks`` together ``waited`` for the rank ``last``, in ns.

    ``number`` is the recorded one in its ``communicator``, else its place in that, from 1 on. With
    nobody waiting it takes ``transfer``; the rank ``first`` waited longest, ``longest``. The last
    one's GPU was busy ``by_work`` longer than the mean of the ranks before it came, and ``by_idle``
    longer idle.
    """

    name: str
    communicator: str
    number: int
    ranks: int
    waited: int
    transfer: int
    last: int
    by_work: int
    by_idle: int
    first: int
    longest: int


class WorstCollectives(NamedTuple):
    """Hold `MOST_TOLD` collectives with their kinds, those that cost most waiting first.

    In all that are matched ranks ``waited``, ns.
    """

    waited: int
    kinds: tuple[CollectiveKind, ...]
    calls: tuple[CollectiveCall, ...]


def worst_collectives(table: CollectiveTable, matching: Matching) -> WorstCollectives:
    """Find the collectives of ``table`` in which most was waited, of those that are matched."""
    return WorstCollectives(
        int(caused_waits(table)[matching.matched].sum()),
        tuple(_kinds(table, matching)),
        tuple(_calls(table, matching)),
    )


def _kinds(table: CollectiveTable, matching: Matching) -> Iterator[CollectiveKind]:
    rows = np.flatnonzero(matching.matched)
    of, name, ranks = matching.of_row[rows], table.kind_low[rows], table.ranks[rows]
    first, kind = unique_rows([of, name])
    waited = caused_waits(table)[rows]
    sums, transfer = (
        sum_by(kind, one, len(first)) for one in (waited, ranks * table.shortest[rows])
    )
    calls = np.bincount(kind, minlength=len(first))
    last = _most_caused(kind, table.last[rows], waited, len(first))
    names = dict(table.kinds)
    for at in np.lexsort((name[first], of[first], -sums))[:MOST_TOLD].tolist():
        row, (rank, late, caused) = first[at], last[:, at].tolist()
        yield CollectiveKind(
            names.get(int(name[row]), ""),
            matching.names[of[row]],
            int(ranks[row]),
            int(calls[at]),
            int(sums[at]),
            int(transfer[at]),
            rank if late else None,
            late,
            caused,
        )


def _most_caused(kind: I8, last: I8, waited: I8, size: int) -> I8:
    """(rank that others waited longest for, how often it came last, how long), i8[3, kinds].

    Of several the lowest rank; all are 0 where nobody waited.
    """
    rows = np.flatnonzero(waited)
    first, pair = unique_rows([kind[rows], last[rows]])
    of, rank = kind[rows][first], last[rows][first]
    caused, calls = sum_by(pair, waited[rows], len(first)), np.bincount(pair, minlength=len(first))
    order = np.lexsort((rank, -caused, of))
    best = order[run_starts(of[order])]
    found = np.zeros((3, size), np.int64)
    found[:, of[best]] = rank[best], calls[best], caused[best]
    return found


def _calls(table: CollectiveTable, matching: Matching) -> Iterator[CollectiveCall]:
    rows, waited = late_rows(table, matching), caused_waits(table)
    rows = rows[np.argsort(-waited[rows], kind="stable")[:MOST_TOLD]]
    names, of = dict(table.kinds), matching.of_row[rows]
    number = table.ordinal[rows] + (table.source[rows] != IdentitySource.NUMBERED)
    ranks = table.ranks[rows]
    own = (table.last_own[rows] * ranks - table.own[rows]) // ranks
    work = (table.last_work[rows] * ranks - table.work[rows]) // ranks
    columns = (
        number,
        ranks,
        waited[rows],
        table.shortest[rows],
        table.last[rows],
        np.maximum(work, 0),
        np.maximum(own - work, 0),
        table.first[rows],
        table.longest[rows] - table.shortest[rows],
    )
    kinds, numbers = table.kind_low[rows].tolist(), np.stack(columns, axis=1).tolist()
    for kind, communicator, values in zip(kinds, of.tolist(), numbers, strict=True):
        yield CollectiveCall(names.get(kind, ""), matching.names[communicator], *values)
