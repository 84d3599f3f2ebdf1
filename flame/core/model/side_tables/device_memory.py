"""Hold from when to when memory of GPUs was allocated."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.columns import I4, I8
from flame.core.lazy_dataclass import dataclass

NEVER = np.int64(np.iinfo(np.int64).max)
"""End of memory that is not freed while the trace is recorded."""


class MemoryPlace(NamedTuple):
    """Name what memory of whom was allocated; ``kind`` is one of those of launches, or empty.

    ``process`` and ``device`` are places in the lists of the profile, -1 where these have it not;
    ``gpu`` is the process's own number of the GPU.
    """

    source: int
    process: int
    device: int
    gpu: int
    kind: str


@dataclass(frozen=True, eq=False)
class DeviceMemory:
    """Hold allocations of memory by the GPU's driver, in no order.

    ``place`` i4[n] is a place in ``places``; ``start`` and ``end`` i8[n] say from when to when it
    was allocated, ns, `NEVER` where it was not freed; ``size`` i8[n] is in bytes. ``strays`` i8[m]
    counts, by place, what was freed that had been allocated before recording began. ``left_out``
    counts events that make no sense.
    """

    places: tuple[MemoryPlace, ...]
    place: I4
    start: I8
    end: I8
    size: I8
    strays: I8
    left_out: int = 0

    def __len__(self) -> int:
        return len(self.start)
