"""Hold what ranks together tell of collectives: of each the least and most, and who had these."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8

UNKNOWN_END = np.iinfo(np.int64).min
"""The end of a collective on ranks that do not know the time of day."""


class IdentitySource(IntEnum):
    """Say what tells which collective of other ranks one is: the more to be trusted, the less.

    ``NUMBERED``: its group and its number in it are recorded. All others have the number at which
    they come on their rank: of a recorded group ``COUNTED``, of a group that the user has named
    ``MESH``, else of a ``STREAM``. ``UNDECIDED`` are of a stream that could be of several groups.
    """

    NUMBERED = 0
    COUNTED = 1
    MESH = 2
    STREAM = 3
    UNDECIDED = 4


class CollectiveTable(NamedTuple):
    """Hold collectives, in order of communicator and ordinal; columns are i8[n], times in ns.

    ``communicator`` is the hash of what names it, ``ordinal`` the collective's number in it. What
    the ranks call a collective has hashes from ``kind_low`` to ``kind_high``: one, if they agree.
    ``ranks`` is how many have it. ``shortest`` is the least duration and ``last`` the rank that has
    it (of several the lowest): it waited for nobody. ``last_own`` is the time between the end of
    that rank's collective before and the beginning of this one, and ``last_work`` the part of it in
    which its GPU was busy. ``longest`` and ``first`` are the other end. ``duration``, ``own`` and
    ``work`` are sums over the ranks. ``latest_end`` is the latest end of the ranks, ns since 1970,
    `UNKNOWN_END` where none knows it.

    ``source`` is the least trusted `IdentitySource` of the ranks, ``size`` how many ranks
    its communicator has, 0 where none of them says it.

    ``communicators`` and ``kinds`` say what the hashes are of, by hash.
    """

    communicator: I8
    ordinal: I8
    kind_low: I8
    kind_high: I8
    ranks: I8
    shortest: I8
    last: I8
    last_own: I8
    last_work: I8
    longest: I8
    first: I8
    duration: I8
    own: I8
    work: I8
    latest_end: I8
    source: I8
    size: I8
    communicators: tuple[tuple[int, str], ...] = ()
    kinds: tuple[tuple[int, str], ...] = ()


COLUMNS = CollectiveTable._fields[:-2]


def no_collectives() -> CollectiveTable:
    """Make the table of no collective."""
    return CollectiveTable(**dict.fromkeys(COLUMNS, np.zeros(0, np.int64)))  # type: ignore[arg-type]
