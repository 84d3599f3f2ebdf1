"""Which iterations are warm-up and which are slow, as plain loops say by the same words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations
from statistics import median_low

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.report.measures import trend as trends
from flame.core.report.measures.trend import trend
from flame.core.report.program.iteration_verdicts import judge
from tests.support.profiles.recorded import i8


def spread(values: list[int]) -> float:
    middle = median_low(values)
    return 3 * 1.4826 * median_low([abs(value - middle) for value in values])


def expected(periods: list[int]) -> tuple[list[bool], list[bool]]:
    first = 0
    if len(periods) < 5:
        return [False] * len(periods), [False] * len(periods)
    while first < len(periods) // 2:
        rest = periods[first + 1 :]
        if periods[first] <= median_low(rest) + spread(rest):
            break
        first += 1
    rest = periods[first:]
    limit = median_low(rest) + max(spread(rest), 0.1 * median_low(rest))
    return (
        [at < first for at in range(len(periods))],
        [at >= first and period > limit for at, period in enumerate(periods)],
    )


@given(st.lists(st.one_of(st.integers(90, 130), st.integers(1, 1_000)), max_size=12))
def test_verdicts_are_those_of_plain_loops(periods: list[int]) -> None:
    found = judge(i8(*periods))
    assert (found.warm_up.tolist(), found.slow.tolist()) == expected(periods)
    assert (found.normal == ~(found.warm_up | found.slow)).all()


def test_the_first_is_warm_up_and_one_later_is_slow() -> None:
    found = judge(i8(700, 100, 101, 99, 100, 130, 100))
    assert found.warm_up.tolist() == [True, *[False] * 6]
    assert np.flatnonzero(found.slow).tolist() == [5]
    assert found.statistics is not None
    assert (found.statistics.count, found.statistics.p50, found.deviation) == (6, 100, 0)
    assert found.limit == 110


def test_a_tenth_more_is_not_slow() -> None:
    assert not judge(i8(100, 100, 110, 100, 100, 100)).slow.any()
    assert judge(i8(100, 100, 111, 100, 100, 100)).slow.any()


def test_of_few_nothing_is_said_but_statistics() -> None:
    found = judge(i8(100, 100, 900, 100))
    assert not found.slow.any()
    assert found.limit is None
    assert found.statistics is not None
    assert found.statistics.maximum == 900
    assert judge(i8()).statistics is None


# Trend


def test_the_trend_is_the_median_slope() -> None:
    pytest.importorskip("scipy")
    values = [10, 12, 19, 16, 18, 20]
    slopes = sorted(
        (later - earlier) / (b - a)
        for a, earlier in enumerate(values)
        for b, later in enumerate(values)
        if b > a
    )
    found = trend(i8(*values))
    assert found is not None
    assert found.slope == pytest.approx(slopes[len(slopes) // 2])
    # By chance as often as so much order, or its contrary, is among all orders.
    orders = [abs(order_of(one)) for one in permutations(values)]
    usual = sum(one >= order_of(values) for one in orders) / len(orders)
    assert found.chance == pytest.approx(usual)


def order_of(values: Sequence[int]) -> int:
    """Pairs that grow, less those that shrink."""
    return sum((a < b) - (a > b) for a, b in combinations(values, 2))


def test_there_is_none_of_few_of_equal_ones_and_without_scipy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert trend(i8(1, 2, 3, 4)) is None
    assert trend(i8(7, 7, 7, 7, 7, 7)) is None
    monkeypatch.setattr(trends, "find_spec", lambda name: None)
    assert trend(i8(1, 2, 3, 4, 5, 6)) is None


def test_of_many_some_are_looked_at() -> None:
    pytest.importorskip("scipy")
    found = trend(np.arange(100_000) * 3)
    assert found is not None
    assert found.slope == pytest.approx(3)


def test_halves_within_a_hundredth_have_no_trend(monkeypatch: pytest.MonkeyPatch) -> None:
    def never() -> bool:
        raise AssertionError("nothing is imported for them")

    monkeypatch.setattr(trends, "has_statistics", never)
    assert trend(i8(1000, 1010, 990, 1005, 1001, 1008)) is None
    with pytest.raises(AssertionError):
        trend(i8(1000, 1000, 1000, 1011, 1011, 1011))
