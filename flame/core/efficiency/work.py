"""Share the work of operators among the kernels that did it, and tell how long it takes at peak."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, SUM_LIMIT, Column, taken
from flame.core.efficiency.operator_calls import (
    CalledWork,
    OperatorCalls,
    OperatorSource,
    find_called,
    find_calls,
    operator_costs,
)
from flame.core.model.activities import Activities, repeat
from flame.core.model.profile import Profile
from flame.core.operators.cost import Cost
from flame.core.operators.peaks import PRECISIONS
from flame.core.operators.work import OperatorWork, Rating, SharedWork
from flame.core.projection.splits.sample_split import apportion

_LONGEST = float(1 << 53)
"""Picoseconds of one activity at the peak: more takes hours, and is damage."""


def measure_work(profile: Profile) -> OperatorWork:
    """Measure what each activity of ``profile`` did of the work of operators with a formula."""
    costs = operator_costs(profile)
    source, calls = OperatorSource.of(profile), list[OperatorCalls]()

    def share() -> SharedWork:
        if not calls:  # hundreds of times fewer than kernels, and half of the time
            calls.append(find_calls(source, costs) if costs else _NO_CALLS)
        return _share(source, calls[0], costs)

    return rate_work(profile, share, costs)


def share_work(source: OperatorSource, costs: Mapping[int, Cost]) -> SharedWork:
    """Share the work of the calls of operators with ``costs``, by frame, among their kernels.

    It is shared in proportion to their time, so that that of all kernels adds up to that of all
    calls exactly. Where sums would not fit 64 bits, as damage has it, no operator counts.
    """
    return _share(source, find_calls(source, costs) if costs else _NO_CALLS, costs)


def _share(source: OperatorSource, calls: OperatorCalls, costs: Mapping[int, Cost]) -> SharedWork:
    called = find_called(source, calls)
    work = _CallWork.of(calls, costs)
    if not work.fits(len(called.rows)):
        return share_work(source, {})
    weights = taken(source.activities.duration, called.rows)
    flops, moved = (_shared(column, called, weights) for column in work)
    used = np.zeros(len(calls.thread), bool)
    used[called.call] = True
    counts = (np.count_nonzero(used), np.count_nonzero(~used), work.flops[~used].sum())
    return SharedWork(
        called.rows, calls.frame[called.call], flops, moved, np.array(counts, np.int64)
    )


_NO_CALLS = OperatorCalls(*(np.zeros(0, dtype) for dtype in ("i4", "i4", "i8", "i8")))


class _CallWork(NamedTuple):
    """FLOPs and bytes (0 where not known) of each call, i8[calls]."""

    flops: I8
    bytes: I8

    @classmethod
    def of(cls, calls: OperatorCalls, costs: Mapping[int, Cost]) -> _CallWork:
        flops, moved = (np.zeros(max(costs, default=0) + 1, np.int64) for _ in range(2))
        for frame, cost in costs.items():
            flops[frame], moved[frame] = cost.flops, cost.bytes or 0
        return cls(flops[calls.frame], moved[calls.frame])

    def fits(self, replays: int) -> bool:
        """Whether sums fit 64 bits, even if each of so many kernels has all of the largest."""
        return all(
            max(column.sum(dtype=np.float64), float(column.max(initial=0)) * replays) < SUM_LIMIT
            for column in self
        )


def _shared(values: I8, called: CalledWork, weights: I8) -> I8:
    """What each of the ``called`` activities has of the ``values`` of calls, i8[k]."""
    if not values.any():
        return repeat(np.int64(0), len(weights))
    return apportion(values[called.call_of], weights, called.instance)


def rate_work(
    profile: Profile, share: Callable[[], SharedWork], costs: Mapping[int, Cost]
) -> OperatorWork:
    """Tell how long the work that ``share`` finds would take at the peaks ``profile`` knows."""
    peaks, table = _Peaks.of(profile, costs), profile.activities
    rate, knows_memory = partial(_rating, peaks, table), partial(_is_memory_known, peaks, table)
    return OperatorWork(len(table), share, rate, knows_memory, costs, peaks.rate_any)


class _Peaks(NamedTuple):
    """Hold by frame what its types and its mask make of it, and what GPUs can do.

    ``place`` i8[frames] is the type's in `PRECISIONS`, behind the last one where it has none;
    ``unmasked`` f8[frames] is NaN where not known. ``slow`` and ``fast``, by device and place, and
    ``bandwidth`` by device are f8, 0 where not known, as they are of the last, which is no device.
    """

    place: I8
    unmasked: Column
    slow: Column
    fast: Column
    bandwidth: Column

    @classmethod
    def of(cls, profile: Profile, costs: Mapping[int, Cost]) -> _Peaks:
        peaks = profile.peaks
        slow, fast = (
            _lookup([peak and peak.tflops_by_place(is_fast) for peak in peaks])
            for is_fast in (False, True)
        )
        bandwidth = np.array([*(peak.bandwidth if peak else 0.0 for peak in peaks), 0.0])
        return cls(*_of_costs(costs), slow, fast, bandwidth)

    @property
    def rate_any(self) -> bool:
        """Whether any GPU's peak is known for any of the types."""
        used = np.zeros(self.slow.shape[1], bool)
        used[self.place] = True
        return bool(self.slow[:, used].any())


