"""Values in parts: exact in sum, and as near to plain fractions as can be."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flame.core.columns import I8
from flame.core.projection.splits.sample_split import apportion
from tests.support.oracles.naive_samples import hamilton
from tests.support.tiers import examples


def split(values: list[int], weights: list[list[int]]) -> list[list[int]]:
    """Each of `values` in proportion to its weights."""
    sizes = [len(one) for one in weights]
    of = np.repeat(np.arange(len(sizes)), sizes)
    flat = np.array([weight for one in weights for weight in one], np.int64)
    found: I8 = apportion(np.array(values, np.int64), flat, of)
    return [part.tolist() for part in np.split(found, np.cumsum(sizes)[:-1])]


values = st.one_of(st.integers(0, 5), st.integers(0, 1_000), st.integers(0, 10**15))
weights = st.one_of(st.integers(1, 4), st.integers(1, 10**6), st.integers(1, 1 << 40))
splits = st.lists(
    st.tuples(values, st.lists(weights, min_size=1, max_size=8)), min_size=1, max_size=4
)


@examples(2)
@given(splits)
def test_parts_are_those_of_fractions(units: list[tuple[int, list[int]]]) -> None:
    found = split([value for value, _ in units], [weights for _, weights in units])
    for (value, weights), shares in zip(units, found, strict=True):
        assert sum(shares) == value
        bounds = hamilton(value, weights)
        assert all(low <= part <= high for part, (low, high) in zip(shares, bounds, strict=True))


@given(splits)
def test_what_weighs_more_never_has_less(units: list[tuple[int, list[int]]]) -> None:
    found = split([value for value, _ in units], [weights for _, weights in units])
    for (_, weights), shares in zip(units, found, strict=True):
        ordered = [part for _, part in sorted(zip(weights, shares, strict=True))]
        assert ordered == sorted(shares)


def test_a_unit_far_heavier_than_others_does_not_make_these_coarse() -> None:
    assert split([3, 7], [[1, 2], [1 << 61, 1 << 60]]) == [[1, 2], [5, 2]]


def test_the_largest_values_and_weights_lose_nothing() -> None:
    (found,) = split([10**18], [[10**18 + 1, 10**17, 1]])
    assert sum(found) == 10**18
    assert found[2] in (0, 1)


def test_nothing_has_no_parts() -> None:
    none = np.zeros(0, np.int64)
    assert apportion(none, none, none).tolist() == []
