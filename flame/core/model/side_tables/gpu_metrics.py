"""Hold samples of the counters of GPUs."""

from __future__ import annotations

from typing import NamedTuple

from flame.core.columns import I4, I8
from flame.core.lazy_dataclass import dataclass

NAMELESS = "[metric "
"""Begins what stands for the name of a metric that the file does not name, before its number."""


class Counter(NamedTuple):
    """Name a counter of a GPU: its number in the file ``source``, and its place in the profile.

    The place is -1 where nothing ran on it.
    """

    source: int
    device: int
    gpu: int
    name: str


@dataclass(frozen=True, eq=False)
class GpuMetrics:
    """Hold samples of counters of GPUs, in no order.

    ``counter`` i4[n] is a place in ``counters``; ``time`` i8[n] is in ns, ``value`` i8[n] in the
    counter's unit, which its name tells. ``left_out`` counts samples without a sensible time.
    """

    counters: tuple[Counter, ...]
    counter: I4
    time: I8
    value: I8
    left_out: int = 0

    def __len__(self) -> int:
        return len(self.time)
