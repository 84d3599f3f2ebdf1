"""Collect how much memory PyTorch's allocator had given out on each GPU."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flame.core.columns import Column
from flame.core.model.activities import NONE
from flame.core.model.meta import MemoryUse
from flame.core.readers.kineto.context import NO_ARGS, AnyEvent, KinetoContext, fit_31_bits

CATEGORY, NAME = "cpu_instant_event", "[memory]"
_CPU = 0
"""`Device Type` of the host: PyTorch's `DeviceType`; all others are GPUs of some kind."""


class AllocatorMemory:
    """Collects the instants at which the allocator gave or took back memory of a GPU."""

    def __init__(self, context: KinetoContext) -> None:
        self._context = context
        self._parts: list[tuple[Column, ...]] = []

    def add(self, events: Sequence[AnyEvent]) -> None:
        """Add instants. Those before 2022 tell no sums."""
        told = [event for event in events if event.name == NAME and _tells(event)]
        some, time, _ = self._context.find_timed(told)
        args = [event.args or NO_ARGS for event in some]
        device = fit_31_bits([one.memory_of for one in args])
        size = np.array([one.in_use for one in args], np.int64)
        self._parts.append((time, device, size))

    def build(self, numbers: Column) -> MemoryUse | None:
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
        return MemoryUse(time[order], index[order], size[order])


def _tells(event: AnyEvent) -> bool:
    args = event.args or NO_ARGS
    known = args.in_use is not None and args.in_use >= 0
    return known and args.memory_kind is not None and args.memory_kind != _CPU
