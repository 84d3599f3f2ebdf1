"""Percentiles by nearest rank, and histograms, against plain Python."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.analysis.distribution import distribution, distributions, histogram
from tests.support.profiles.recorded import i8

values = st.lists(
    st.one_of(st.integers(0, 20), st.integers(0, 10**6), st.integers(0, 10**12)), min_size=1
)


def nearest_rank(ordered: list[int], percent: int) -> int:
    return ordered[ceil(len(ordered) * percent / 100) - 1]


@given(values)
def test_a_distribution_is_what_plain_python_says(values: list[int]) -> None:
    found = distribution(i8(*values))
    assert found is not None
    ordered = sorted(values)
    assert (found.count, found.total) == (len(values), sum(values))
    assert (found.minimum, found.maximum) == (ordered[0], ordered[-1])
    assert [found.p50, found.p95, found.p99] == [nearest_rank(ordered, p) for p in (50, 95, 99)]
    assert found.mean == sum(values) / len(values)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-5, 10**10)), max_size=60))
def test_distributions_are_those_of_each_group(pairs: list[tuple[int, int]]) -> None:
    found = distributions(i8(*(group for group, _ in pairs)), i8(*(value for _, value in pairs)), 5)
    for group in range(5):
        own = sorted(value for of, value in pairs if of == group)
        columns = (found.count, found.total, found.minimum, found.maximum)
        sums = [len(own), sum(own), own[0], own[-1]] if own else [0] * 4
        assert [int(column[group]) for column in columns] == sums
        percents = {50: found.p50, 90: found.p90, 95: found.p95, 99: found.p99}
        for percent, column in percents.items():
            assert column[group] == (nearest_rank(own, percent) if own else 0)
        assert found.means[group] == (round(sum(own) / len(own), 1) if own else None)


def test_groups_may_be_given_other_numbers() -> None:
    found = distributions(i8(0, 0, 1), i8(4, 2, 9), 2).placed(i8(2, 0), 4)
    assert (found.count.tolist(), found.total.tolist()) == ([1, 0, 2, 0], [9, 0, 6, 0])
    assert (found.minimum.tolist(), found.p99.tolist()) == ([9, 0, 2, 0], [9, 0, 4, 0])


def test_percentiles_are_values_that_occur() -> None:
    found = distribution(i8(4, 1))
    assert found is not None
    assert (found.p50, found.p95, found.p99) == (1, 4, 4)


@pytest.mark.parametrize("values", [[10] * 98 + [40] * 2, [10] * 99 + [40]])
def test_the_tail_is_how_much_worse_the_worst_per_cent_is(values: list[int]) -> None:
    found = distribution(i8(*values))
    assert found is not None
    assert found.tail == (4.0 if values.count(40) == 2 else 1.0)


def test_a_tail_above_zeros_is_not_infinite() -> None:
    found = distribution(i8(0, 0, 0, 7))
    assert found is not None
    assert found.tail == 0.0


def test_there_is_no_distribution_of_nothing() -> None:
    assert distribution(i8()) is None
    assert histogram(i8(), 10) is None


def test_equal_values_have_no_histogram() -> None:
    assert histogram(i8(5, 5, 5), 10) is None


@given(values, st.integers(1, 40))
def test_a_histogram_counts_every_value_in_the_bin_it_is_in(values: list[int], bins: int) -> None:
    found = histogram(i8(*values), bins)
    if found is None:
        assert len(set(values)) == 1
        return
    edges = found.edges.tolist()
    assert edges == sorted(edges)
    counts = [0] * bins
    for value in values:
        counts[max((place for place in range(1, bins) if value >= edges[place]), default=0)] += 1
    assert found.counts.tolist() == counts


def test_a_wide_range_is_in_bins_of_equal_ratio() -> None:
    found = histogram(i8(1, 10, 100, 1000), 3)
    assert found is not None
    assert found.log
    assert np.allclose(found.edges, [1, 10, 100, 1000])
    assert found.counts.tolist() == [1, 1, 2]


def test_a_narrow_range_is_in_bins_of_equal_width() -> None:
    found = histogram(i8(10, 15, 20, 30), 4)
    assert found is not None
    assert not found.log
    assert found.edges.tolist() == [10, 15, 20, 25, 30]
    assert found.counts.tolist() == [1, 1, 1, 1]


def test_zeros_are_in_the_first_bin() -> None:
    found = histogram(i8(0, 0, 1, 10_000), 4)
    assert found is not None
    assert found.counts.tolist() == [3, 0, 0, 1]
