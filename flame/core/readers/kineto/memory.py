"""Collect what PyTorch's allocator gave out and took back on each GPU, and how much was in use."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flame.core.columns import I4, I8, Column, unique_rows
from flame.core.model.activities import NONE
from flame.core.model.allocator.memory_events import UNTOLD, MemoryEvents, ReservedSizes
from flame.core.model.launches import DEVICE
from flame.core.model.meta import AllocatorMemory
from flame.core.model.side_tables.device_memory import MemoryPlace
from flame.core.readers.kineto.context import AnyEvent, KinetoContext, fit_31_bits
from flame.core.readers.kineto.events import EventDetails
from flame.core.readers.kineto.vocabulary import amount

CATEGORY, NAME = "cpu_instant_event", "[memory]"
_CPU = 0
"""`Device Type` of the host: PyTorch's `DeviceType`; all others are GPUs of some kind."""
_MOST_BYTES = 1 << 53
"""Bytes beyond are damage: sums fit 64 bits."""

NO_EVENTS = (
    "profile_memory was on, but the trace has no events of memory: "
    "https://github.com/pytorch/pytorch/issues/166121"
)


class MemoryInstants:
    """Collects the instants at which the allocator gave or took back memory of a GPU."""

    def __init__(self, context: KinetoContext) -> None:
        self._context = context
        self._parts: list[tuple[Column, ...]] = []
        self._events: list[tuple[Column, ...]] = []
        self._left_out = 0
        self._seen = False

    def add(self, events: Sequence[AnyEvent]) -> None:
        """Add instants. Those before 2022 tell no sums."""
        named = [event for event in events if event.name == NAME and event.args is not None]
        self._seen |= bool(named)
        some, time, _ = self._context.find_timed(named)
        details = self._context.details.of(some)
        rows = [at for at, one in enumerate(details) if _is_of_gpu(one)]
        device = fit_31_bits([amount(details[row].device) for row in rows])
        size = np.array([amount(details[row].in_use) for row in rows], np.int64)
        self._parts.append((time[rows], device, size))
        self._add_events(some, time, details)

    def add_old(self, events: Sequence[AnyEvent]) -> None:
        """Note whether there are instants of 2021, which name no address: whose they are is open.

        They have no category, as what names threads.
        """
        self._seen = self._seen or any(event.name == NAME for event in events)

    def _add_events(
        self, events: Sequence[AnyEvent], time: I8, details: Sequence[EventDetails]
    ) -> None:
        """Add what was given out or taken back at an address; nothing at all changes nothing."""
        gpu = [at for at, one in enumerate(details) if amount(one.device_type) not in (None, _CPU)]
        told = [at for at in gpu if details[at].change != 0]
        rows = [at for at in told if _makes_sense(details[at])]
        self._left_out += len(told) - len(rows)
        kept = [details[row] for row in rows]
        changes = [_change(one) or 0 for one in kept]
        used = (amount(one.in_use) for one in kept)
        self._events.append(
            (
                time[rows],
                self._context.thread_numbers([events[row] for row in rows]),
                fit_31_bits([amount(one.device) for one in kept]),
                np.array([amount(one.address) for one in kept], np.int64),
                np.array(changes, np.int64),
                np.array([UNTOLD if one is None else one for one in used], np.int64),
                np.array([_reserved(one) for one in kept], np.int64),
                np.array([amount(one.order) or 0 for one in kept], np.int64),
            )
        )

    @property
    def seen(self) -> bool:
        """Whether there was any such instant, of a GPU or of the host."""
        return self._seen

    @property
    def devices(self) -> I4:
        """The numbers of the GPUs of which memory was given out or taken back."""
        return np.concatenate([np.zeros(0, np.int32), *(part[2] for part in self._events)])

    def build(self, numbers: Column) -> AllocatorMemory | None:
        """Build the table, in order of time; ``numbers`` are those of GPUs by index.

        None where nothing is told.
        """
        if not sum(len(part[0]) for part in self._parts):
            return None
        time, device, size = (np.concatenate(columns) for columns in zip(*self._parts, strict=True))
        order = np.argsort(time, kind="stable")
        place = np.searchsorted(numbers, device)
        known = np.append(numbers, NONE)[place] == device
        index = np.where(known & (device >= 0), place, NONE).astype(np.int32)
        return AllocatorMemory(time[order], index[order], size[order])

    def build_events(self, numbers: Column, process_of: I4) -> MemoryEvents | None:
        """Build what was given out and taken back, in order; None where nothing was.

        ``numbers`` are those of GPUs by index, all of `devices` among them, ``process_of`` are the
        processes of threads. Each process has an allocator of its own.
        """
        if not sum(len(part[0]) for part in self._events):
            return None
        columns = [np.concatenate(parts) for parts in zip(*self._events, strict=True)]
        order = np.lexsort((columns[-1], process_of[columns[1]], columns[0]))
        time, thread, gpu, address, change, in_use, reserved = (one[order] for one in columns[:-1])
        process, device = process_of[thread], np.searchsorted(numbers, gpu)
        first, place = unique_rows([process, device])
        named = zip(
            process[first].tolist(), device[first].tolist(), gpu[first].tolist(), strict=True
        )
        owner = place.astype(np.int32)
        return MemoryEvents(
            time,
            owner,
            owner,
            address,
            np.abs(change),
            change > 0,
            process,
            thread,
            np.zeros(len(time), np.int64),
            in_use,
            tuple(MemoryPlace(0, *one, DEVICE) for one in named),
            self._left_out,
            _reserved_sizes(time, owner, device.astype(np.int32), reserved),
        )


def _reserved_sizes(time: I8, owner: I4, device: I4, size: I8) -> ReservedSizes | None:
    """What each allocator has reserved after each event, of those that say so.

    Before its first event an allocator is taken to have had as much as then.
    """
    rows = np.flatnonzero(size != UNTOLD)
    if not len(rows):
        return None
    told = size[rows]
    everything = np.ones(len(time), bool)
    return ReservedSizes(rows, time[rows], owner[rows], device[rows], told, told, everything)


def _reserved(details: EventDetails) -> int:
    size = amount(details.reserved)
    return UNTOLD if size is None or size >= _MOST_BYTES else size


def _is_of_gpu(details: EventDetails) -> bool:
    return amount(details.in_use) is not None and amount(details.device_type) not in (None, _CPU)


def _makes_sense(details: EventDetails) -> bool:
    gpu = amount(details.device)
    known = gpu is not None and gpu < 1 << 31
    return known and _change(details) is not None and amount(details.address) is not None


def _change(details: EventDetails) -> int | None:
    """How many bytes were given out, negative: taken back; None where that makes no sense."""
    change = details.change
    return change if type(change) is int and 0 < abs(change) < 1 << 62 else None
