"""Merge the PC samples of several profiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from flame.core.columns import I4
from flame.core.model.activities import NONE, Groups
from flame.core.model.pc_samples import Sampling
from flame.core.model.profile import Profile


def merge_samplings(
    profiles: Sequence[Profile], frames: Sequence[I4], groups: Groups
) -> Sampling | None:
    """Merge the samples of all ``profiles``, whose activities follow each other in ``groups``.

    ``frames`` are for each profile the new ids of its frames. None where nobody has any.
    """
    if all(profile.sampling is None for profile in profiles):
        return None
    parts = [profile.sampling or _empty_sampling(profile) for profile in profiles]
    renamed = [
        replace(part, sass=ids[part.sass], stall=ids[part.stall])
        for part, ids in zip(parts, frames, strict=True)
    ]
    return concatenate_samplings(renamed, _distribution_of_groups(profiles, parts, groups))


def concatenate_samplings(parts: Sequence[Sampling], of_group: I4) -> Sampling:
    """Concatenate the distributions of ``parts``, which share frames; set ``of_group``."""
    codes = np.cumsum([0, *(len(part.codes) for part in parts)])
    sizes = np.concatenate([np.diff(part.bounds) for part in parts])
    numbered = zip(parts, codes.tolist(), strict=False)
    return Sampling(
        codes=tuple(code for part in parts for code in part.codes),
        of_group=of_group,
        bounds=np.concatenate([[0], np.cumsum(sizes)]),
        code=np.concatenate([part.code + np.int32(first) for part, first in numbered]),
        place=np.concatenate([part.place for part in parts]),
        sass=np.concatenate([part.sass for part in parts]),
        stall=np.concatenate([part.stall for part in parts]),
        samples=np.concatenate([part.samples for part in parts]),
        exact=np.concatenate([part.exact for part in parts]),
    )


def _distribution_of_groups(
    profiles: Sequence[Profile], parts: Sequence[Sampling], groups: Groups
) -> I4:
    """Return the distribution of each new group: its rows were in one group before."""
    first = 0
    distribution = np.full(len(groups), NONE, np.int32)
    of_rows = []
    for profile, part in zip(profiles, parts, strict=True):
        of_group = np.where(part.of_group >= 0, part.of_group + np.int32(first), NONE)
        of_rows.append(of_group[profile.activities.groups.of_row])
        first += len(part)
    distribution[groups.of_row] = np.concatenate(of_rows)
    return distribution


def _empty_sampling(profile: Profile) -> Sampling:
    none, empty = np.zeros(0, np.int32), np.zeros(0, np.int64)
    of_group = np.full(len(profile.activities.groups), NONE, np.int32)
    start = np.zeros(1, np.int64)
    return Sampling((), of_group, start, none, none, none, none, empty, np.zeros(0, bool))
