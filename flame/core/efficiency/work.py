"""Share the work of operators among the kernels that did it, and tell how long it takes at peak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from flame.core.columns import I4, I8, Bool, Column, order_by, run_starts
from flame.core.efficiency.operator_calls import (
    CalledWork,
    OperatorCalls,
    find_called,
    find_calls,
    operator_costs,
)
from flame.core.model.activities import NONE
from flame.core.model.profile import Profile
from flame.core.operators.cost import Cost
from flame.core.operators.peaks import PRECISIONS
from flame.core.operators.work import OperatorWork
from flame.core.projection.splits.sample_split import apportion

_SUM_LIMIT = float(1 << 62)
_LONGEST = float(1 << 53)
"""Picoseconds of one activity at the peak: more takes hours, and is damage."""


class SharedWork(NamedTuple):
    """Hold the work of operators by kernel, whatever the peaks are: of the activities ``rows``.

    ``rows`` i8[k] rise; ``operator`` i4[k], ``flops`` and ``bytes`` i8[k] are as in `OperatorWork`.
    ``counts`` i8[3] are ``calls``, ``bare`` and ``bare_flops`` there.
    """

    rows: I8
    operator: I4
    flops: I8
    bytes: I8
    counts: I8


def measure_work(profile: Profile) -> OperatorWork:
    """Measure what each activity of ``profile`` did of the work of operators with a formula."""
    costs = operator_costs(profile)
    return rate_work(profile, share_work(profile, costs), costs)


def share_work(profile: Profile, costs: Mapping[int, Cost]) -> SharedWork:
    """Share the work of the calls of operators with ``costs``, by frame, among their kernels.

    It is shared in proportion to their time, so that that of all kernels adds up to that of all
    calls exactly. Where sums would not fit 64 bits, as damage has it, no operator counts.
    """
    calls = find_calls(profile, costs) if costs else _NO_CALLS
    called = find_called(profile, calls)
    work = _CallWork.of(calls, costs)
    if not work.fits(len(called.rows)):
        return share_work(profile, {})
    duration = profile.activities.duration
    flops, moved = (_shared(column, called, duration) for column in (work.flops, work.bytes))
    used = np.zeros(len(calls.thread), bool)
    used[called.call] = True
    counts = (np.count_nonzero(used), np.count_nonzero(~used), work.flops[~used].sum())
    return SharedWork(
        called.rows,
        calls.frame[called.call],
        flops[called.rows],
        moved[called.rows],
        np.array(counts, np.int64),
    )


def rate_work(profile: Profile, shared: SharedWork, costs: Mapping[int, Cost]) -> OperatorWork:
    """Tell how long the ``shared`` work would take at the peaks that ``profile`` knows."""
    duration = profile.activities.duration
    size, rows = len(duration), shared.rows
    operator = np.full(size, NONE, np.int32)
    operator[rows] = shared.operator
    flops, moved = (_placed(rows, column, size) for column in (shared.flops, shared.bytes))
    times = _times_at_peak(profile, operator, flops, moved, costs)
    return OperatorWork(
        operator,
        flops,
        moved,
        times.rated,
        times.compute,
        times.fast_compute,
        times.memory,
        _waste(times, duration),
        costs,
        times.memory_known,
        *shared.counts.tolist(),
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
            max(column.sum(dtype=np.float64), float(column.max(initial=0)) * replays) < _SUM_LIMIT
            for column in self
        )


def _shared(values: I8, called: CalledWork, duration: I8) -> I8:
    """What each activity has of the ``values`` of its call, i8[activities]."""
    found = np.zeros(len(duration), np.int64)
    order = order_by([called.instance])
    rows, instance = called.rows[order], called.instance[order]
    first = run_starts(instance)
    size = np.diff(np.append(first, len(rows)))
    whole = values[called.call[order[first]]]
    found[rows[first[size == 1]]] = whole[size == 1]
    some = size > 1
    if not some.any():
        return found
    several = np.repeat(some, size)
    unit = np.repeat(np.arange(np.count_nonzero(some)), size[some])
    begin = np.cumsum(size[some]) - size[some]
    weights = duration[rows[several]]
    # What took no time at all is the first one's.
    nothing = np.add.reduceat(weights, begin) == 0
    weights[begin[nothing]] = 1
    found[rows[several]] = apportion(whole[some], weights, unit, begin)
    return found


class _Times(NamedTuple):
    """Columns of `OperatorWork`."""

    rated: Bool
    compute: I8
    fast_compute: I8
    memory: I8
    memory_known: bool


def _times_at_peak(
    profile: Profile, operator: I4, flops: I8, moved: I8, costs: Mapping[int, Cost]
) -> _Times:
    table, size = profile.activities, len(operator)
    peaks = profile.peaks
    rows = np.flatnonzero(operator >= 0)
    precision, unmasked = _of_costs(costs, operator[rows])
    device = table.device[rows]  # -1, which is not known, is the last
    slow, fast = (
        _lookup([peak and peak.tflops_by_place(is_fast) for peak in peaks])[device, precision]
        for is_fast in (False, True)
    )
    bandwidth = np.array([*(peak.bandwidth if peak else 0.0 for peak in peaks), 0.0])[device]
    with np.errstate(divide="ignore", invalid="ignore"):
        compute, fast_compute = (flops[rows] * unmasked / tflops for tflops in (slow, fast))
        memory = np.where(bandwidth > 0, moved[rows] * 1e12 / bandwidth, 0.0)
    good = (slow > 0) & np.isfinite(unmasked) & (table.duration[rows] > 0)
    good &= (compute < _LONGEST) & (memory < _LONGEST)
    compute_ps, fast_ps, memory_ps = (
        _placed(rows[good], np.rint(column[good]).astype(np.int64), size)
        for column in (compute, fast_compute, memory)
    )
    rated = _placed(rows[good], np.ones(np.count_nonzero(good), bool), size)
    memory_known = bool((bandwidth[good] > 0).all())
    return _Times(rated, compute_ps, fast_ps, memory_ps, memory_known)


def _of_costs(costs: Mapping[int, Cost], frames: I4) -> tuple[I8, Column]:
    """The place in `PRECISIONS` (that of none behind the last) and the unmasked part, by frame."""
    place = np.full(max(costs, default=0) + 1, len(PRECISIONS), np.int64)
    unmasked = np.full(len(place), np.nan)
    for frame, cost in costs.items():
        if cost.precision in PRECISIONS:
            place[frame] = PRECISIONS.index(cost.precision)
        if cost.unmasked is not None:
            unmasked[frame] = cost.unmasked
    return place[frames], unmasked[frames]


def _lookup(rows: Sequence[Sequence[float] | None]) -> Column:
    """Peaks by device and place of the precision; 0 where one is not known, or the other."""
    found = np.zeros((len(rows) + 1, len(PRECISIONS) + 1))
    for at, row in enumerate(rows):
        if row is not None:
            found[at, :-1] = row
    return found


def _placed(rows: I8, values: Column, size: int) -> Column:
    column = np.zeros(size, values.dtype)
    column[rows] = values
    return column


def _waste(times: _Times, duration: I8) -> I8:
    """The time above what the larger of both needs, ns; none where less was taken."""
    bound = (np.maximum(times.compute, times.memory) + 500) // 1000
    return np.where(times.rated, np.maximum(duration - bound, 0), 0)
