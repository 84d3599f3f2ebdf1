"""Tell what GPU metrics say while kernels ran: any sets of them, such as those below frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from flame.core.columns import F8, I8, Bool, order_by, sum_by
from flame.core.gpu_metrics.names import NAMES, MetricKey
from flame.core.gpu_metrics.samples import Marks, SampledMetric, Sums, sampled_metrics, sum_between
from flame.core.kept_results import kept
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import has_times
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile

DRAM, EXPOSURE = "dram", "exposure"
"""Keys of columns of tables, besides those of `MetricKey`."""

_KERNELS = (Kind.KERNEL, Kind.GRAPH)
_MEMORY = (MetricKey.READ, MetricKey.WRITE)
_SHARED = 10
"""Per cent of the time of kernels; where others run beside them for longer, that is said."""


class LaneRows(NamedTuple):
    """Hold rows of activities by lane: ``lane`` and ``row`` are i8[n], each pair once.

    They are all the rows of these lanes, ``first`` to ``last`` - 1.
    """

    first: int
    last: int
    lane: I8
    row: I8


@dataclass(frozen=True, eq=False)
class KernelMetrics:
    """Hold what GPU metrics say while the kernels of each lane ran, on whichever GPUs.

    ``ran`` i8[n] is how long any of them did, ns, summed over GPUs, and ``exposure`` i8[n] the part
    of that which ``samples`` i8[n] stand for. ``means`` are f8[n] in percent, NaN where too few
    are known; ``rate`` f8[n] is what the memory moved, bytes per second. ``shared`` bool[n] tells
    where other kernels ran beside them.
    """

    ran: I8
    exposure: I8
    samples: I8
    shared: Bool
    means: dict[MetricKey, F8]
    rate: F8

    @property
    def dram(self) -> F8:
        """The part of the bandwidth of the memory that was used, f8[n] in percent."""
        return self.means[MetricKey.READ] + self.means[MetricKey.WRITE]

    @property
    def columns(self) -> dict[str, F8]:
        """What tables of frames have of it, f8[n] by key: shares in percent, `EXPOSURE` in ns.

        NaN where nothing is known.
        """
        known = ~np.isnan(np.array([*self.means.values()])).all(axis=0)
        return {
            MetricKey.SM.value: self.means[MetricKey.SM],
            MetricKey.TENSOR.value: self.means[MetricKey.TENSOR],
            DRAM: self.dram,
            EXPOSURE: np.where(known, self.exposure, np.nan),
        }


@dataclass(frozen=True, eq=False)
class KernelTimes:
    """Hold when kernels began and ended, GPU by GPU, and the samples before each of these times.

    ``first`` and ``last`` i8[rows] are places of an activity's times in ``time`` i8[n], -1 of what
    is no kernel. ``running`` i8[n] counts kernels from each time to the next of the GPU, ``length``
    ns. ``marks`` are of these times, by metric; ``bandwidth`` is that of the GPU in bytes per
    second, f8[n], NaN where it is not known. ``period`` is the longest of any GPU's samples, ns.
    """

    first: I8
    last: I8
    time: I8
    running: I8
    length: I8
    marks: dict[MetricKey, Marks]
    bandwidth: F8
    period: int

    def measure(self, lanes: Iterable[LaneRows], size: int) -> KernelMetrics:
        """Tell what the metrics say while kernels of lanes 0 to ``size`` - 1 ran."""
        parts = [_Part.of(self, each) for each in lanes]
        return _joined(parts, self.period, size)

    def alone(self, running: I8, begin: I8, end: I8) -> I8:
        """Measure how long just so many kernels were ``running`` between two places, i8[n] ns."""
        keys, before = self._levels
        high, low = (np.searchsorted(keys, running * len(keys) + at) for at in (end, begin))
        found: I8 = before[high] - before[low]
        return found

    @cached_property
    def _levels(self) -> tuple[I8, I8]:
        """(the times by how many kernels run then, ns before each)."""
        order = order_by([self.running])
        lengths = np.cumsum(self.length[order])
        return self.running[order] * len(order) + order, np.concatenate([[0], lengths])


class _Part(NamedTuple):
    """What is known of lanes from ``first`` on; ``moved`` are sums of bytes × 100, of `_MEMORY`."""

    first: int
    ran: I8
    beside: I8
    sums: dict[MetricKey, Sums]
    moved: dict[MetricKey, F8]

    @classmethod
    def of(cls, times: KernelTimes, rows: LaneRows) -> _Part:
        size = rows.last - rows.first
        lane, running, begin, end = _stretches(times, rows)
        lengths = times.time[end] - times.time[begin]
        beside = lengths - times.alone(running, begin, end)
        marks = times.marks.items()
        return cls(
            rows.first,
            sum_by(lane, lengths, size),
            sum_by(lane, beside, size),
            {key: sum_between(one.at(begin), one.at(end), lane, size) for key, one in marks},
            {
                key: _moved(times, one, lane, begin, end, size)
                for key, one in marks
                if key in _MEMORY
            },
        )


def _stretches(times: KernelTimes, rows: LaneRows) -> tuple[I8, I8, I8, I8]:
    """(lane, number that run, places of begin and end), by lane and time; disjoint in each lane."""
    kernels = times.first[rows.row] >= 0
    lane, row = rows.lane[kernels] - rows.first, rows.row[kernels]
    edge = np.concatenate([times.first[row] << 1, times.last[row] << 1 | 1])
    keys = np.sort(np.concatenate([lane, lane]) << 33 | edge)
    lane, place = keys >> 33, (keys & ((1 << 33) - 1)) >> 1
    running = np.cumsum(1 - 2 * (keys & 1))
    some = np.flatnonzero((running[:-1] > 0) & (place[1:] > place[:-1]))
    return lane[some], running[some], place[some], place[some + 1]


def _moved(times: KernelTimes, marks: Marks, lane: I8, begin: I8, end: I8, size: int) -> F8:
    """Sum up percent × ns × bandwidth; NaN where that of any GPU is not known."""
    weighted = (marks.weighted[end] - marks.weighted[begin]) / 1e9
    sampled = marks.known[end] > marks.known[begin]
    each: F8 = np.where(sampled, weighted * times.bandwidth[begin], 0.0)
    moved = np.zeros(size)
    np.add.at(moved, lane, each)
    return moved


def _joined(parts: list[_Part], period: int, size: int) -> KernelMetrics:
    ran, beside, exposure, samples = (np.zeros(size, np.int64) for _ in range(4))
    means = {key: np.full(size, np.nan) for key in MetricKey}
    rates = {key: np.full(size, np.nan) for key in _MEMORY}
    for part in parts:
        here = slice(part.first, part.first + len(part.ran))
        ran[here], beside[here] = part.ran, part.beside
        for key, sums in part.sums.items():
            means[key][here] = mean = sums.means(period)
            exposure[here] = np.maximum(exposure[here], sums.exposure)
            samples[here] = np.maximum(samples[here], sums.samples)
            if key in _MEMORY:
                rate = part.moved[key] / np.maximum(sums.exposure, 1) * 1e7
                rates[key][here] = np.where(np.isnan(mean), np.nan, rate)
    shared = beside * 100 > ran * _SHARED
    both = rates[MetricKey.READ] + rates[MetricKey.WRITE]
    return KernelMetrics(ran, exposure, samples, shared, means, both)


@kept
def kernel_times(profile: Profile) -> KernelTimes | None:
    """Collect when kernels ran, and what was sampled then; None where there are no metrics.

    May read the file. Kept as long as ``profile`` is.
    """
    table = profile.gpu_metrics
    if table is None or not len(table) or not len(profile.activities):
        return None
    found = sampled_metrics(table)
    activities = profile.activities
    rows = np.flatnonzero(np.isin(activities.kind, _KERNELS) & has_times(activities))
    start = activities.start[rows]
    device, time, place = _numbered(
        activities.device[rows].astype(np.int64), start, start + activities.duration[rows]
    )
    first = np.full(len(activities), -1, np.int64)
    last = first.copy()
    first[rows], last[rows] = place[: len(rows)], place[len(rows) :]
    begun = np.bincount(first[rows], minlength=len(time))
    running = np.cumsum(begun - np.bincount(last[rows], minlength=len(time)))
    length = np.where(running > 0, np.append(time[1:], 0) - time, 0)
    devices = [_Sampled(one, found.of(one)) for one in range(-1, len(profile.devices))]
    return KernelTimes(
        first,
        last,
        time,
        running,
        length,
        dict(_marks(devices, device, time)),
        _bandwidths(profile)[device],
        max((each.period for each in devices), default=0),
    )


class _Sampled(NamedTuple):
    """A GPU and its metrics by name."""

    device: int
    metrics: dict[str, SampledMetric]

    @property
    def period(self) -> int:
        """The longest of the metrics that are told of frames, ns."""
        told = (self.metrics[name] for name in NAMES.values() if name in self.metrics)
        return max((one.period for one in told), default=0)


def _marks(devices: list[_Sampled], device: I8, time: I8) -> Iterator[tuple[MetricKey, Marks]]:
    """What lies before each time, by metric; ``device`` is ascending."""
    edges = np.searchsorted(device, np.arange(-1, len(devices))).tolist()
    for key, name in NAMES.items():
        parts, before = [], 0
        for each, low, high in zip(devices, edges[:-1], edges[1:], strict=True):
            part = _marks_of(each.metrics.get(name), time[low:high])
            # Counted on from GPU to GPU, so that no two have a sample in common.
            parts.append(part._replace(ended=part.ended + before, begun=part.begun + before))
            before = max(before, int(parts[-1].begun.max(initial=0)))
        if any(name in each.metrics for each in devices):
            yield key, Marks(*map(np.concatenate, zip(*parts, strict=True)))


def _marks_of(metric: SampledMetric | None, times: I8) -> Marks:
    if metric is None:
        return Marks(*(np.zeros(len(times), np.int64) for _ in Marks._fields))
    return metric.marks(times)


def _bandwidths(profile: Profile) -> F8:
    """Bytes per second of each GPU, and, last, of the unknown one: NaN where not known."""
    return np.array([*(one.facts.bandwidth or np.nan for one in profile.devices), np.nan])


def _numbered(device: I8, start: I8, end: I8) -> tuple[I8, I8, I8]:
    """(GPU and time of each different pair, in order; place of all starts, then of all ends)."""
    devices, times = np.concatenate([device, device]), np.concatenate([start, end])
    order = order_by([times, devices])
    fresh = np.ones(len(order), bool)
    devices, times = devices[order], times[order]
    fresh[1:] = (devices[1:] != devices[:-1]) | (times[1:] != times[:-1])
    place = np.empty(len(order), np.int64)
    place[order] = np.cumsum(fresh) - 1
    return devices[fresh], times[fresh], place
