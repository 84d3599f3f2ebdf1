"""Tell how large pools of memory were, from what CUPTI says of them with each event."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.columns import I4, I8, Bool, unique_rows
from flame.core.model.allocator.memory_events import UNTOLD, ReservedSizes

# CUpti_ActivityMemoryPoolType and CUpti_ActivityMemoryPoolOperationType in cupti_activity.h
LOCAL = 1
CREATED, DESTROYED, TRIMMED = 1, 2, 3
OF_MEMORY = 0
"""In ``operation`` of `PoolRows`: something was given out or back."""


class PoolRows(NamedTuple):
    """Hold what is told of pools in order: right after an event of memory, or of a pool itself.

    ``row`` i8[n] is the last event of memory then, -1 before the first; ``time`` i8[n] is in ns.
    ``pool`` i8[n] is the address of the pool, ``device`` i4[n] the GPU's place in the devices.
    ``size`` i8[n] is what the pool holds, ``used`` i8[n] what of that is in use, ``given`` i8[n]
    what was given out, 0 if nothing was; bytes. ``operation`` i8[n] is one of the above.
    """

    row: I8
    time: I8
    pool: I8
    device: I4
    size: I8
    used: I8
    given: I8
    operation: I8

    def take(self, rows: I8) -> PoolRows:
        """Take ``rows`` of them."""
        row, time, pool, device, size, used, given, operation = self
        ids = row[rows], time[rows], pool[rows], device[rows]
        return PoolRows(*ids, size[rows], used[rows], given[rows], operation[rows])


def reserved_in_pools(pools: PoolRows, covered: Bool) -> ReservedSizes | None:
    """Make of the events of ``pools`` what they reserve; None where they gave out nothing.

    ``covered`` bool[m] are the events of memory that is a pool's. Pools that give out no memory of
    a GPU are left out: they may be of other memory.
    """
    _, source = unique_rows([pools.pool, pools.device])
    gives = np.zeros(int(source.max(initial=-1)) + 1, bool)
    gives[source[pools.operation == OF_MEMORY]] = True
    rows = np.flatnonzero(gives[source])
    if not len(rows):
        return None
    source, pools = source[rows], pools.take(rows)
    # What is still in use of a pool that is destroyed stays.
    size = np.where(pools.operation == DESTROYED, pools.used, pools.size)
    # Nothing is in one that is new, or gives out its first.
    is_first = (pools.operation == OF_MEMORY) & (pools.given > 0) & (pools.used <= pools.given)
    before = np.where((pools.operation == CREATED) | is_first, 0, UNTOLD)
    number = source.astype(np.int32)
    return ReservedSizes(
        pools.row, pools.time, number, pools.device, size, before.astype(np.int64), covered
    )