def _rating(peaks: _Peaks, table: Activities, shared: SharedWork, part: slice) -> Rating:
    rows, operator = shared.rows[part], shared.operator[part]
    if not peaks.rate_any:
        none = repeat(np.int64(0), len(rows))
        return Rating(repeat(np.False_, len(rows)), none, none, none, none)
    place, unmasked = peaks.place[operator], peaks.unmasked[operator]
    device, duration = table.device[rows], table.duration[rows]  # device -1 is the last
    slow, fast = (table[device, place] for table in (peaks.slow, peaks.fast))
    bandwidth = peaks.bandwidth[device]
    with np.errstate(divide="ignore", invalid="ignore"):
        compute, fast_compute = (shared.flops[part] * unmasked / tflops for tflops in (slow, fast))
        memory = np.where(bandwidth > 0, shared.bytes[part] * 1e12 / bandwidth, 0.0)
    good = (slow > 0) & np.isfinite(unmasked) & (duration > 0)
    good &= (compute < _LONGEST) & (memory < _LONGEST)
    compute_ps, fast_ps, memory_ps = (
        np.rint(np.where(good, column, 0.0)).astype(np.int64)
        for column in (compute, fast_compute, memory)
    )
    # The time above what the larger of both needs, ns; none where less was taken.
    bound = (np.maximum(compute_ps, memory_ps) + 500) // 1000
    waste = np.where(good, np.maximum(duration - bound, 0), 0)
    return Rating(good, compute_ps, fast_ps, memory_ps, waste)


def _is_memory_known(peaks: _Peaks, table: Activities, shared: SharedWork) -> bool:
    """Whether the bandwidth is known of all GPUs that ran what is rated."""
    if (peaks.bandwidth[peaks.slow.any(axis=1)] > 0).all():
        return True
    rows = shared.rows[_rating(peaks, table, shared, slice(None)).rated]
    return bool((peaks.bandwidth[table.device[rows]] > 0).all())


def _of_costs(costs: Mapping[int, Cost]) -> tuple[I8, Column]:
    """The place in `PRECISIONS` (that of none behind the last) and the unmasked part, by frame."""
    place = np.full(max(costs, default=0) + 1, len(PRECISIONS), np.int64)
    unmasked = np.full(len(place), np.nan)
    for frame, cost in costs.items():
        if cost.precision in PRECISIONS:
            place[frame] = PRECISIONS.index(cost.precision)
        if cost.unmasked is not None:
            unmasked[frame] = cost.unmasked
    return place, unmasked


def _lookup(rows: Sequence[Sequence[float] | None]) -> Column:
    """Peaks by device and place of the precision; 0 where one is not known, or the other."""
    found = np.zeros((len(rows) + 1, len(PRECISIONS) + 1))
    for at, row in enumerate(rows):
        if row is not None:
            found[at, :-1] = row
    return found
