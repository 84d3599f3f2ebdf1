"""Write what is known of the work below a frame in cells: rates, shares of peak, verdict."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from flame.core.columns import F8, Column
from flame.core.efficiency.verdict import BoundVerdict, judge
from flame.core.efficiency.work_counts import WorkCounts
from flame.core.units import format_percent

TFLOPS, COMPUTE, BANDWIDTH, BOUND, RATED, VERDICT = (
    "tflops",
    "compute_share",
    "bandwidth_share",
    "bound_share",
    "rated_share",
    "verdict",
)
"""Keys of the columns, in the order in which tables have them."""

_VALUES: dict[str, Callable[[WorkCounts], F8]] = {
    TFLOPS: lambda counts: counts.tflops,
    COMPUTE: lambda counts: counts.compute_share,
    BANDWIDTH: lambda counts: counts.bandwidth_share,
    BOUND: lambda counts: counts.bound_share,
    RATED: lambda counts: np.where(counts.rated > 0, counts.rated_coverage, np.nan),
}
_FAST: dict[str, Callable[[WorkCounts], F8]] = {
    COMPUTE: lambda counts: counts.fast_compute_share,
    BOUND: lambda counts: counts.fast_bound_share,
}
_DIFFERS = 0.005
"""Parts of 1 from which on TF32 makes a share another."""


class WorkColumns:
    """Hold the columns of ``counts``, f8[n] by key, NaN where a row has none.

    The column of the verdicts falls from compute-bound to what is too short.
    """

    def __init__(self, counts: WorkCounts) -> None:
        self.counts = counts
        self.verdicts = judge(counts)
        known = self.verdicts < BoundVerdict.UNCOVERED
        self.values: dict[str, Column] = {key: of(counts) for key, of in _VALUES.items()}
        self.values[VERDICT] = np.where(known, -self.verdicts.astype(float), np.nan)
        self._fast = {key: of(counts) for key, of in _FAST.items()}

    def verdict(self, row: int) -> BoundVerdict | None:
        """Return what is said of ``row``; None where no operator there has a formula."""
        return BoundVerdict(int(self.verdicts[row])) if self.counts.covered[row] else None

    def cell(self, row: int, key: str) -> str:
        """Write the value of ``row`` in at most eight cells; empty where it is not known.

        Verdicts have up to fifteen, and a dash where an operator has a formula, but it cannot be
        told.
        """
        if key == VERDICT:
            verdict = self.verdict(row)
            return verdict.title if verdict is not None else ""
        value = float(self.values[key][row])
        if np.isnan(value):
            return ""
        if key == TFLOPS:
            return format_rate(value)
        return format_share(value, float(self._fast[key][row]) if key in self._fast else value)


def format_rate(tflops: float) -> str:
    """Write TFLOP/s with three digits: ``0.0123``, ``1.23``, ``612``."""
    return f"{tflops:.0f}" if tflops >= 100 else f"{tflops:.3g}"


def format_share(share: float, fast: float) -> str:
    """Write a part of 1 in percent, both where it is ``fast`` with TF32: ``26–52 %``."""
    if abs(share - fast) < _DIFFERS:
        return format_percent(share, 1)
    return f"{100 * fast:.0f}–{100 * share:.0f} %"
