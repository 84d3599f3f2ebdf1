"""Tell which collectives of a rank are the same as which of other ranks: communicator and number.

In order of trust, as `IdentitySource` has it: the group of ranks and the number that the trace
records; a recorded group, or the hash that NCCL gives all ranks of a communicator, and the place on
the rank; the stream, in order of first use, and the place on it. What comes by its place is matched
only where all ranks have equally many of the same kinds (`matching`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, Bool, distinct, pack, run_starts, unique_rows
from flame.core.lazy_regex import lazy_regex
from flame.core.model.activities import NONE
from flame.core.model.launches import RecordedCollective
from flame.core.model.profile import Profile
from flame.core.names.collectives import group_label
from flame.core.rank_summary.collective_table import IdentitySource
from flame.core.rank_summary.content_hash import hash_text
from flame.core.report.parties.collectives import CommunicationRows

TOGETHER = frozenset({"all-reduce", "reduce-scatter", "all-gather", "all-to-all", "barrier"})
"""Collectives in which no rank is done before all have come.

A sender or a root does not wait for those that only receive; of what has no known name nobody can
say.
"""

_HASH = lazy_regex(r"0x[0-9a-f]{16}")
_MEMBERS = lazy_regex(r"\[[0-9]{1,9}(?:, *[0-9]{1,9})*\]")


class Identity(NamedTuple):
    """Say which collectives those of a rank are, i8[n] each, as `CollectiveTable` has them."""

    communicator: I8
    ordinal: I8
    source: I8
    size: I8
    names: tuple[tuple[int, str], ...]


def identify(profile: Profile, rows: CommunicationRows, chosen: I8) -> Identity:
    """Identify the ``chosen`` of ``rows``, which are of a rank; by start."""
    group, groups = _recorded_groups(profile, rows.told[chosen])
    sequence = rows.sequence[chosen]
    party = rows.rank[chosen]
    numbered = _numbered(group, sequence, party)
    stream = _streams(profile, rows.row[chosen], group < 0)
    source = np.where(
        numbered,
        IdentitySource.NUMBERED,
        np.where(group >= 0, IdentitySource.COUNTED, IdentitySource.STREAM),
    )
    several = rows.ranks > 1
    first, place = unique_rows([source, group, stream, party])
    names = [
        _name(IdentitySource(source[at]), groups, int(group[at]), int(stream[at]))
        + (f" of GPU {int(party[at])} in one file" if several else "")
        for at in first.tolist()
    ]
    hashes = [hash_text(name) for name in names]
    return Identity(
        np.array(hashes, np.int64)[place] if hashes else place,
        np.where(numbered, sequence, _places_within(place)),
        np.full(len(source), IdentitySource.UNDECIDED) if several else source.astype(np.int64),
        _sizes(profile, rows, chosen),
        tuple(zip(hashes, names, strict=True)),
    )


def _recorded_groups(profile: Profile, told: I8) -> tuple[I8, tuple[str, ...]]:
    """(place among the groups of what is ``told`` of each row, -1 where no group is; groups)."""
    kinds = profile.collectives.kinds if profile.collectives else ()
    used, place = distinct(told)
    groups: dict[str, int] = {"": NONE}
    of_used = [
        groups.setdefault(_recorded_group(kinds[kind]) if kind >= 0 else "", len(groups) - 1)
        for kind in used.tolist()
    ]
    return np.array(of_used, np.int64)[place], tuple(groups)[1:]


def _recorded_group(kind: RecordedCollective) -> str:
    """The name of a group that no other has; empty where its ``kind`` does not tell one.

    Groups of one name are told apart by who is in them; what NCCL makes is a name by itself.
    """
    if kind.group and (kind.members or _HASH.fullmatch(kind.group)):
        return group_label(kind.group, kind.about, kind.members)
    return ""


def _numbered(group: I8, sequence: I8, party: I8) -> Bool:
    """Mark rows of groups whose recorded numbers tell which collective one is.

    They do not where a number is there twice.
    """
    known = (group >= 0) & (sequence >= 0)
    rows = np.flatnonzero(known)
    first, place = unique_rows([party[rows], group[rows], sequence[rows]])
    twice = rows[np.bincount(place, minlength=len(first))[place] > 1]
    marked: Bool = known & ~np.isin(group, group[twice])
    return marked


def _streams(profile: Profile, row: I8, wanted: Bool) -> I8:
    """The stream of each row that is ``wanted``, numbered in order of first use; else -1."""
    table, rows = profile.activities, np.flatnonzero(wanted)
    own = row[rows]
    _, place = distinct(pack([table.process[own], table.device[own], table.stream[own]]))
    found = np.full(len(row), NONE)
    found[rows] = _by_first_use(place)
    return found


def _by_first_use(place: I8) -> I8:
    """Number the values of ``place``, which are dense, in the order in which they come."""
    size = int(place.max(initial=NONE)) + 1
    first = np.zeros(size, np.int64)
    first[place[::-1]] = np.arange(len(place) - 1, -1, -1)
    number = np.empty(size, np.int64)
    number[np.argsort(first)] = np.arange(size)
    return number[place]


def _places_within(place: I8) -> I8:
    """Count the rows of one ``place`` in their order, from 0 on."""
    order = np.argsort(place, kind="stable")
    first = run_starts(place[order])
    length = np.diff(np.append(first, len(order)))
    found = np.empty(len(place), np.int64)
    found[order] = np.arange(len(place)) - np.repeat(first, length)
    return found


def _name(source: IdentitySource, groups: Sequence[str], group: int, stream: int) -> str:
    if source == IdentitySource.STREAM:
        return f"stream {stream}"
    return groups[group] if source == IdentitySource.NUMBERED else f"{groups[group]} in order"


def _sizes(profile: Profile, rows: CommunicationRows, chosen: I8) -> I8:
    """How many ranks each collective has, 0 unknown."""
    sizes = np.array([one.ranks or 0 for one in rows.collectives], np.int64)
    kinds = profile.collectives.kinds if profile.collectives else ()
    members = np.array([*(_number_of(kind.members) for kind in kinds), 0], np.int64)
    found: I8 = np.append(sizes, 0)[rows.of[chosen]]
    return np.where(found > 0, found, members[rows.told[chosen]])


def _number_of(members: str) -> int:
    """How many ``members`` there are, 0 where they are not all told."""
    return members.count(",") + 1 if _MEMBERS.fullmatch(members) else 0
