"""Tell from which pool of the allocator each allocation was, as far as that is known."""

from __future__ import annotations

import numpy as np

from flame.core.columns import I4, I8, expand_ranges, order_by, unique
from flame.core.model.allocator.allocations import Allocations
from flame.core.model.allocator.history import AllocatorAction, AllocatorEvents, AllocatorHistory

UNKNOWN = -1

_MOST_CELLS = 1 << 24
_LAST_ADDRESS = np.int64(np.iinfo(np.int64).max)
_NEVER_KNOWN = np.int64(np.iinfo(np.int64).max)
"""Where memory was got and given back at so many places that only a made-up history has them."""

_MADE = (AllocatorAction.SEGMENT_ALLOC, AllocatorAction.SEGMENT_MAP)


def pools_of(history: AllocatorHistory, table: Allocations) -> I4:
    """Find the pool of each allocation in ``table``, i4 place in `MemorySegments.pools`.

    Known are the pools of the segments at the end, and so of what lies in one of them and was
    allocated after memory was got there last. What was in a segment that is gone is `UNKNOWN`.
    """
    found = np.full(len(table), UNKNOWN, np.int32)
    for device in np.unique(table.device).tolist():
        rows = np.flatnonzero(table.device == device)
        own = np.flatnonzero(history.segments.device == device)
        own = own[order_by([history.segments.address[own]])]
        begin, size = history.segments.address[own], history.segments.size[own]
        at = np.searchsorted(begin, table.address[rows], "right") - 1
        inside = (at >= 0) & (table.address[rows] - begin[at] < size[at]) if len(own) else at > 0
        rows, at = rows[inside], at[inside]
        since = _made_last(history.events, device, table.address[rows])
        kept = since < np.maximum(table.begin[rows], 0)
        found[rows[kept]] = history.segments.pool[own[at[kept]]]
    return found


def _made_last(events: AllocatorEvents, device: int, address: I8) -> I8:
    """The last event that got the memory at each ``address`` from the driver, -1 none; i8[n]."""
    made = events.take((events.device == device) & np.isin(events.action, _MADE))
    made = made.take(made.size > 0)
    end = made.address + np.minimum(made.size, _LAST_ADDRESS - made.address)
    cuts = unique(np.concatenate([made.address, end]))
    low, high = np.searchsorted(cuts, made.address), np.searchsorted(cuts, end)
    at = np.searchsorted(cuts, address, "right")
    if int((high - low).sum()) > _MOST_CELLS:
        return np.full(len(address), _NEVER_KNOWN)
    last = np.full(len(cuts) + 1, -1, np.int64)  # the first is below all of them
    np.maximum.at(last, expand_ranges(low, high - low) + 1, np.repeat(made.position, high - low))
    return last[at]
