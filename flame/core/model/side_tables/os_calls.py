"""Hold calls of the operating system, and the threads that made them."""

from __future__ import annotations

from typing import NamedTuple

from flame.core.columns import I4, I8
from flame.core.lazy_dataclass import dataclass


class OsThread(NamedTuple):
    """Name a thread that called the operating system, by its numbers there (-1: unknown).

    ``process`` and ``thread`` are places in the lists of the profile, -1 where these have it not;
    ``source`` is its file.
    """

    source: int
    process: int
    thread: int
    pid: int
    tid: int


@dataclass(frozen=True, eq=False)
class OsCalls:
    """Hold calls of the operating system's runtime, in no order.

    ``name`` i4[n] is a place in ``names``, ``thread`` i4[n] one in ``threads``; ``start`` and
    ``end`` (exclusive) i8[n] are in ns. ``left_out`` counts calls whose times make no sense.
    """

    names: tuple[str, ...]
    threads: tuple[OsThread, ...]
    name: I4
    thread: I4
    start: I8
    end: I8
    left_out: int = 0

    def __len__(self) -> int:
        return len(self.start)
