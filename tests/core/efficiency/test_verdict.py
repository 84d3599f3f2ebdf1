"""Verdicts: what bounds kernels, and every reason not to say."""

from __future__ import annotations

import numpy as np
import pytest

from flame.core.efficiency.verdict import BoundVerdict, judge
from flame.core.efficiency.work_counts import WorkCounts

LONG = 10 * 20_000
"""Ten kernels of 20 µs, ns."""


def judged(
    compute: float,
    memory: float,
    fast: float | None = None,
    covered: float = 1.0,
    rated: float = 1.0,
    kernels: int = 10,
    overlapped: float = 0.0,
    ns: int = LONG,
    memory_known: bool = True,
) -> BoundVerdict:
    """The verdict on kernels with these shares of the peaks."""
    whole = round(ns / covered)
    rated_ns = round(ns * rated)
    needed = [round(1000 * rated_ns * part) for part in (compute, fast or compute, memory)]
    values = {
        "kernel_ns": whole,
        "covered": kernels,
        "covered_ns": ns,
        "rated": kernels,
        "rated_ns": rated_ns,
        "compute_ps": needed[0],
        "fast_compute_ps": needed[1],
        "memory_ps": needed[2],
        "overlapped_ns": round(overlapped * rated_ns),
    }
    names = ("flops", "bytes", "bound_ps", "fast_bound_ps", "causal_ns", "waste")
    columns = {
        name: np.array([value]) for name, value in (values | dict.fromkeys(names, 0)).items()
    }
    return BoundVerdict(int(judge(WorkCounts(**columns, memory_known=memory_known))[0]))


@pytest.mark.parametrize(
    ("compute", "memory", "verdict"),
    [
        (0.60, 0.60, BoundVerdict.COMPUTE),
        (0.70, 0.20, BoundVerdict.COMPUTE),
        (0.61, 0.62, BoundVerdict.BANDWIDTH),
        (0.00, 0.60, BoundVerdict.BANDWIDTH),
        (0.59, 0.59, BoundVerdict.NEITHER),
        (1.05, 0.00, BoundVerdict.COMPUTE),
        (1.06, 0.00, BoundVerdict.TOO_MUCH),
        (0.10, 1.06, BoundVerdict.TOO_MUCH),
    ],
)
def test_the_larger_share_is_the_bound_from_60_percent_on(
    compute: float, memory: float, verdict: BoundVerdict
) -> None:
    assert judged(compute, memory) == verdict


def test_kernels_of_less_than_10_microseconds_are_too_short() -> None:
    assert judged(0.9, 0.1, ns=10 * 9_999) == BoundVerdict.SHORT
    assert judged(0.9, 0.1, ns=10 * 10_000) == BoundVerdict.COMPUTE


def test_it_is_left_open_where_too_little_is_known() -> None:
    assert judged(0.9, 0.1, covered=0.49) == BoundVerdict.UNCOVERED
    assert judged(0.9, 0.1, rated=0.4) == BoundVerdict.NO_PEAK
    assert judged(0.9, 0.1, memory_known=False) == BoundVerdict.NO_PEAK
    assert judged(0.9, 0.1, overlapped=0.11) == BoundVerdict.OVERLAP
    assert judged(0.9, 0.1, kernels=2) == BoundVerdict.FEW


def test_fp32_is_left_open_only_where_tf32_would_change_the_verdict() -> None:
    assert judged(0.9, 0.1, fast=0.12) == BoundVerdict.FP32
    assert judged(1.9, 0.1, fast=0.3) == BoundVerdict.FP32
    assert judged(0.3, 0.1, fast=0.05) == BoundVerdict.NEITHER
    assert judged(0.3, 0.8, fast=0.05) == BoundVerdict.BANDWIDTH


def test_every_verdict_has_words_and_only_known_ones_a_key() -> None:
    for verdict in BoundVerdict:
        assert bool(verdict.key) == verdict.is_known == (not verdict.why)
        assert verdict.title == (verdict.key or "–").replace("too-short", "too short")


def test_nothing_at_all_is_not_judged() -> None:
    names = [name for name in WorkCounts.__annotations__ if name != "memory_known"]
    counts = WorkCounts(**dict.fromkeys(names, np.zeros(1, np.int64)), memory_known=True)
    assert BoundVerdict(int(judge(counts)[0])) == BoundVerdict.UNCOVERED
    assert np.isnan(counts.tflops).all() and np.isnan(counts.coverage).all()
