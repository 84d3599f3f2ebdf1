"""Hold the work below each of some frames, and the rates and shares of peak that it makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

import numpy as np

from flame.core.columns import F8, I8, Column
from flame.core.lazy_dataclass import dataclass


@dataclass(frozen=True, eq=False)
class WorkCounts:
    """Hold sums over the activities below each row (a frame, a node, a group), i8[n] each.

    | column | meaning |
    |---|---|
    | kernel_ns | time of all kernels |
    | covered, covered_ns | kernels of operators with a formula: their number and time |
    | flops, bytes | what these did; the bytes are a lower bound |
    | rated, rated_ns | those of them for which the peak is known: their number and time |
    | compute_ps, fast_compute_ps | what these need at the peak; the second with TF32 for FP32 |
    | memory_ps | what these need for their bytes |
    | bound_ps, fast_bound_ps | what each needs for the longer of both, summed |
    | overlapped_ns | for how long ``rated`` ones ran beside others |
    | causal_ns | time of ``rated`` ones with a causal mask |
    | waste | ``rated_ns`` above the bound, where it is, ns |

    Rates and shares are f8[n], of the time of kernels that are covered, or rated, alone; NaN where
    they are not known. Shares are parts of 1.
    """

    kernel_ns: I8
    covered: I8
    covered_ns: I8
    flops: I8
    bytes: I8
    rated: I8
    rated_ns: I8
    compute_ps: I8
    fast_compute_ps: I8
    memory_ps: I8
    bound_ps: I8
    fast_bound_ps: I8
    overlapped_ns: I8
    causal_ns: I8
    waste: I8
    memory_known: bool

    def __len__(self) -> int:
        return len(self.kernel_ns)

    @classmethod
    def none(cls, size: int, memory_known: bool) -> WorkCounts:
        """Make counts of ``size`` rows below which nothing is."""
        columns = {name: np.zeros(size, np.int64) for name in _COLUMNS}
        return cls(**columns, memory_known=memory_known)

    @classmethod
    def of_columns(cls, columns: I8, memory_known: bool) -> WorkCounts:
        """Make counts of ``columns`` i8[columns, n], as `columns` has them."""
        return cls(**dict(zip(_COLUMNS, columns, strict=True)), memory_known=memory_known)

    @property
    def columns(self) -> I8:
        """All columns in their order, i8[columns, n]."""
        return np.stack([getattr(self, name) for name in _COLUMNS])

    def plus(self, other: WorkCounts) -> WorkCounts:
        """Add those of ``other``, which has as many rows."""
        columns = {name: getattr(self, name) + getattr(other, name) for name in _COLUMNS}
        return WorkCounts(**columns, memory_known=self.memory_known)

    def map(self, change: Callable[[I8], I8]) -> WorkCounts:
        """Make the counts whose every column is what ``change`` makes of it."""
        columns = {name: change(getattr(self, name)) for name in _COLUMNS}
        return WorkCounts(**columns, memory_known=self.memory_known)

    @property
    def coverage(self) -> F8:
        """Part of the time of kernels that those of operators with a formula have."""
        return _ratio(self.covered_ns, self.kernel_ns)

    @property
    def rated_coverage(self) -> F8:
        """Part of the time of kernels that shares of the peak are of."""
        return _ratio(self.rated_ns, self.kernel_ns)

    @property
    def tflops(self) -> F8:
        """FLOPs by the time of covered kernels, TFLOP/s."""
        return _ratio(self.flops, self.covered_ns * 1000)

    @property
    def gb_per_s(self) -> F8:
        """Bytes by the time of covered kernels, GB/s; a lower bound of what was moved."""
        return np.where(self.bytes > 0, _ratio(self.bytes, self.covered_ns), np.nan)

    @property
    def intensity(self) -> F8:
        """FLOPs per byte."""
        return _ratio(self.flops, self.bytes)

    @property
    def compute_share(self) -> F8:
        """Part of the peak of compute: the mean of each kernel's, weighted by time."""
        return self._share(self.compute_ps)

    @property
    def fast_compute_share(self) -> F8:
        """The same where FP32 has been TF32, which is not recorded."""
        return self._share(self.fast_compute_ps)

    @property
    def bandwidth_share(self) -> F8:
        """Part of the bandwidth of memory, at least."""
        return self._of_memory(self.memory_ps)

    @property
    def bound_share(self) -> F8:
        """What perfect kernels would need by what these took."""
        return self._of_memory(self.bound_ps)

    @property
    def fast_bound_share(self) -> F8:
        """The same where FP32 has been TF32."""
        return self._of_memory(self.fast_bound_ps)

    def _share(self, needed_ps: I8) -> F8:
        return _ratio(needed_ps, self.rated_ns * 1000)

    def _of_memory(self, needed_ps: I8) -> F8:
        return self._share(needed_ps) if self.memory_known else np.full(len(self), np.nan)


_COLUMNS = tuple(each.name for each in fields(WorkCounts) if each.name != "memory_known")
"""Names of the columns."""

WIDTH = len(_COLUMNS)
"""How many columns there are."""


def _ratio(part: I8, whole: Column) -> F8:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole > 0, part / whole, np.nan)
