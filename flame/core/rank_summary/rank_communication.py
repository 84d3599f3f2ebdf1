"""Hold how much each rank communicated in each communicator: what is left of its collectives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8


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


def no_communication() -> RankCommunication:
    """Make that of ranks that communicate not at all."""
    return RankCommunication(**dict.fromkeys(COLUMNS, np.zeros(0, np.int64)))  # type: ignore[arg-type]


def merge_communication(parts: Sequence[RankCommunication]) -> RankCommunication:
    """Merge ``parts`` of different ranks: in any order and grouping the same, bit for bit."""
    if not parts:
        return no_communication()
    of = {name: np.concatenate([getattr(part, name) for part in parts]) for name in COLUMNS}
    order = np.lexsort((of["communicator"], of["rank"]))
    return RankCommunication(
        **{name: of[name][order] for name in COLUMNS},
        names=tuple(sorted({one for part in parts for one in part.names})),
    )
