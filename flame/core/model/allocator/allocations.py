"""Hold what was allocated: from when to when, how much, and by whose code."""

from __future__ import annotations

import numpy as np

from flame.core.columns import I4, I8, Bool
from flame.core.lazy_dataclass import dataclass

BEFORE = -1
"""Begin of memory that was allocated before the history begins."""

ALIVE = np.int64(np.iinfo(np.int64).max)
"""End of memory that is not given back while the history lasts."""


@dataclass(frozen=True, eq=False)
class Allocations:
    """Hold allocations in columns, one row each, ordered by device and begin.

    | column | dtype | meaning |
    |---|---|---|
    | device | i4 | number of the GPU |
    | begin, end | i8 | places among the events of the device: it lives in [begin, end) |
    | size | i8 | bytes that the program asked for |
    | begin_time, end_time | i8 | ns; `history.NO_TIME` where that is not known |
    | address, stream | i8 | as the allocator has recorded them |
    | python, native | i4 | ids of stacks, 0 without one |

    ``begin`` is `BEFORE` and ``end`` `ALIVE` where the history does not have it.
    """

    device: I4
    begin: I8
    end: I8
    size: I8
    begin_time: I8
    end_time: I8
    address: I8
    stream: I8
    python: I4
    native: I4

    def __len__(self) -> int:
        return len(self.device)

    def take(self, rows: I8 | Bool) -> Allocations:
        """Take the allocations ``rows``, indices or a mask."""
        columns = (getattr(self, name)[rows] for name in self.__dataclass_fields__)
        return Allocations(*columns)

    def alive_at(self, position: int) -> Bool:
        """Tell which live right after the event at ``position``; `BEFORE`: before the first."""
        alive: Bool = (self.begin <= position) & (self.end > position)
        return alive
