"""Tests and intervals are those of scipy, of plain loops, and of counting out."""

from __future__ import annotations

from itertools import combinations
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import false_discovery_control, mannwhitneyu

from flame.core.compare import statistics
from flame.core.compare.statistics import (
    adjusted,
    medians,
    p_of_deviations,
    rank_strata,
    rank_test,
    ratio_interval,
    shift,
)

few = st.lists(st.integers(0, 6), min_size=2, max_size=12)


def rows(*values: list[int]) -> np.ndarray:
    return np.array(values, np.float64)


@given(few, few)
def test_ranks_are_tested_as_scipy_does(base: list[int], new: list[int]) -> None:
    found = rank_test(rows(base), rows(new))
    pairs = [(one > other) + (one == other) / 2 for one in new for other in base]
    assert found.probability[0] == pytest.approx(sum(pairs) / len(pairs))
    if len({*base, *new}) == 1:
        assert found.p[0] == 1
        return
    known = mannwhitneyu(new, base, method="asymptotic")
    assert found.p[0] == pytest.approx(known.pvalue)


@pytest.mark.parametrize(("base", "new"), [(4, 4), (5, 9), (20, 20), (1, 3)])
def test_orders_are_counted_as_scipy_does(base: int, new: int) -> None:
    some = np.random.default_rng(1).permuted(np.tile(np.arange(float(base + new)), (30, 1)), axis=1)
    some[:2] = np.arange(base + new), np.arange(base + new)[::-1]
    below, above = some[:, :base], some[:, base:]
    known = mannwhitneyu(above, below, axis=1, method="exact").pvalue
    np.testing.assert_allclose(rank_test(below, above, exact=True).p, known, rtol=1e-12)


def test_many_runs_are_not_counted_out() -> None:
    base, new = rows([*range(0, 42, 2)]), rows([*range(5, 47, 2)])
    known = mannwhitneyu(new[0], base[0], method="asymptotic").pvalue
    assert rank_test(base, new, exact=True).p[0] == pytest.approx(known)


def test_p_values_are_exact_far_from_chance() -> None:
    above = np.array([0, 1, 5, 30.0])
    found = p_of_deviations(above, np.ones(4), np.zeros(4))
    np.testing.assert_allclose(found, 2 * ndtr(-above), rtol=1e-12)


def test_few_runs_are_counted_out() -> None:
    base, new = rows([1, 2, 3, 4], [1, 2, 3, 9]), rows([5, 6, 7, 8], [5, 6, 7, 9])
    found = rank_test(base, new, exact=True)
    assert found.p[0] == pytest.approx(2 / 70)
    known = mannwhitneyu(new[1], base[1], method="asymptotic").pvalue
    assert found.p[1] == pytest.approx(known, rel=1e-12)  # a tie


strata = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 5), st.booleans()), min_size=1, max_size=40
)


@given(strata)
def test_each_stratum_is_ranked_for_itself(some: list[tuple[int, int, bool]]) -> None:
    some = [*some, *((one, 3, new) for one in range(3) for new in (True, False))]
    stratum, value, is_new = (np.array(column) for column in zip(*some, strict=True))
    found = rank_strata(stratum, value, is_new, 3)
    p = p_of_deviations(found.probability - 0.5, found.variance, found.continuity)
    for one in range(3):
        base, new = (value[(stratum == one) & (is_new == side)] for side in (False, True))
        alone = rank_test(rows(base.tolist()), rows(new.tolist()))
        assert (found.base[one], found.new[one]) == (len(base), len(new))
        assert found.probability[one] == pytest.approx(alone.probability[0])
        assert p[one] == pytest.approx(alone.p[0])


@given(st.lists(st.floats(0, 1) | st.just(float("nan")), max_size=12))
def test_p_values_are_adjusted_for_their_number(values: list[float]) -> None:
    found = adjusted(np.array(values))
    tested = sorted(p for p in values if p == p)
    for p, one in zip(values, found, strict=True):
        assert (p == p) == (one == one)
        if p == p:
            above = [
                tested[at] * len(tested) / (at + 1) for at in range(len(tested)) if tested[at] >= p
            ]
            assert one == pytest.approx(min(above))
    if tested:
        assert found[~np.isnan(found)] == pytest.approx(
            false_discovery_control([p for p in values if p == p])
        )


@given(
    st.lists(st.integers(0, 50), min_size=4, max_size=9),
    st.lists(st.integers(0, 50), min_size=4, max_size=9),
)
def test_the_shift_is_the_median_of_all_differences(base: list[int], new: list[int]) -> None:
    found, bounds = shift(rows(base), rows(new))
    differences = sorted(one - other for one in new for other in base)
    assert found[0] == median(differences)
    # How many differences an interval may leave out on each side, by all orders there are.
    size = len(base) + len(new)
    below = []
    for places in combinations(range(size), len(new)) if size < 12 else ():
        below.append(sum(places) - len(new) * (len(new) - 1) // 2)
    if below:
        rank = next(
            q for q in range(len(differences)) if sum(u <= q for u in below) >= 0.025 * len(below)
        )
        rank = max(rank, 1)
        assert (bounds.low[0], bounds.high[0]) == (differences[rank - 1], differences[-rank])


def test_the_interval_of_many_differences_is_about_that_of_few() -> None:
    exact, usual = (statistics._rank_of_bound(size, size) for size in (20, 21))
    assert (exact, usual) == (128, 142)  # as in R: qwilcox(0.025, n, n), and by its deviation


def test_medians_are_drawn_in_blocks_as_a_plain_loop_draws_them() -> None:
    values = np.random.default_rng(3).integers(0, 20, (4, 11)).astype(np.float64)
    drawn = statistics._drawn_medians(values, np.random.default_rng(5))
    times = statistics._draw_blocks(11, np.random.default_rng(5))
    assert (times.sum(axis=0) == 11).all()
    for row, found in zip(values, drawn, strict=True):
        for draw in range(0, 2_000, 97):
            every = sorted(
                value
                for value, often in zip(row, times[:, draw], strict=True)
                for _ in range(often)
            )
            assert found[draw] == every[5]


def test_blocks_are_of_neighbours_in_a_circle() -> None:
    times = statistics._draw_blocks(16, np.random.default_rng(0))
    for column in times.T[:50]:
        # Four blocks of four begin and end at most four times.
        assert np.count_nonzero(np.diff(column.astype(int), append=column[0])) <= 8


@given(st.integers(1, 40), st.integers(1, 40))
def test_the_same_values_have_the_same_interval(low: int, high: int) -> None:
    base, new = rows([*range(low, low + 9)]), rows([*range(high, high + 9)])
    found = ratio_interval(base, new)
    assert found == ratio_interval(base, new)
    observed = medians(new)[0] / medians(base)[0]
    assert found.low[0] <= observed <= found.high[0]


def test_nothing_is_said_of_a_base_of_nothing() -> None:
    found = ratio_interval(rows([0] * 8, [1] * 8), rows([3] * 8, [2] * 8))
    assert np.isnan(found.low[0]) and found.low[1] == found.high[1] == 2


@pytest.mark.deep
@pytest.mark.parametrize("size", [20, 100, 400])
def test_nine_of_ten_intervals_at_least_hold_what_is_true(size: int) -> None:
    random = np.random.default_rng(size)
    base, new = (random.gamma(50, 1, (300, size)) for _ in range(2))
    found = ratio_interval(base, 1.1 * new)
    assert 0.88 < ((found.low <= 1.1) & (found.high >= 1.1)).mean() < 0.99
