"""What GPU metrics say, found nanosecond by nanosecond."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from statistics import median_low
from typing import NamedTuple

SM, TENSOR = "SMs Active [Throughput %]", "Tensor Active [Throughput %]"
READ, WRITE = "DRAM Read Bandwidth [Throughput %]", "DRAM Write Bandwidth [Throughput %]"

Run = tuple[int, int, int]
"""(GPU, start, end) of a kernel."""

Sample = tuple[int, str, int, int]
"""(GPU, metric, time, value)."""


class Told(NamedTuple):
    """The mean, the nanoseconds that samples stand for, how many do, all as exact numbers."""

    total: int
    exposure: int
    samples: int

    def mean(self, period: int) -> float | None:
        """The mean where enough is known."""
        enough = self.samples >= 20 and self.exposure >= 20 * max(period, 1)
        return self.total / self.exposure if enough else None


class Known:
    """Say of each nanosecond which sample stands for it."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        series: dict[tuple[int, str], dict[int, int]] = {}
        for gpu, name, time, value in samples:
            series.setdefault((gpu, name), {}).setdefault(time, value)
        self.periods: dict[tuple[int, str], int] = {}
        self._at: dict[tuple[int, str], dict[int, tuple[int, int]]] = {}
        for key, values in series.items():
            times = sorted(values)
            apart = [later - time for time, later in itertools.pairwise(times)]
            self.periods[key] = median_low(apart) if apart else 0
            own = self._at[key] = {}
            for time, later in itertools.pairwise(times):
                sane = 0 <= values[later] <= 105
                if sane and later - time <= 3 * self.periods[key]:
                    own |= dict.fromkeys(range(time, later), (later, values[later]))

    def told(self, name: str, moments: Iterable[tuple[int, int]]) -> Told:
        """Sum up a metric over (GPU, ns) pairs."""
        pairs = {(gpu, ns) for gpu, ns in moments}
        found = [
            (gpu, *self._at[gpu, name][ns])
            for gpu, ns in pairs
            if ns in self._at.get((gpu, name), {})
        ]
        samples = {(gpu, time) for gpu, time, _ in found}
        return Told(sum(value for *_, value in found), len(found), len(samples))


def moments_of(runs: Iterable[Run]) -> set[tuple[int, int]]:
    """The (GPU, ns) pairs in which any of these kernels ran."""
    return {(gpu, ns) for gpu, start, end in runs for ns in range(start, end)}


def are_shared(some: Sequence[Run], every: Sequence[Run]) -> bool:
    """Whether other kernels ran beside some of these for more than 10 % of their time."""

    def running(runs: Sequence[Run], gpu: int, ns: int) -> int:
        return sum(one == gpu and start <= ns < end for one, start, end in runs)

    moments = moments_of(some)
    beside = sum(running(every, *at) > running(some, *at) for at in moments)
    return beside * 10 > len(moments)
