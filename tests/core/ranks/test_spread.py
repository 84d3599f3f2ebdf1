"""The spread over ranks is what plain loops over sorted lists make it."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.ranks import spread
from flame.core.ranks.spread import blocks, nearest_rank, spread_of, widest

rows = st.integers(1, 9).flatmap(
    lambda ranks: st.lists(
        st.lists(st.integers(0, 1 << 40) | st.integers(0, 3), min_size=ranks, max_size=ranks),
        max_size=5,
    ).map(lambda found: (ranks, found))
)


def test_by_hand() -> None:
    found = spread_of(np.array([[0, 40, 10, 40, 0, 30]]))
    assert (found.total[0], found.mean[0]) == (120, 20.0)
    assert (found.least[0], found.median[0], found.p95[0], found.most[0]) == (0, 10, 40, 40)
    assert (found.there[0], found.worst[0]) == (4, 1), "of equal ranks the first is the worst"
    assert found.imbalance[0] == 1.0
    assert found.deviation[0] == 3.0


def test_who_has_least_is_farthest_of_those_who_wait() -> None:
    found = spread_of(np.array([[100, 100, 20, 100, 110]]))
    assert found.deviation[0] == -0.8


def test_what_nobody_has_is_spread_in_no_way() -> None:
    found = spread_of(np.zeros((1, 3), np.int64))
    assert (found.there[0], found.worst[0], found.most[0]) == (0, -1, 0)
    assert math.isnan(found.imbalance[0])
    assert math.isnan(found.deviation[0])


def test_what_most_ranks_lack_has_no_part_of_the_median() -> None:
    found = spread_of(np.array([[0, 0, 5]]))
    assert found.deviation[0] == math.inf
    assert found.imbalance[0] == 2.0


def test_one_rank_alone_is_even() -> None:
    found = spread_of(np.array([[7]]))
    assert (found.least[0], found.median[0], found.p95[0], found.most[0]) == (7, 7, 7, 7)
    assert (found.imbalance[0], found.deviation[0], found.worst[0]) == (0.0, 0.0, 0)


@given(rows)
def test_as_plain_loops_find_it(given_rows: tuple[int, list[list[int]]]) -> None:
    ranks, values = given_rows
    found = spread_of(np.array(values, np.int64).reshape(len(values), ranks))
    for at, row in enumerate(values):
        ordered = sorted(row)
        assert found.total[at] == sum(row)
        assert (found.least[at], found.most[at]) == (ordered[0], ordered[-1])
        assert found.there[at] == sum(one > 0 for one in row)
        assert found.worst[at] == (row.index(max(row)) if max(row) else -1)
        for column, percent in ((found.median, 50), (found.p95, 95)):
            least = next(
                one for one in ordered if 100 * sum(o <= one for o in row) >= percent * ranks
            )
            assert column[at] == least


def test_percentiles_are_by_nearest_rank_of_any_number() -> None:
    for number in range(1, 500):
        for percent in (50, 95):
            place = next(at for at in range(number) if 100 * (at + 1) >= percent * number)
            assert nearest_rank(percent, number) == place


def test_of_a_hundred_ranks_five_are_above_the_95th_percentile() -> None:
    found = spread_of(np.arange(100, 0, -1)[None])
    assert (found.median[0], found.p95[0], found.worst[0]) == (50, 95, 0)


def test_the_widest_come_first_and_ancestors_before_what_is_below_them() -> None:
    total = np.array([9, 9, 4, 4, 9, 0])
    assert widest(total, 4).tolist() == [0, 1, 4, 2]


def test_blocks_hold_each_node_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread, "_BLOCK", 20)
    nodes = np.array(random.Random(1).sample(range(100), 50))
    found = list(blocks(nodes, 7))
    assert max(map(len, found)) == 2
    assert np.concatenate(found).tolist() == nodes.tolist()
    assert [len(one) for one in blocks(nodes[:3], 4096)] == [1, 1, 1]
