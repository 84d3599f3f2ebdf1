"""Divide the memory that an allocator has reserved, at the end, into parts that add up to it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, Bool, sum_by
from flame.core.model.allocator.history import AllocatorHistory, BlockState


class ReservedParts(NamedTuple):
    """Hold the bytes that a device's allocator has got from the driver, and what they are.

    ``requested`` is what the program asked for, ``rounding`` what its blocks are larger;
    ``pending`` was given back and waits for another stream; ``split`` is free in segments that are
    in use otherwise, and cannot go back to the driver; ``releasable`` is in segments with nothing
    in them. These five add up to ``reserved``. ``largest_free`` is the largest free block.
    """

    reserved: int
    requested: int
    rounding: int
    pending: int
    split: int
    releasable: int
    largest_free: int


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
