"""Hold how much each rank communicated in each communicator: what is left of its collectives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, pack, run_starts


class RankCommunication(NamedTuple):
    """Hold sums of collectives, in order of rank and communicator; columns i8[n], times in ns.

    ``communicator`` is the hash of what names it, as in `CollectiveTable`. Communication that does
    not bring all ranks together is in no table: its kind (``broadcast``) stands for a communicator,
    and ``together`` is 0. ``calls`` is how many there are, ``duration`` how long they took, ``own``
    the time before them and ``work`` the part of it in which the GPU was busy.

    ``names`` say what the hashes are of, by hash.
    """

    rank: I8
    communicator: I8
    together: I8
    calls: I8
    duration: I8
    own: I8
    work: I8
    names: tuple[tuple[int, str], ...] = ()


COLUMNS = RankCommunication._fields[:-1]
_SUMS = ("calls", "duration", "own", "work")


def no_communication() -> RankCommunication:
    """Make that of ranks that communicate not at all."""
    return RankCommunication(**dict.fromkeys(COLUMNS, np.zeros(0, np.int64)))  # type: ignore[arg-type]


def merge_communication(parts: Sequence[RankCommunication]) -> RankCommunication:
    """Merge ``parts``: in any order and grouping the same, bit for bit.

    What several have of one rank, as do files whose rank is not known, is added up.
    """
    parts = [part for part in parts if len(part.rank)]
    if not parts:
        return no_communication()
    of = {name: np.concatenate([getattr(part, name) for part in parts]) for name in COLUMNS}
    order = np.lexsort((of["communicator"], of["rank"]))
    begin = run_starts(pack([of["rank"][order], of["communicator"][order]]))
    first = {name: of[name][order][begin] for name in ("rank", "communicator", "together")}
    sums = {name: np.add.reduceat(of[name][order], begin) for name in _SUMS}
    return RankCommunication(
        **first,
        **sums,
        names=tuple(sorted({one for part in parts for one in part.names})),
    )
