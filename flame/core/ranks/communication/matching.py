"""Decide which collectives are matched over all their ranks, and say why others are not."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, Bool, run_starts
from flame.core.rank_summary.collective_table import CollectiveTable, IdentitySource

_MOST_TOLD = 3
"""Numbers of collectives at which ranks are, that are told."""


class Matching(NamedTuple):
    """Say which rows of a `CollectiveTable` are ``matched``, bool[n], and that by communicator.

    ``communicator`` i8[m] are hashes, which rise; ``begin`` i8[m + 1] is where the rows of each
    begin. ``ranks`` i8[m] is how many it should have, ``calls`` and ``complete`` i8[m] how many
    collectives there are and how many of them are matched, ``why`` why all others are not.
    """

    matched: Bool
    communicator: I8
    begin: I8
    ranks: I8
    calls: I8
    complete: I8
    names: tuple[str, ...]
    why: tuple[str, ...]

    @property
    def of_row(self) -> I8:
        """The place of the communicator of each row, i8[n]."""
        return np.repeat(np.arange(len(self.calls)), self.calls)


def match_table(table: CollectiveTable, expected: int) -> Matching:
    """Decide which collectives of ``table`` all their ranks have, and call the same.

    ``expected`` is how many ranks the run has: that many have each stream. Other communicators have
    as many as they recorded; where they did not, the most that have one of its collectives. What
    came by its place alone counts only where all of the communicator does: else places may have
    shifted.
    """
    begin = run_starts(table.communicator)
    calls = np.diff(np.append(begin, len(table.communicator)))
    of = np.repeat(np.arange(len(begin)), calls)
    ranks = _expected(table, begin, expected)
    fits = (table.ranks == ranks[of]) & (table.ranks > 1) & (table.kind_low == table.kind_high)
    fits &= table.source != IdentitySource.UNDECIDED
    fits &= (table.size == 0) | (table.size == ranks[of])
    if len(begin):
        whole = np.logical_and.reduceat(fits, begin)
        fits &= whole[of] | (table.source == IdentitySource.NUMBERED)
    names = dict(table.communicators)
    matching = Matching(
        fits,
        table.communicator[begin],
        np.append(begin, len(of)),
        ranks,
        calls,
        np.bincount(of[fits], minlength=len(begin)).astype(np.int64),
        tuple(names.get(one, "") for one in table.communicator[begin].tolist()),
        ("",) * len(begin),
    )
    odd = np.flatnonzero(matching.complete < calls).tolist()
    why = {at: _why(table, matching, at) for at in odd}
    return matching._replace(why=tuple(why.get(at, "") for at in range(len(begin))))


def _expected(table: CollectiveTable, begin: I8, expected: int) -> I8:
    """How many ranks each communicator should have."""
    if not len(begin):
        return begin
    size = np.maximum.reduceat(table.size, begin)
    most = np.maximum.reduceat(table.ranks, begin)
    source = np.maximum.reduceat(table.source, begin)
    ranks: I8 = np.where(size > 0, size, most)
    return np.where(source >= IdentitySource.STREAM, expected, ranks)


def _why(table: CollectiveTable, matching: Matching, at: int) -> str:
    """Why collectives of the communicator ``at`` are not matched."""
    rows = slice(*matching.begin[at : at + 2].tolist())
    have, size, ranks = table.ranks[rows], table.size[rows], int(matching.ranks[at])
    if (table.source[rows] == IdentitySource.UNDECIDED).any():
        return "which group of ranks it is of is not recorded"
    if ((size > 0) & (size != ranks)).any():
        return f"its group has {int(size.max())} ranks and is not recorded, there are {ranks}"
    if have.max() < 2:
        return "one rank alone"
    if have.max() != ranks:
        return f"only {int(have.max())} of its {ranks} ranks were found"
    if (have != ranks).any():
        counted = bool((table.source[rows] != IdentitySource.NUMBERED).any())
        verbs = ("has", "have") if counted else ("is at", "are at")
        return _where_ranks_are(table.ordinal[rows] + counted, have, verbs)
    return "the ranks call different collectives"


def _where_ranks_are(ordinal: I8, have: I8, verbs: tuple[str, str]) -> str:
    """How far ranks have come, ``2 ranks are at 641, 30 are at 640``, if that is what differs.

    ``have`` is how many ranks have the collective of each ``ordinal``, which rise.
    """
    leave = have - np.append(have[1:], 0)
    if (leave < 0).any():
        return f"{int((have != have.max()).sum())} of {len(have)} lack ranks"
    stops = np.flatnonzero(leave)[::-1].tolist()
    told = [(int(leave[stop]), int(ordinal[stop])) for stop in stops[:_MOST_TOLD]]
    parts = [f"{number} {verbs[number > 1]} {at}" for number, at in told]
    parts[0] = parts[0].replace(" ", " ranks " if told[0][0] > 1 else " rank ", 1)
    return ", ".join([*parts, *["…"] * (len(stops) > _MOST_TOLD)])
