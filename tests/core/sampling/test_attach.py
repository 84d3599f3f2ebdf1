"""PC samples of many launches spread over them: exact in sum, in proportion to time."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flame.core.sampling.attach import split_over_rows
from tests.support.profiles.recorded import i8

weights = st.one_of(st.just(0), st.integers(0, 5), st.integers(0, 10**12))
rows = st.lists(st.tuples(st.integers(-1, 2), weights), max_size=12)
amounts = st.one_of(st.integers(0, 9), st.integers(0, 10**12))
huge = st.integers(2**53, 2**62 - 1)


def spread(of_row: list[int], totals: list[int], weight: list[int]) -> list[int]:
    found: list[int] = split_over_rows(
        np.array(of_row, np.int32), i8(*totals), i8(*weight)
    ).tolist()
    return found


@given(rows, st.lists(amounts, min_size=3, max_size=3))
def test_each_total_is_shared_in_proportion(rows: list[tuple[int, int]], totals: list[int]) -> None:
    found = spread([of for of, _ in rows], totals, [weight for _, weight in rows])
    for which, total in enumerate(totals):
        places = [at for at, (of, _) in enumerate(rows) if of == which]
        heavy = sum(rows[at][1] for at in places)
        own = [rows[at][1] if heavy else 1 for at in places]
        shares = [found[at] for at in places]
        assert sum(shares) == (total if places else 0)
        assert all(share >= 0 for share in shares)
        for sum_of_shares, sum_of_own in zip(accumulate(shares), accumulate(own), strict=True):
            # Rounded down, and by one less where a float is just below the whole number.
            assert 0 <= Fraction(total * sum_of_own, sum(own)) - sum_of_shares < 1 + Fraction(1, 99)


@given(st.lists(weights, min_size=1, max_size=6), huge)
def test_nothing_is_lost_of_totals_that_no_float_holds(own: list[int], total: int) -> None:
    found = spread([0] * len(own), [total], own)
    assert sum(found) == total and min(found) >= 0


@given(rows)
def test_rows_of_no_total_have_nothing(rows: list[tuple[int, int]]) -> None:
    found = spread([of for of, _ in rows], [7, 8, 9], [weight for _, weight in rows])
    assert all(share == 0 for share, (of, _) in zip(found, rows, strict=True) if of < 0)


def test_rows_that_took_no_time_have_equal_parts() -> None:
    assert spread([0, 0, 0], [6], [0, 0, 0]) == [2, 2, 2]


def test_a_row_that_took_no_time_has_nothing_beside_one_that_did() -> None:
    assert spread([0, 0], [6], [0, 5]) == [0, 6]


def test_rows_of_different_totals_stand_in_any_order() -> None:
    assert spread([1, 0, 1, -1, 0], [10, 100], [1, 1, 3, 9, 1]) == [25, 5, 75, 0, 5]
