"""Tell why requests for memory failed."""

from __future__ import annotations

from typing import Literal

import numpy as np

from flame.core.model.allocator.history import AllocatorAction, AllocatorEvents
from flame.core.model.allocator.recorded import OutOfMemory, ReservedParts
from flame.core.units import format_bytes

_CHANGES = [
    action
    for action in AllocatorAction
    if action not in (AllocatorAction.OUT_OF_MEMORY, AllocatorAction.SNAPSHOT)
]


def failed_requests(
    events: AllocatorEvents, parts: ReservedParts | None
) -> tuple[OutOfMemory, ...]:
    """List the requests that failed, of the ``events`` of one device; ``parts`` are of the end.

    What the allocator had free is known of those after which nothing has changed.
    """
    failed = np.flatnonzero(events.action == AllocatorAction.OUT_OF_MEMORY)
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


Verdict = Literal["fragmented", "full", "enough was free", "not known"]


def verdict(failure: OutOfMemory) -> Verdict:
    """Judge why a request failed, by numbers; what was free is known at the end alone."""
    if failure.free is None:
        return "not known"
    if failure.is_fragmented:
        return "fragmented"
    return "full" if failure.is_full else "enough was free"


def failure_words(failure: OutOfMemory) -> str:
    """Say why a request failed, as far as it is known."""
    device = f"the device had {format_bytes(failure.device_free)} free"
    if failure.free is None:
        return f"{device}; what the allocator had free then is known of the end only"
    if failure.is_fragmented:
        largest = format_bytes(failure.largest_free or 0)
        remedy = "try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
        return (
            f"fragmented: {format_bytes(failure.free)} free, at most {largest} in a piece; {remedy}"
        )
    word = "full: " if failure.is_full else ""
    return f"{word}{device}, the allocator {format_bytes(failure.free)}"
