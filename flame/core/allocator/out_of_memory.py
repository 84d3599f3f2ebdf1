"""Tell why requests for memory failed."""

from __future__ import annotations

import numpy as np

from flame.core.model.allocator.history import Action, AllocatorEvents
from flame.core.model.allocator.recorded import OutOfMemory, ReservedParts

_CHANGES = [action for action in Action if action not in (Action.OUT_OF_MEMORY, Action.SNAPSHOT)]


def failed_requests(
    events: AllocatorEvents, parts: ReservedParts | None
) -> tuple[OutOfMemory, ...]:
    """List the requests that failed, of the ``events`` of one device; ``parts`` are of the end.

    What the allocator had free is known of those after which nothing has changed.
    """
    failed = np.flatnonzero(events.action == Action.OUT_OF_MEMORY)
    changes = np.flatnonzero(np.isin(events.action, _CHANGES))
    last = int(changes[-1]) if len(changes) else -1
    return tuple(
        OutOfMemory(
            int(events.position[row]),
            int(events.time[row]),
            int(events.size[row]),
            int(events.address[row]),
            int(events.python[row]),
            parts.free if parts and row > last else None,
            parts.largest_free if parts and row > last else None,
        )
        for row in failed.tolist()
    )
