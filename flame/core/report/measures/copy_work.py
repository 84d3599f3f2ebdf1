"""Collect copies and sets: what memory they are of, and whether their calls wait for them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, Bool, distinct
from flame.core.model.frames import COPIES, Kind
from flame.core.model.launches import PAGEABLE, UNKNOWN, LaunchConfig
from flame.core.model.profile import Profile
from flame.core.report.scope import Scope

SMALL = 64_000
"""Bytes that a synchronous copy to the GPU hands over at once, without waiting."""


class CopyWork(NamedTuple):
    """Hold copies and sets that pass, all i8[n] or bool[n] by row.

    ``row`` is that of `Profile.activities`; ``bytes`` may be `UNKNOWN`; ``memory`` numbers the
    kinds of memory in ``memories``, -1 unknown. ``called`` says that the launching call is known,
    and ``waits`` that it is one without `Async` in its name.
    """

    row: I8
    bytes: I8
    memory: I8
    called: Bool
    waits: Bool
    memories: tuple[LaunchConfig, ...]

    @property
    def known(self) -> bool:
        """Whether the kinds of memory of any were recorded."""
        return bool((self.memory >= 0).any())

    def with_pageable(self) -> Bool:
        """Tell which have a side in memory that the system may move, bool[n]."""
        pageable = [PAGEABLE in (one.source, one.target) for one in self.memories]
        return np.append(np.array(pageable, bool), False)[self.memory]


def copy_work(scope: Scope) -> CopyWork:
    """Collect the copies and sets of ``scope``; reads its file."""
    return collect_copies(scope.profile, scope.rows_of(*COPIES))


def collect_copies(profile: Profile, rows: I8) -> CopyWork:
    """Collect what is known of the copies and sets ``rows``."""
    launches, table = profile.launches, profile.activities
    called = table.launched[rows]
    waits = np.zeros(len(rows), bool)
    if called.any():
        waits[called] = np.isin(table.launch[rows[called]], _waiting(profile, rows[called]))
    if launches is None:
        unknown = np.full(len(rows), UNKNOWN, np.int64)
        return CopyWork(rows, unknown, unknown, called, waits, ())
    memory = launches.config[rows].astype(np.int64)
    return CopyWork(rows, launches.bytes[rows], memory, called, waits, launches.configs)


def _waiting(profile: Profile, rows: I8) -> list[int]:
    """The calls of copies and sets that wait: those without `Async` in their names."""
    frames = distinct(profile.activities.launch[rows].astype(np.int64))[0].tolist()
    return [at for at in frames if "Async" not in profile.frames[at].name]


def asynchronous_pageable(copies: CopyWork, profile: Profile) -> Bool:
    """Tell which copies of pageable memory an asynchronous call began: it waits all the same."""
    return _copies(copies, profile) & copies.called & ~copies.waits & copies.with_pageable()


def synchronous(copies: CopyWork, profile: Profile) -> Bool:
    """Tell which copies hold the host: not small ones to the GPU, nor those within a GPU."""
    table, frames = profile.activities, profile.frames
    kinds, place = distinct(table.frame[copies.row].astype(np.int64))
    names = np.array([frames[at].name.rpartition(" ")[2] for at in kinds.tolist()], object)
    name = names[place] if len(names) else np.zeros(0, object)
    small = (name == "HtoD") & (copies.bytes <= SMALL) & (copies.bytes >= 0)
    held: Bool = _copies(copies, profile) & copies.waits & ~small & (name != "DtoD")
    return held


def synchronous_sets(copies: CopyWork, profile: Profile) -> Bool:
    """Tell which sets hold the host: synchronous ones of memory that is not the GPU's alone."""
    held = [one.target in ("pinned", "managed") for one in copies.memories]
    of_host: Bool = np.append(np.array(held, bool), False)[copies.memory]
    return ~_copies(copies, profile) & copies.waits & of_host


def _copies(copies: CopyWork, profile: Profile) -> Bool:
    is_copy: Bool = profile.activities.kind[copies.row] == Kind.MEMCPY
    return is_copy
