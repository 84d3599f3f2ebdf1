"""Pair the events of an allocator's history to allocations, anchored at the state at the end.

A history is a ring: what was allocated before its first event is only seen when it is given back,
or among the blocks at the end. Counted from nothing, the memory of a GPU of 80 GB grows to 110
(github.com/pytorch/pytorch/issues/158364); so what lives at the end is taken from the blocks, and
what is given back without having been allocated lived from before the history on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from flame.core.columns import I4, I8, Bool, order_by
from flame.core.lazy_dataclass import dataclass
from flame.core.model.allocator.allocations import ALIVE, BEFORE, Allocations
from flame.core.model.allocator.history import (
    NO_TIME,
    AllocatorAction,
    AllocatorEvents,
    AllocatorHistory,
    BlockState,
    MemoryBlocks,
)
from flame.core.units import format_count


@dataclass(frozen=True)
class PairingLosses:
    """Count what in a history does not fit together; all are 0 where nothing was lost.

    ``never_freed`` allocations ended when their address was given out again; ``freed_twice`` gives
    memory back that was not allocated since; of ``no_block`` allocations, which live at the end,
    there is no block then; ``other_size`` differ in size from what was given back.
    """

    never_freed: int = 0
    freed_twice: int = 0
    no_block: int = 0
    other_size: int = 0


def loss_warnings(losses: PairingLosses, left_out: int) -> Iterator[str]:
    """Say what was lost, and how many events and blocks were ``left_out``."""
    told = {
        "allocations were never given back, though their addresses were given out again": (
            losses.never_freed
        ),
        "times memory was given back that was not allocated": losses.freed_twice,
        "allocations live at the end, but no block is theirs": losses.no_block,
        "allocations differ in size from what was given back": losses.other_size,
        "events and blocks make no sense, and are left out": left_out,
    }
    yield from (f"{format_count(count)} {what}" for what, count in told.items() if count)


def pair_events(history: AllocatorHistory) -> tuple[Allocations, PairingLosses]:
    """Find the allocations of ``history``, and count what does not fit together in it."""
    events = history.events
    events = events.take(
        (events.action == AllocatorAction.ALLOC) | (events.action == AllocatorAction.FREE)
    )
    events = events.take(order_by([events.position, events.address, events.device]))
    is_alloc = events.action == AllocatorAction.ALLOC
    same = _continues(events)
    of_alloc, strays, twice, losses = _paired(events, is_alloc, same)
    blocks = history.blocks
    used = np.flatnonzero(blocks.state == BlockState.ALLOCATED)
    device = history.segments.device[blocks.segment]
    known = _known_at_end(of_alloc, blocks, used, device)
    parts = [of_alloc, strays, _of_blocks(history, used[~known], device)]
    table = _joined(parts)
    lost = int((of_alloc.end == ALIVE).sum()) - int(known.sum()) if len(history.segments) else 0
    never_freed, other_size = losses
    return (
        table.take(order_by([table.address, table.begin, table.device])),
        PairingLosses(never_freed, int(twice), max(lost, 0), other_size),
    )


def _continues(events: AllocatorEvents) -> Bool:
    """Whether each event is of the same memory as the one before it."""
    same = np.zeros(len(events), bool)
    same[1:] = (events.device[1:] == events.device[:-1]) & (
        events.address[1:] == events.address[:-1]
    )
    return same


def _paired(
    events: AllocatorEvents, is_alloc: Bool, same: Bool
) -> tuple[Allocations, Allocations, int, tuple[int, int]]:
    """What was allocated, and what was only given back; ordered by device, address, position."""
    follows = np.append(same[1:], False)
    rows = np.flatnonzero(is_alloc)
    after = np.minimum(rows + 1, max(len(events) - 1, 0))
    ended, freed = follows[rows], follows[rows] & ~is_alloc[after]
    table = Allocations(
        events.device[rows],
        events.position[rows],
        np.where(ended, events.position[after], ALIVE),
        events.size[rows],
        events.time[rows],
        np.where(ended, events.time[after], NO_TIME),
        events.address[rows],
        events.stream[rows],
        events.python[rows],
        events.native[rows],
    )
    differ = int((events.size[rows] != events.size[after])[freed].sum())
    stray = np.flatnonzero(~is_alloc & ~same)
    before = np.maximum(np.arange(len(events)) - 1, 0)
    twice = int((~is_alloc & same & ~is_alloc[before]).sum())
    return table, _given_back(events, stray), twice, (int((ended & ~freed).sum()), differ)


def _given_back(events: AllocatorEvents, rows: I8) -> Allocations:
    """The memory that was allocated before the history, and given back in it."""
    size, none = len(rows), np.zeros(len(rows), np.int32)
    return Allocations(
        events.device[rows],
        np.full(size, BEFORE, np.int64),
        events.position[rows],
        events.size[rows],
        np.full(size, NO_TIME, np.int64),
        events.time[rows],
        events.address[rows],
        events.stream[rows],
        none,
        none,
    )


def _known_at_end(table: Allocations, blocks: MemoryBlocks, used: I8, device: I4) -> Bool:
    """Whether each of the blocks ``used`` is of an allocation that lives at the end."""
    alive = table.take(table.end == ALIVE)
    both = order_by(
        [
            np.concatenate([np.zeros(len(alive), np.int8), np.ones(len(used), np.int8)]),
            np.concatenate([alive.address, blocks.address[used]]),
            np.concatenate([alive.device, device[used]]),
        ]
    )
    address = np.concatenate([alive.address, blocks.address[used]])[both]
    place = np.concatenate([alive.device, device[used]])[both]
    is_block = both >= len(alive)
    same = np.zeros(len(both), bool)
    same[1:] = (address[1:] == address[:-1]) & (place[1:] == place[:-1]) & ~is_block[:-1]
    known = np.zeros(len(used), bool)
    known[both[is_block] - len(alive)] = same[is_block]
    return known


def _of_blocks(history: AllocatorHistory, rows: I8, device: I4) -> Allocations:
    """What lives at the end and was allocated before the history, of the blocks ``rows``."""
    blocks, size = history.blocks, len(rows)
    return Allocations(
        device[rows],
        np.full(size, BEFORE, np.int64),
        np.full(size, ALIVE, np.int64),
        blocks.requested[rows],
        np.full(size, NO_TIME, np.int64),
        np.full(size, NO_TIME, np.int64),
        blocks.address[rows],
        history.segments.stream[blocks.segment[rows]],
        blocks.python[rows],
        blocks.native[rows],
    )


def _joined(parts: Sequence[Allocations]) -> Allocations:
    names = Allocations.__dataclass_fields__
    return Allocations(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
