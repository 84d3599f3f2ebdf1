"""Divide the memory that an allocator has reserved, at the end, into parts that add up to it."""

from __future__ import annotations

import numpy as np

from flame.core.columns import I8, Bool, rows_by_value, sum_by
from flame.core.model.allocator.history import AllocatorHistory, BlockState, MemoryBlocks
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
    in_use = sum_by(
        blocks.segment, (blocks.state != BlockState.FREE).astype(np.int64), len(segments)
    )
    by_device = rows_by_value(segments.device[blocks.segment])
    return {number: _parts(blocks, rows, in_use > 0) for number, rows in by_device}


def _parts(blocks: MemoryBlocks, rows: I8, in_use: Bool) -> ReservedParts:
    """Divide the blocks ``rows``; ``in_use`` (bool[segments]) has anything that is not free."""
    size, state = blocks.size[rows], blocks.state[rows]
    allocated, is_free = state == BlockState.ALLOCATED, state == BlockState.FREE
    requested, beside = int(blocks.requested[rows][allocated].sum()), in_use[blocks.segment[rows]]
    return ReservedParts(
        int(size.sum()),
        requested,
        int(size[allocated].sum()) - requested,
        int(size[state == BlockState.PENDING].sum()),
        int(size[is_free & beside].sum()),
        int(size[is_free & ~beside].sum()),
        int(size[is_free].max(initial=0)),
    )
