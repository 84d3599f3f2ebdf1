"""Divide the memory that an allocator has reserved, at the end, into parts that add up to it."""

from __future__ import annotations

import numpy as np

from flame.core.columns import I8, Bool, sum_by
from flame.core.model.allocator.history import AllocatorHistory, BlockState
from flame.core.model.allocator.recorded import ReservedParts

PART_MEANINGS = {
    "requested": "asked for by the program",
    "rounding": "more than asked for, in blocks that are used",
    "pending": "given back, waits for another stream",
    "split": "free, in segments that are used otherwise",
    "releasable": "free, torch.cuda.empty_cache() returns it",
}
"""What the parts are, which add up to what is reserved, by the names of `ReservedParts`."""


def reserved_parts(history: AllocatorHistory) -> dict[int, ReservedParts]:
    """Divide what is reserved on each device, by its number."""
    blocks, segments = history.blocks, history.segments
    device = segments.device[blocks.segment]
    is_free = blocks.state == BlockState.FREE
    in_use = sum_by(blocks.segment, (~is_free).astype(np.int64), len(segments)) > 0
    return {
        int(number): _parts(history, device == number, is_free, in_use[blocks.segment])
        for number in np.unique(device)
    }


def _parts(history: AllocatorHistory, here: Bool, is_free: Bool, in_use: Bool) -> ReservedParts:
    blocks = history.blocks
    allocated = here & (blocks.state == BlockState.ALLOCATED)
    requested = _total(blocks.requested, allocated)
    return ReservedParts(
        _total(blocks.size, here),
        requested,
        _total(blocks.size, allocated) - requested,
        _total(blocks.size, here & (blocks.state == BlockState.PENDING)),
        _total(blocks.size, here & is_free & in_use),
        _total(blocks.size, here & is_free & ~in_use),
        int(blocks.size[here & is_free].max(initial=0)),
    )


def _total(sizes: I8, rows: Bool) -> int:
    return int(sizes[rows].sum())
