"""Hold when threads were held up, and what by: garbage collection, the GIL, loading, profiler."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from flame.core.columns import I4, I8, U1


class StateKind(IntEnum):
    """Name what a thread was held up by, or that it held the GIL.

    The numbers follow those of `CallClass`, to share a column with it.
    """

    COLLECTION = 40
    GIL_HELD = 41
    GIL_WAITING = 42
    LOADING = 43
    PROFILER = 44


class StateOwner(NamedTuple):
    """Name who was held up: ``thread`` of the profile, or by ``label`` alone where that is -1."""

    label: str
    thread: int


@dataclass(frozen=True, eq=False)
class StateSpans:
    """Hold when each of ``owners`` was in a state, in no order; they may overlap.

    ``kind`` u1[n] is a `StateKind`; ``name`` and ``owner`` i4[n] are places in ``names`` and
    ``owners``; ``start`` and ``end`` (exclusive, after it) i8[n] are in ns.
    """

    names: tuple[str, ...]
    owners: tuple[StateOwner, ...]
    kind: U1
    name: I4
    owner: I4
    start: I8
    end: I8

    def __len__(self) -> int:
        return len(self.start)
