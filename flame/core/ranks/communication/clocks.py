"""Tell how far the clocks of ranks are apart, by collectives, which end on all of them together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, distinct, run_starts
from flame.core.rank_summary.collective_table import UNKNOWN_END
from flame.core.ranks.communication.waits import RankWaits


class RankClocks(NamedTuple):
    """Say by how much the clock of each ``rank`` is behind, i8[ranks] each; ns.

    Add ``offset`` to its times to have them on the clock of the rank that is ahead of all in its
    ``part``: ranks that no chain of collectives joins have different parts, and do not compare.
    ``error`` is what 95 % of the ends of collectives are within, in the worst of its communicators.
    """

    rank: I8
    offset: I8
    error: I8
    part: I8

    @property
    def apart(self) -> int:
        """How far the clocks of the ranks are apart at most, ns."""
        return int(self.offset.max(initial=0))

    def tell(self, skew: int) -> bool:
        """Whether they tell a ``skew`` of so many ns, across all ranks."""
        together = len(self.rank) > 0 and not self.part.any()
        return together and int(self.error.max()) <= skew


class _Ends(NamedTuple):
    """Hold what each rank's clock says of the ends in each communicator; by communicator."""

    communicator: I8
    rank: I8
    calls: I8
    behind: I8
    error: I8


def clocks_of(waits: Sequence[RankWaits]) -> RankClocks:
    """Work out the clocks of the ranks whose collectives are matched and know the time of day."""
    ends = _ends(waits)
    rank, place = distinct(ends.rank)
    offset, part = np.zeros(len(rank), np.int64), np.arange(len(rank))
    begin = np.append(run_starts(ends.communicator), len(place))
    for at in _most_first(ends, begin):
        rows = slice(*begin[at : at + 2].tolist())
        _join(place[rows], ends.behind[rows], offset, part)
    error = np.zeros(len(rank), np.int64)
    np.maximum.at(error, place, ends.error)
    parts, part = distinct(part)
    least = np.full(len(parts), np.iinfo(np.int64).max)
    np.minimum.at(least, part, offset)
    return RankClocks(rank, offset - least[part], error, part)


def _ends(waits: Sequence[RankWaits]) -> _Ends:
    """The ends that are known of all ranks, in order of communicator and rank."""
    nothing = np.zeros((5, 0), np.int64)
    columns = [
        np.stack(
            [
                one.communicator,
                np.full(len(one.communicator), one.rank),
                one.communicator_calls,
                one.behind,
                one.behind_error,
            ]
        )
        for one in waits
    ]
    found = np.concatenate([nothing, *columns], axis=1)
    found = found[:, found[3] != UNKNOWN_END]
    return _Ends(*found[:, np.lexsort((found[1], found[0]))])


def _most_first(ends: _Ends, begin: I8) -> list[int]:
    """The places of communicators, those of most ranks first, of equals that with most calls."""
    if not len(ends.rank):
        return []
    calls = np.maximum.reduceat(ends.calls, begin[:-1])
    order: list[int] = np.lexsort((ends.communicator[begin[:-1]], -calls, -np.diff(begin))).tolist()
    return order


def _join(ranks: I8, behind: I8, offset: I8, part: I8) -> None:
    """Put ``ranks`` into one part, with all that are in a part with them already."""
    shift = behind - offset[ranks]
    while len(other := np.flatnonzero(part[ranks] != part[ranks[0]])):
        whole = part == part[ranks[other[0]]]
        offset[whole] += shift[other[0]] - shift[0]
        part[whole] = part[ranks[0]]
