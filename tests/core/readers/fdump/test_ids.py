"""What the ids in a dump lead to, and what a damaged one says twice."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flame.core.readers.fdump.ids import ABSENT, IdTable


def column(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, np.int64)


def learnt(*pairs: tuple[int, int]) -> IdTable:
    ids = IdTable()
    ids.learn(column(*(one for one, _ in pairs)), column(*(value for _, value in pairs)))
    return ids


def test_values_are_found_by_id_in_whatever_order_they_are() -> None:
    ids = learnt((7, 1), (3, 2), (9, 3))
    assert ids.look_up(column(3, 9, 7, 3)).tolist() == [2, 3, 1, 2]


def test_zero_and_unknown_ids_lead_nowhere() -> None:
    ids = learnt((0, 1), (4, 2))
    assert ids.look_up(column(0, 5, 4)).tolist() == [ABSENT, ABSENT, 2]
    assert ids.contains(column(0, 5, 4)).tolist() == [False, False, True]
    assert len(ids) == 1


def test_of_different_values_of_one_id_none_is_believed() -> None:
    ids = learnt((1, 5), (2, 6), (2, 6), (3, 7), (3, 8))
    assert ids.look_up(column(1, 2, 3)).tolist() == [5, 6, ABSENT]
    assert ids.contains(column(3)).all()


def test_what_is_learnt_later_is_no_different() -> None:
    ids = learnt((1, 5), (2, 6), (4, 0))
    ids.learn(column(3, 2, 4, 4), column(9, 6, 1, 0))
    assert ids.look_up(column(1, 2, 3, 4)).tolist() == [5, 6, 9, ABSENT]
    ids.learn(column(4), column(0))
    assert ids.look_up(column(4)).tolist() == [ABSENT]


@given(st.lists(st.tuples(st.integers(-1, 6), st.integers(0, 2))), st.integers(0, 20))
def test_however_it_is_cut_the_same_is_learnt(pairs: list[tuple[int, int]], cut: int) -> None:
    at_once, piecewise = learnt(*pairs), learnt(*pairs[:cut])
    piecewise.learn(*(column(*(pair[at] for pair in pairs[cut:])) for at in (0, 1)))
    wanted = column(*range(-1, 8))
    assert at_once.look_up(wanted).tolist() == piecewise.look_up(wanted).tolist()
    told = {one: {value for each, value in pairs if each == one} for one, _ in pairs if one > 0}
    expected = [told[one].copy().pop() if len(told.get(one, ())) == 1 else -1 for one in range(8)]
    assert at_once.look_up(column(*range(8))).tolist() == expected
