"""Hold samples of GPU metrics by the time that each stands for, and average them over others."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from flame.core.columns import F8, I8, Bool, Column, order_by, sum_by
from flame.core.gpu_metrics.names import Scale, scale_of
from flame.core.kept_results import kept
from flame.core.lazy_dataclass import dataclass
from flame.core.model.side_tables.gpu_metrics import Counter, GpuMetrics

ENOUGH = 20
"""Samples, and periods of time that they stand for, from which on their mean says something."""

_GAP = 3
"""Periods without a sample after which nothing is known of the time."""
_MOST = 1 << 62


class Marks(NamedTuple):
    """Say what lies before moments: ``weighted`` sums value × ns, ``known`` ns, of samples.

    Of the samples that stand for any time, ``ended`` counts those that end up to the moment, and
    ``begun`` those that begin before it. All are i8[n], ``weighted`` f8[n] where numbers are large.
    """

    weighted: I8 | F8
    known: I8
    ended: I8
    begun: I8

    def at(self, places: I8) -> Marks:
        """Choose moments."""
        begun = self.begun[places]
        return Marks(self.weighted[places], self.known[places], self.ended[places], begun)


class Sums(NamedTuple):
    """Sum up samples over the times of lanes: ``weighted`` by ns, ``exposure`` ns, ``samples``.

    ``exposure`` is the part of the time that samples stand for, ``samples`` how many do.
    """

    weighted: I8 | F8
    exposure: I8
    samples: I8

    def means(self, period: int) -> F8:
        """Average each lane, f8[n]: NaN of fewer than `ENOUGH` samples, or as many periods."""
        found = np.full(len(self.exposure), np.nan)
        enough = (self.samples >= ENOUGH) & (self.exposure >= ENOUGH * max(period, 1))
        np.divide(self.weighted, self.exposure, out=found, where=enough)
        return found


def sum_between(begin: Marks, end: Marks, lane: I8, size: int) -> Sums:
    """Sum up samples between moments, by lanes 0 to ``size`` - 1.

    Stretches are disjoint, and stand by lane and time.
    """
    weighted = end.weighted - begin.weighted
    number = end.begun - begin.ended
    if len(lane):  # one sample that two stretches have parts of
        twice = np.maximum(end.begun[:-1] - begin.ended[1:], 0)
        number[1:] -= np.where(lane[1:] == lane[:-1], twice, 0)
    total: I8 | F8 = (
        sum_by(lane, weighted.astype(np.int64, copy=False), size)
        if weighted.dtype == np.int64
        else np.bincount(lane, weighted, size)
    )
    return Sums(total, sum_by(lane, end.known - begin.known, size), sum_by(lane, number, size))


@dataclass(frozen=True, eq=False)
class SampledMetric:
    """Hold the samples of a metric of a GPU in order of time, no two at one.

    ``time`` and ``value`` are i8[n]. A sample stands for the time since the one before it; of which
    that is so ``known`` bool[n] tells: not of the first, none after a gap, and none whose value
    makes no sense. ``device`` is a place in the profile, -1 where nothing ran on the ``gpu`` of
    ``source``, or where it is not known which that is; ``period`` is in ns.
    """

    source: int
    device: int
    gpu: int
    name: str
    time: I8
    value: I8
    known: Bool
    period: int
    scale: Scale

    def __len__(self) -> int:
        return len(self.time)

    @cached_property
    def begin(self) -> I8:
        """When the time begins that each sample stands for, i8[n]; its own time where unknown."""
        before = np.concatenate([self.time[:1], self.time[:-1]])
        return np.where(self.known, before, self.time)

    @cached_property
    def _before(self) -> Marks:
        """What lies before each sample, and before the end of time."""
        length = np.where(self.known, self.time - self.begin, 0)
        fits = int(abs(self.value).max(initial=0)) * max(int(length.sum()), 1) < _MOST
        value = np.where(self.known, self.value, 0)
        weighted = _sums(value * length) if fits else _sums(value.astype(np.float64) * length)
        number = _sums(self.known.astype(np.int64))
        return Marks(weighted, _sums(length), number, number)

    def marks(self, times: I8) -> Marks:
        """Say what lies before each of ``times``, i8[n] on the trace's clock."""
        before = self._before
        ended = np.searchsorted(self.time, times, "right")
        begin = np.append(self.begin, np.iinfo(np.int64).max)[ended]
        part = np.maximum(times, begin) - begin
        value = np.append(np.where(self.known, self.value, 0), 0)[ended]
        begun = np.searchsorted(self.begin, times, "left")
        return Marks(
            before.weighted[ended] + value.astype(before.weighted.dtype) * part,
            before.known[ended] + part,
            before.ended[ended],
            before.begun[begun],
        )

    def over(self, lane: I8, begin: I8, end: I8, size: int) -> Sums:
        """Sum up samples over disjoint stretches, which stand by lane and time."""
        return sum_between(self.marks(begin), self.marks(end), lane, size)


def _sums(column: Column) -> Column:
    """The sum of what stands before each place, and of all."""
    before = np.zeros(len(column) + 1, column.dtype)
    np.cumsum(column, out=before[1:])
    return before


@dataclass(frozen=True, eq=False)
class SampledMetrics:
    """Hold all metrics by source, GPU and name.

    ``senseless`` counts samples whose value makes no sense, ``repeated`` those at the time of
    another one of their metric.
    """

    metrics: tuple[SampledMetric, ...]
    senseless: int
    repeated: int

    def of(self, device: int) -> dict[str, SampledMetric]:
        """Choose those of a GPU, by name."""
        return {one.name: one for one in self.metrics if one.device == device >= 0}


@kept
def sampled_metrics(table: GpuMetrics) -> SampledMetrics:
    """Sort the samples of ``table`` by metric and time; kept as long as the table is.

    Counters of one name of a GPU are one, whatever their ids; of two samples at a time the first
    counts.
    """
    metrics: dict[Counter, int] = {}
    number = np.array([metrics.setdefault(one, len(metrics)) for one in table.counters], np.int64)
    of = number[table.counter]
    order = order_by([table.time, of])
    of, time, value = of[order], table.time[order], table.value[order]
    fresh = np.ones(len(order), bool)
    fresh[1:] = (of[1:] != of[:-1]) | (time[1:] != time[:-1])
    of, time, value = of[fresh], time[fresh], value[fresh]
    edges = np.searchsorted(of, np.arange(len(metrics) + 1)).tolist()
    found, senseless = [], 0
    for key, low, high in zip(metrics, edges[:-1], edges[1:], strict=True):
        if high > low:
            one, wrong = _sampled(key, time[low:high], value[low:high])
            found.append(one)
            senseless += wrong
    found.sort(key=lambda one: (one.source, one.gpu, one.name))
    return SampledMetrics(tuple(found), senseless, int(len(order) - fresh.sum()))


def _sampled(key: Counter, time: I8, value: I8) -> tuple[SampledMetric, int]:
    """A metric, and how many of its samples have a value that makes no sense."""
    source, device, gpu, name = key
    scale, sane = scale_of(name, value)
    apart = np.diff(time)
    period = (
        int(np.partition(apart, (len(apart) - 1) // 2)[(len(apart) - 1) // 2]) if len(apart) else 0
    )
    known = sane.copy()
    known[0] = False
    known[1:] &= apart <= _GAP * period
    metric = SampledMetric(source, device, gpu, name, time, value, known, period, scale)
    return metric, int(len(sane) - sane.sum())
