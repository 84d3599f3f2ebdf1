"""Summarize values by percentiles, which are recorded values, and by histograms."""

from __future__ import annotations

from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from flame.core.columns import I8, Column, ordered_by_group, sum_by
from flame.core.compiled.order import summarize_groups
from flame.core.lazy_dataclass import dataclass

_PERCENTS = 50, 90, 95, 99
"""The percentiles of `Distributions`."""

_WIDE = 10
"""From this ratio of largest to smallest on, equal steps would heap most values in one bin."""


@dataclass(frozen=True)
class Distribution:
    """Summarize values, all in their own unit; the percentiles are values that occur.

    They are nearest-rank: ``p95`` is the smallest value that at least 95 % do not exceed. Where
    they are ``estimated`` they are within 1 % of that.
    """

    count: int
    total: int
    minimum: int
    p50: int
    p95: int
    p99: int
    maximum: int
    estimated: bool = field(default=False, kw_only=True)

    @property
    def mean(self) -> float:
        """Arithmetic mean."""
        return self.total / self.count

    @property
    def tail(self) -> float:
        """p99 / p50: how much worse than usual the worst per cent is; 0 where p50 is 0."""
        return self.p99 / self.p50 if self.p50 else 0.0


def distribution(values: I8) -> Distribution | None:
    """Summarize ``values`` (whole numbers in any order); None of no values."""
    count = len(values)
    if not count:
        return None
    ordered = np.sort(values)
    p50, p95, p99 = (int(ordered[(count * percent + 99) // 100 - 1]) for percent in (50, 95, 99))
    return Distribution(count, int(ordered.sum()), int(ordered[0]), p50, p95, p99, int(ordered[-1]))


@dataclass(frozen=True, eq=False)
class Distributions:
    """Summarize the values of many groups as `Distribution` does, i8[groups] each; 0 of none."""

    count: I8
    total: I8
    minimum: I8
    p50: I8
    p90: I8
    p95: I8
    p99: I8
    maximum: I8

    def __len__(self) -> int:
        return len(self.count)

    def first(self, size: int) -> Distributions:
        """Take those of the first ``size`` groups."""
        return Distributions(*(column[:size] for column in vars(self).values()))

    def placed(self, place: I8, size: int) -> Distributions:
        """Give group ``n`` the number ``place[n]``, of ``size``; of the others there are none."""
        columns = {name: np.zeros(size, np.int64) for name in vars(self)}
        for name, column in vars(self).items():
            columns[name][place] = column
        return Distributions(**columns)

    @property
    def means(self) -> list[float | None]:
        """Arithmetic mean of each to a digit behind the point; None of no values."""
        pairs = zip(self.total.tolist(), self.count.tolist(), strict=True)
        return [round(total / count, 1) if count else None for total, count in pairs]


def distributions(group: Column, values: I8, size: int) -> Distributions:
    """Summarize the ``values`` of each ``group`` (0 to ``size`` - 1).

    What is compiled takes half the time of ordering them, and less memory.
    """
    if (rows := summarize_groups(group, values, size, _PERCENTS)) is not None:
        return Distributions(*rows)
    ordered, count = ordered_by_group(group, values, size)
    first, some = np.cumsum(count) - count, np.flatnonzero(count)

    def at(place: I8) -> I8:
        found = np.zeros(size, np.int64)
        found[some] = ordered[(first + place)[some]]
        return found

    total = np.zeros(size, np.int64)
    total[some] = np.add.reduceat(ordered, first[some]) if len(some) else 0
    ranks = [np.zeros(size, np.int64), *((count * one + 99) // 100 - 1 for one in _PERCENTS)]
    return Distributions(count, total, *map(at, [*ranks, count - 1]))


@dataclass(frozen=True, eq=False)
class Histogram:
    """Count values by size: ``counts`` i8[bins] between ``edges`` f8[bins + 1].

    A bin holds its lower edge, the last bin its upper edge too. Where ``log``, each bin is as many
    times as wide as the bin before; the first bin then also holds zeros.
    """

    edges: NDArray[np.float64]
    counts: I8
    log: bool


def histogram(values: I8, bins: int) -> Histogram | None:
    """Count ``values`` (none negative) in ``bins`` bins; None where all values are equal."""
    ordered = np.sort(values)
    if not len(ordered) or ordered[0] == ordered[-1]:
        return None
    edges, log = _edges(int(ordered[0]), int(ordered[-1]), bins)
    inner = np.searchsorted(ordered, edges[1:-1])
    counts = np.diff(np.concatenate([[0], inner, [len(ordered)]]))
    return Histogram(edges, counts, log)


def count_in_bins(values: I8, counts: I8, low: int, high: int, bins: int) -> Histogram | None:
    """Count ``values`` (none negative, ``counts`` of each) from ``low`` to ``high``, as above."""
    if low == high:
        return None
    edges, log = _edges(low, high, bins)
    place = np.searchsorted(edges[1:-1], values, "right")
    return Histogram(edges, sum_by(place, counts, bins), log)


def _edges(low: int, high: int, bins: int) -> tuple[NDArray[np.float64], bool]:
    """(edges of equal steps or ratios, whether these are ratios)."""
    log = high >= max(low, 1) * _WIDE
    if log:
        return np.geomspace(max(low, 1), high, bins + 1), log
    return np.linspace(low, high, bins + 1), log
