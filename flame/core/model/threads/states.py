"""Hold when threads were held up, and what by: see `StateKind`."""

from __future__ import annotations

from typing import NamedTuple

from flame.core.columns import I4, I8, U1
from flame.core.lazy_dataclass import dataclass


class StateOwner(NamedTuple):
    """Name who was held up: ``thread`` of the profile, or by ``label`` alone where that is -1."""

    label: str
    thread: int


@dataclass(frozen=True, eq=False)
class StateSpans:
    """Hold when each of ``owners`` was in a state, in no order; they may overlap.

    ``kind`` u1[n] is a `StateKind` (of `flame.core.model.calls`); ``name`` and ``owner`` i4[n] are
    places in ``names`` and ``owners``; ``start`` and ``end`` (exclusive, after it) i8[n] are in ns.
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
