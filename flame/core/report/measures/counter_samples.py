"""Average samples of the counters of a GPU over any intervals: ranges, iterations, kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from flame.core.columns import I8, Bool, sum_by
from flame.core.lazy_dataclass import dataclass
from flame.core.lazy_regex import lazy_regex
from flame.core.model.side_tables.gpu_metrics import GpuMetrics
from flame.core.timeline.lane_intervals import LaneIntervals

ENOUGH = 10
"""Samples from which on their mean says something."""

CLASSES = {
    "sm": lazy_regex(r"SMs? Active\b.*"),
    "tensor": lazy_regex(r"Tensor (Active|Pipe)\b.*"),
    "dram_read": lazy_regex(r"DRAM Read\b.*"),
    "dram_write": lazy_regex(r"DRAM Write\b.*"),
}
"""What is shown beside ranges and kernels, by the names of counters. Only those in percent."""

_PERCENT = "[Throughput %]"
_MOST = 1 << 62

Means = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CounterSamples:
    """Hold the samples of one counter in order of time: ``time`` and ``value``, i8[n]."""

    name: str
    time: I8
    value: I8

    def means(self, spans: LaneIntervals, size: int) -> tuple[I8, Means]:
        """(number of samples, their mean) in the intervals of each lane, 0 to ``size`` - 1.

        The mean is NaN of fewer than `ENOUGH`. A sample counts where its time is.
        """
        first, last = (np.searchsorted(self.time, edge) for edge in (spans.begin, spans.end))
        count = sum_by(spans.lane, last - first, size)
        before = self._before
        total = np.bincount(spans.lane, before[last] - before[first], minlength=size)
        mean = np.full(size, np.nan)
        np.divide(total, count, out=mean, where=count >= ENOUGH)
        return count, mean

    @property
    def _before(self) -> I8 | Means:
        """The sum of the values before each sample, and of all; exact where it fits 64 bits."""
        fits = int(abs(self.value).max(initial=0)) * max(len(self.value), 1) < _MOST
        none = np.zeros(1, np.int64)
        if fits:
            return np.concatenate([none, np.cumsum(self.value)])
        return np.concatenate([none, np.cumsum(self.value.astype(np.float64))])


def counters_of(metrics: GpuMetrics, device: int, inside: Bool) -> list[CounterSamples]:
    """Collect the samples ``inside`` (bool[n]) of the counters of a GPU, by name.

    Samples of counters of one name are put together.
    """
    mine = {at: one.name for at, one in enumerate(metrics.counters) if one.device == device}
    names = sorted(set(mine.values()))
    number = np.full(len(metrics.counters), -1, np.int64)
    for at, name in mine.items():
        number[at] = names.index(name)
    of = number[metrics.counter]
    rows = np.flatnonzero(inside & (of >= 0))
    rows = rows[np.lexsort((metrics.time[rows], of[rows]))]
    edges = np.searchsorted(of[rows], np.arange(len(names) + 1))
    found = []
    for name, low, high in zip(names, edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        part = rows[low:high]
        if len(part):
            found.append(CounterSamples(name, metrics.time[part], metrics.value[part]))
    return found


def by_class(counters: list[CounterSamples]) -> dict[str, CounterSamples]:
    """Find the counter of each of `CLASSES`; the first of several, of those in percent."""
    found: dict[str, CounterSamples] = {}
    for one in counters:
        for key, pattern in CLASSES.items():
            if one.name.endswith(_PERCENT) and pattern.fullmatch(one.name):
                found.setdefault(key, one)
    return found
