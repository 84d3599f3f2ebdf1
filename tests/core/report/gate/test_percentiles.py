"""Percentiles of durations: by nearest rank, between the values beside them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.analysis.distribution import distribution
from flame.core.report.gate.percentiles import Durations, fewest

VALUES = st.lists(st.integers(0, 50), min_size=1, max_size=60)


@given(VALUES, VALUES)
def test_percentiles_are_those_of_all_values(values: list[int], more: list[int]) -> None:
    one, other = (np.array(side, np.int64) for side in (values, more))
    both = distribution(np.concatenate([one, other]))
    found = Durations.of(one).joined(Durations.of(other))
    assert both is not None
    assert (found.total, found.percentile(99), found.percentile(50)) == (
        both.count,
        both.p99,
        both.p50,
    )


def test_bounds_hold_the_percentile_in_19_of_20_samples() -> None:
    random = np.random.default_rng(20)
    inside = 0
    for _ in range(400):
        values = random.integers(0, 1_000_000, 1_000)
        low, high = Durations.of(values).bounds(99)
        inside += low <= 990_000 <= high
    assert inside >= 0.93 * 400


def test_few_values_have_no_upper_bound() -> None:
    assert fewest(99) == 381
    for size, known in ((380, False), (381, True)):
        assert math.isfinite(Durations.of(np.arange(size)).bounds(99)[1]) is known
    none = Durations.of(np.zeros(0, np.int64))
    assert math.isnan(none.percentile(99)) and none.bounds(99) == (0.0, math.inf)


@pytest.mark.parametrize("percent", [50, 90, 95, 99])
def test_one_value_is_all_of_them(percent: int) -> None:
    found = Durations.of(np.full(1_000, 7))
    assert found.percentile(percent) == 7 and found.bounds(percent) == (7, 7)
