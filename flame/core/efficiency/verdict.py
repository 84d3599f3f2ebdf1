"""Judge what bounds the kernels below a frame, or say why that cannot be told."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from flame.core.columns import F8, U1
from flame.core.efficiency.work_counts import WorkCounts

_BOUND = 0.6
"""Part of a peak from which on it is the bound."""

TOO_MUCH = 1.05
"""Part of a peak above which formula, type or peak is wrong."""

COVERED = 0.5
"""Part of the kernels' time that has to be known before it tells of a frame."""

_OVERLAPPED, _LEAST_KERNELS, _SHORT_NS = 0.1, 3, 10_000


class BoundVerdict(IntEnum):
    """Say what bounds kernels; from ``UNCOVERED`` on it cannot be told, and why.

    ``NEITHER`` is below 60 % of both peaks: occupancy, latency, the tail, or launches. ``SHORT``
    are kernels of less than 10 µs each. Where it is open whether FP32 was multiplied in TF32, and
    that decides, it is ``FP32``.
    """

    COMPUTE = 0
    BANDWIDTH = 1
    NEITHER = 2
    SHORT = 3
    UNCOVERED = 4
    NO_PEAK = 5
    TOO_MUCH = 6
    OVERLAP = 7
    FEW = 8
    FP32 = 9

    @property
    def is_known(self) -> bool:
        """Whether it says what the kernels are like."""
        return self < BoundVerdict.UNCOVERED

    @property
    def key(self) -> str | None:
        """How JSON spells it; None where it cannot be told."""
        return _KEYS.get(self)

    @property
    def title(self) -> str:
        """Call it in a column; a dash where it cannot be told."""
        return _TITLES.get(self, "–")

    @property
    def words(self) -> str:
        """Say it in a line, with what it means where the title alone does not, or why not."""
        if not self.is_known:
            return f"cannot tell: {self.why}"
        meaning = _MEANING.get(self)
        return f"{self.title}: {meaning}" if meaning else self.title

    @property
    def why(self) -> str:
        """Say why it cannot be told; empty where it can."""
        return _WHY.get(self, "")


_KEYS = {
    BoundVerdict.COMPUTE: "compute-bound",
    BoundVerdict.BANDWIDTH: "bandwidth-bound",
    BoundVerdict.NEITHER: "neither",
    BoundVerdict.SHORT: "too-short",
}
_TITLES = {verdict: key.replace("too-short", "too short") for verdict, key in _KEYS.items()}
_MEANING = {
    BoundVerdict.NEITHER: "below 60 % of both peaks; occupancy, latency, the tail or launches",
    BoundVerdict.SHORT: "kernels of less than 10 µs in the mean",
}
_WHY = {
    BoundVerdict.UNCOVERED: "less than half of the kernels' time is of operators with a formula",
    BoundVerdict.NO_PEAK: "the peak of the GPU for this type is not known",
    BoundVerdict.TOO_MUCH: "a share is above 105 %: a formula, a type or a peak is wrong",
    BoundVerdict.OVERLAP: "kernels ran beside others for more than 10 % of their time",
    BoundVerdict.FEW: "fewer than 3 kernels",
    BoundVerdict.FP32: "whether FP32 was multiplied in TF32 is not recorded",
}


def judge(counts: WorkCounts) -> U1:
    """Judge each row of ``counts``, u1[n] of `BoundVerdict`."""
    slow = _bound_by(counts, counts.compute_share)
    fast = _bound_by(counts, counts.fast_compute_share)
    judged = np.where(slow == fast, slow, BoundVerdict.FP32)
    coverage, rated = counts.coverage, counts.rated_coverage
    tells = [
        (~(coverage >= COVERED), BoundVerdict.UNCOVERED),
        (~(rated >= COVERED), BoundVerdict.NO_PEAK),
        (np.full(len(counts), not counts.memory_known), BoundVerdict.NO_PEAK),
        (counts.overlapped_ns > _OVERLAPPED * counts.rated_ns, BoundVerdict.OVERLAP),
        (counts.rated < _LEAST_KERNELS, BoundVerdict.FEW),
        (judged == BoundVerdict.TOO_MUCH, BoundVerdict.TOO_MUCH),
        (counts.rated_ns < _SHORT_NS * counts.rated, BoundVerdict.SHORT),
    ]
    conditions, verdicts = zip(*tells, strict=True)
    found: U1 = np.select(conditions, verdicts, judged).astype(np.uint8)
    return found


def _bound_by(counts: WorkCounts, compute: F8) -> F8:
    """The bound, with this share of the peak of compute."""
    memory = counts.bandwidth_share
    highest = np.fmax(compute, memory)
    by = np.where(compute >= memory, BoundVerdict.COMPUTE, BoundVerdict.BANDWIDTH)
    found = np.where(highest >= _BOUND, by, BoundVerdict.NEITHER)
    return np.where(highest > TOO_MUCH, BoundVerdict.TOO_MUCH, found)
