"""Measure launches: how many kernels ran in a second, how long calls took and kernels waited."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from flame.core.analysis.distribution import Distributions, distributions
from flame.core.analysis.iterations import iteration_of_activities
from flame.core.analysis.utilization import Utilization
from flame.core.columns import (
    I4,
    I8,
    Bool,
    first_by_group,
    order_by,
    sum_by,
    taken,
    unique,
    unique_rows,
)
from flame.core.kept_results import kept
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import Activities
from flame.core.model.frames import Kind
from flame.core.report.measures.activity_groups import unique_by_group
from flame.core.report.measures.chosen_iterations import per_iteration
from flame.core.report.measures.launching_calls import (
    first_rows,
    launch_numbers,
    launched_alone,
)
from flame.core.report.scope import Scope

SHORT = (5_000, 10_000, 20_000)
"""Lengths, ns, below which kernels are counted."""

STORMS = ((50_000, 10_000), (100_000, 20_000))
"""A storm of launches: at least so many kernels in a second, of which half are at most so long."""

NOT_QUEUED = 10_000
"""A kernel that starts sooner after its launch call, ns, found the GPU waiting."""

_S = 1_000_000_000


class LaunchRate(NamedTuple):
    """Say how many kernels ran on a GPU, and how long they were, ns.

    ``short`` counts those below each of `SHORT`. ``calls`` are the API calls that launched
    ``launched`` of the kernels. ``iterations`` is how many kernels an iteration has, as a median.
    """

    gpu: Utilization
    kernels: int
    p50: int
    p90: int
    p99: int
    short: tuple[int, ...]
    calls: int
    launched: int
    iterations: int | None

    @property
    def per_second(self) -> float | None:
        """Kernels in a second of the window."""
        return round(self.kernels * _S / self.gpu.length, 1) if self.gpu.length else None

    @property
    def storm(self) -> bool:
        """Whether people call it a storm, which says nothing of whether the GPU waited."""
        length = self.gpu.length
        return any(
            self.kernels * _S >= rate * length and self.p50 <= long for rate, long in STORMS
        ) and bool(length)


@kept
def launch_rates(scope: Scope) -> tuple[LaunchRate, ...]:
    """Count the kernels that each GPU ran."""
    rows, table = scope.rows_of(Kind.KERNEL), scope.profile.activities
    if not len(rows):
        return ()
    device, of = table.device[rows], iteration_of_activities(scope.profile)
    rates = (_rate(scope, gpu, rows[device == gpu.device], of) for gpu in scope.gpus)
    return tuple(rate for rate in rates if rate is not None)


def _rate(scope: Scope, gpu: Utilization, rows: I8, iteration: I4) -> LaunchRate | None:
    """Count the kernels ``rows``; ``iteration`` is that of each activity."""
    if not len(rows):
        return None
    table = scope.profile.activities
    duration = table.duration[rows]
    times = distributions(np.zeros(len(rows), np.uint8), duration, 1)
    launched = rows[table.launched[rows]]
    alone = launched_alone(scope.profile)
    calls = launched if alone else first_rows(launch_numbers(scope.profile), launched)
    return LaunchRate(
        gpu,
        len(rows),
        p50=int(times.p50[0]),
        p90=int(times.p90[0]),
        p99=int(times.p99[0]),
        short=tuple(int((duration < length).sum()) for length in SHORT),
        calls=len(calls),
        launched=len(launched),
        iterations=_per_iteration(scope, rows, iteration[rows]),
    )


def _per_iteration(scope: Scope, rows: I8, of: I4) -> int | None:
    """How many kernels an iteration of the processes that launched ``rows`` has, as a median."""
    found = scope.profile.iterations
    processes = unique(scope.profile.activities.process[rows])
    return per_iteration(scope, of, np.isin(found.process, processes))


# From the launch to the end


@dataclass(frozen=True, eq=False)
class LaunchedKernels:
    """Hold kernels with a recorded launch: ``rows`` of ``table``, i8[n], which ascend.

    Their times, i8[n] in ns, are worked out when they are asked for: all of them together would
    take half as much memory as the table.
    """

    table: Activities
    rows: I8

    def _of(self, column: I8) -> I8:
        return taken(column, self.rows)

    @property
    def api(self) -> I8:
        """How long the call took that launched it."""
        length: I8 = self._of(self.table.launch_end) - self._of(self.table.launch_start)
        length[length < 0] = 0
        return length

    @property
    def share(self) -> I8:
        """Its part of the call, which may have launched several."""
        return self._of(self.table.launch_share)

    @property
    def queue(self) -> I8:
        """From the end of the call to the start of the kernel, negative where that began before."""
        return self._of(self.table.start) - self._of(self.table.launch_end)

    @property
    def kernel(self) -> I8:
        """How long it ran."""
        return self._of(self.table.duration)

    @property
    def total(self) -> I8:
        """From the beginning of the call to the end of both."""
        end: I8 = self._of(self.table.start) + self.kernel
        np.maximum(end, self._of(self.table.launch_end), out=end)
        end -= self._of(self.table.launch_start)
        return end

    @cached_property
    def shorter(self) -> Bool:
        """Which are shorter than their part of the call that launched them, bool[n]."""
        shorter: Bool = self.kernel < self.share
        return shorter


def launched_kernels(scope: Scope) -> LaunchedKernels:
    """Measure the kernels of ``scope`` whose launch was recorded."""
    rows, table = scope.rows_of(Kind.KERNEL), scope.profile.activities
    launched = taken(table.launched, rows)
    return LaunchedKernels(table, rows if launched.all() else rows[launched])


@dataclass(frozen=True, eq=False)
class Executions:
    """Sum up launched kernels by process, thread, GPU, call and kernel as shown.

    ``rows`` i8[n] is an activity of each group. ``queue`` is of those that queued: which did not
    begin before their call ended. ``shares`` i8[n] is the time of the calls, of which each counts
    once however many kernels it launched.
    """

    rows: I8
    shares: I8
    api: Distributions
    queue: Distributions
    kernel: Distributions
    total: Distributions

    @property
    def order(self) -> I8:
        """The places, by the time from launch to end."""
        order: I8 = np.argsort(-self.total.total, kind="stable")
        return order


def executions(scope: Scope, launched: LaunchedKernels) -> Executions:
    """Sum up the kernels of ``launched``."""
    table, shown, rows = scope.profile.activities, scope.labels.shown, launched.rows
    of = table.groups
    keys = [of.process, of.thread, of.device, shown[of.launch], shown[of.frame]]
    first, group = unique_by_group(table, rows, keys)
    size, queue = len(first), launched.queue
    queues = distributions(np.where(queue < 0, size, group), queue, size + 1).first(size)
    del queue
    return Executions(
        rows[first],
        sum_by(group, launched.share, size),
        distributions(group, launched.api, size),
        queues,
        distributions(group, launched.kernel, size),
        distributions(group, launched.total, size),
    )


@dataclass(frozen=True, eq=False)
class FirstLaunches:
    """Compare the first launch of each kernel in its process with its others, i8[n] each.

    ``rows`` are the activities that were first, ``api`` how long their calls took, ns; ``usual``
    the median of the others, which are ``others`` many, and ``excess`` what the first took longer:
    code is loaded when it is first launched. Kernels that were launched once are left out.
    """

    rows: I8
    api: I8
    usual: I8
    others: I8

    @property
    def excess(self) -> I8:
        """What the first took longer, ns."""
        longer: I8 = np.maximum(self.api - self.usual, 0)
        return longer


def first_launches(scope: Scope, launched: LaunchedKernels) -> FirstLaunches:
    """Compare first launches; of several kernels that one call launched the first counts."""
    table = scope.profile.activities
    rows = launched.rows if launched_alone(scope.profile) else _first_of_calls(table, launched.rows)
    api, groups = LaunchedKernels(table, rows).api, table.groups
    some, group = unique_by_group(table, rows, [groups.process, groups.frame])
    size, first = len(some), _launched_first(table, rows, group, len(some))
    group[first] = size
    others = distributions(group, api, size + 1).first(size)
    again = np.flatnonzero(others.count)
    first = first[again]
    return FirstLaunches(rows[first], api[first], others.p50[again], others.count[again])


def _launched_first(table: Activities, rows: I8, group: I8, size: int) -> I8:
    """The place in ``rows`` of what was launched first of each ``group``, i8[size].

    Of several that is what began first.
    """
    time, start = taken(table.launch_start, rows), taken(table.start, rows)
    return first_by_group(group, time, start, size)


def _first_of_calls(table: Activities, rows: I8) -> I8:
    """Leave of ``rows`` the first activity that each call launched of each frame."""
    order = order_by([table.start[rows], table.launch_start[rows]])
    ordered = rows[order]
    time = table.launch_start[ordered]
    first, same = np.ones(len(rows), bool), time[1:] == time[:-1]
    first[1:][same] = first[:-1][same] = False
    several = np.flatnonzero(~first)
    calls = [column[ordered[several]] for column in (table.frame, table.thread, table.launch_start)]
    first[several[unique_rows(calls)[0]]] = True
    kept = np.zeros(len(rows), bool)
    kept[order[first]] = True
    return rows[kept]


# Pace


class KernelPace(NamedTuple):
    """Hold the time from the end of a kernel to the start of the next of its name on its GPU.

    By shown ``frame`` i8[n]; of kernels that run at once it is 0.
    """

    frame: I8
    between: Distributions


def pace(scope: Scope) -> KernelPace:
    """Measure how evenly the kernels of each name follow each other."""
    rows, table = scope.rows_of(Kind.KERNEL), scope.profile.activities
    shown = scope.labels.shown[table.frame[rows]].astype(np.int64)
    order = order_by([table.start[rows], table.device[rows], shown])
    rows, shown = rows[order], shown[order]
    device, start = table.device[rows], table.start[rows]
    same = (shown[1:] == shown[:-1]) & (device[1:] == device[:-1])
    wait = np.maximum(start[1:] - (start + table.duration[rows])[:-1], 0)[same]
    first, group = unique_rows([shown[1:][same]])
    return KernelPace(shown[1:][same][first], distributions(group, wait, len(first)))
