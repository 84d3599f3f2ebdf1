"""Collect how much memory PyTorch's allocator had given out on each GPU."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flame.core.columns import Column
from flame.core.model.activities import NONE
from flame.core.model.meta import AllocatorMemory
from flame.core.readers.kineto.context import AnyEvent, KinetoContext, fit_31_bits
from flame.core.readers.kineto.events import EventDetails
from flame.core.readers.kineto.vocabulary import amount

CATEGORY, NAME = "cpu_instant_event", "[memory]"
_CPU = 0
"""`Device Type` of the host: PyTorch's `DeviceType`; all others are GPUs of some kind."""


class MemoryInstants:
    """Collects the instants at which the allocator gave or took back memory of a GPU."""

    def __init__(self, context: KinetoContext) -> None:
        self._context = context
        self._parts: list[tuple[Column, ...]] = []

    def add(self, events: Sequence[AnyEvent]) -> None:
        """Add instants. Those before 2022 tell no sums."""
        named = [event for event in events if event.name == NAME and event.args is not None]
        some, time, _ = self._context.find_timed(named)
        details = self._context.details.of(some)
        rows = [at for at, one in enumerate(details) if _is_of_gpu(one)]
        device = fit_31_bits([amount(details[row].device) for row in rows])
        size = np.array([amount(details[row].in_use) for row in rows], np.int64)
        self._parts.append((time[rows], device, size))

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


def _is_of_gpu(details: EventDetails) -> bool:
    return amount(details.in_use) is not None and amount(details.device_type) not in (None, _CPU)
