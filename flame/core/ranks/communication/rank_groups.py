"""Name the groups of ranks that communicate, where traces do not: ``pp=4,dp=2,tp=8``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import prod
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, distinct
from flame.core.errors import UsageError
from flame.core.lazy_regex import lazy_regex
from flame.core.rank_summary.collective_table import IdentitySource
from flame.core.rank_summary.content_hash import hash_text
from flame.core.ranks.communication.arrivals import Arrivals

_AXIS = lazy_regex(r"([A-Za-z_]\w{0,31})=([1-9][0-9]{0,6})")
_MOST_AXES = 8


class RankGroups(NamedTuple):
    """Hold a mesh of ranks: names of its axes and their sizes.

    Ranks count up along the last axis first, as in PyTorch's `DeviceMesh`. Megatron names its axes
    the other way round: its order ``tp-cp-ep-dp-pp``, in which ranks of one tensor-parallel group
    are neighbours, is ``pp=4,dp=2,cp=1,tp=8`` here (with ``--use-tp-pp-dp-mapping``
    ``dp=2,pp=4,…``).
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> RankGroups:
        """Read ``tp=8,pp=4``. Raises UsageError."""
        found = [_AXIS.fullmatch(part.strip()) for part in text.split(",")]
        axes = [(one[1], int(one[2])) for one in found if one]
        if len(axes) < len(found) or len(axes) > _MOST_AXES:
            raise UsageError(f"--groups {text!r}: write names and sizes, such as pp=4,dp=2,tp=8")
        names, sizes = zip(*axes, strict=True)
        if len(set(names)) < len(names):
            raise UsageError(f"--groups {text!r}: a name is there twice")
        return cls(names, sizes)

    @property
    def size(self) -> int:
        """How many ranks the mesh has."""
        return prod(self.sizes)

    def name_of(self, rank: int, axes: Sequence[int]) -> str:
        """Name the group of ``rank`` along ``axes``: ``tp of pp 3, dp 0``."""
        at = np.unravel_index(rank, self.sizes)
        others = [axis for axis in range(len(self.names)) if axis not in axes]
        where = ", ".join(f"{self.names[axis]} {int(at[axis])}" for axis in others)
        return "-".join(self.names[axis] for axis in axes) + (f" of {where}" if where else "")

    def of_size(self, ranks: int) -> Iterator[tuple[int, ...]]:
        """List the axes whose groups, one or several together, have so many ``ranks``."""
        wide = [axis for axis, size in enumerate(self.sizes) if size > 1]
        for number in range(1, len(wide) + 1):
            for axes in combinations(wide, number):
                if prod(self.sizes[axis] for axis in axes) == ranks:
                    yield axes


def name_groups(arrivals: Arrivals, groups: RankGroups) -> Arrivals:
    """Tell, of a rank's collectives known by their stream alone, which of ``groups`` they are of.

    By the size of the group, where that is recorded and only one along the axes has it; or if there
    is but one axis. Else they are `IdentitySource.UNDECIDED`, as those of a rank beyond the mesh.
    """
    of_stream = np.flatnonzero(arrivals.source == IdentitySource.STREAM)
    communicator, source = arrivals.communicator.copy(), arrivals.source.copy()
    size = arrivals.size.copy()
    names, used = dict(arrivals.communicators), dict[tuple[int, ...], int]()
    for stream in _by_first_use(communicator[of_stream]):
        rows = of_stream[arrivals.communicator[of_stream] == stream]
        axes = _axes(arrivals, rows, groups)
        if axes is None:
            source[rows] = IdentitySource.UNDECIDED
            continue
        used[axes] = used.get(axes, 0) + 1
        name = f"{groups.name_of(arrivals.rank, axes)}, stream {used[axes] - 1}"
        del names[stream]
        names[hash_text(name)] = name
        communicator[rows], source[rows] = hash_text(name), IdentitySource.MESH
        size[rows] = prod(groups.sizes[axis] for axis in axes)
    return arrivals._replace(
        communicator=communicator, source=source, size=size, communicators=tuple(names.items())
    )


def _by_first_use(communicator: I8) -> list[int]:
    """The streams in the order in which their collectives come."""
    streams, place = distinct(communicator)
    first = np.full(len(streams), len(place))
    np.minimum.at(first, place, np.arange(len(place)))
    found: list[int] = streams[np.argsort(first)].tolist()
    return found


def _axes(arrivals: Arrivals, rows: I8, groups: RankGroups) -> tuple[int, ...] | None:
    """The axes whose group collectives ``rows`` of a stream are of, None if that is not known."""
    if not 0 <= arrivals.rank < groups.size:
        return None
    sizes = distinct(arrivals.size[rows])[0]
    known = [int(one) for one in sizes.tolist() if one]
    if len(known) > 1:
        return None
    wide = tuple(axis for axis, size in enumerate(groups.sizes) if size > 1)
    if not known:
        return wide if len(wide) == 1 else None
    found = list(groups.of_size(known[0]))
    return found[0] if len(found) == 1 else None
