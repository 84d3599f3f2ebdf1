"""Two runs over ranks: what ranks of one run differ by is no change; waiting is told apart."""

from __future__ import annotations

import math
import random
import statistics
from typing import Any

import numpy as np
import pytest

from flame.core.rank_summary.collective_table import COLUMNS, CollectiveTable
from flame.core.ranks.rank_diff import (
    collective_times,
    compare_collectives,
    compare_ranks,
    kind_names,
)
from tests.support.ranks.rank_runs import even_run, tree_of
from tests.support.tiers import deep_except


def deviation(row: list[int]) -> float:
    median = statistics.median(row)
    return max(1.4826 * statistics.median(abs(one - median) for one in row), 0.005 * median)


@pytest.mark.parametrize("seed", range(4))
def test_as_plain_loops_compare(seed: int) -> None:
    chance = random.Random(seed)
    base = [[chance.randint(1, 99) for _ in range(7)] for _ in range(9)]
    new = [[chance.randint(1, 99) for _ in range(5)] for _ in range(9)]
    found = compare_ranks(np.array(base), np.array(new))
    noise = [
        factor * statistics.median(deviation(row) / statistics.median(row) for row in side)
        for side, factor in ((base, 1.140), (new, 1.206))
    ]
    for at, (before, after) in enumerate(zip(base, new, strict=True)):
        change = statistics.median(after) - statistics.median(before)
        both = math.hypot(
            max(deviation(before), noise[0] * statistics.median(before)),
            max(deviation(after), noise[1] * statistics.median(after)),
        )
        assert found.change[at] == change
        assert found.deviation[at] == pytest.approx(both)
        assert found.is_beyond[at] == (abs(change) >= 3 * both > 0)
        assert found.most_change[at] == max(after) - max(before)
        assert (found.base_worst[at], found.new_worst[at]) == (
            before.index(max(before)),
            after.index(max(after)),
        )


@pytest.mark.parametrize("seed", deep_except([0, 1], range(40)))
@pytest.mark.parametrize("ranks", [4, 16, 64])
def test_two_even_runs_have_not_changed(seed: int, ranks: int) -> None:
    (tree, base), (_, new) = (tree_of(even_run(ranks, 2 * seed + side)) for side in (0, 1))
    work = np.array(["nccl" not in tree.name(node) for node in range(len(tree))])
    assert not compare_ranks(base, new).is_beyond[work].any()


def test_the_worst_rank_alone_may_have_changed() -> None:
    base, new = np.full((1, 16), 1000), np.full((1, 16), 1000)
    new[0, 3] = 1500
    found = compare_ranks(base, new)
    assert (found.change[0], found.is_beyond[0]) == (0, False)
    assert (found.most_change[0], found.new_worst[0], found.is_worst_beyond[0]) == (500, 3, True)


def test_what_one_rank_alone_has_differs_by_the_noise_of_all() -> None:
    base = np.array([[1000, 1000, 1010, 990], [0, 0, 0, 500]])
    for value, beyond in ((510, False), (600, True)):
        found = compare_ranks(base, np.array([[1000, 1005, 1010, 990], [0, 0, 0, value]]))
        assert found.is_worst_beyond.tolist() == [False, beyond]
        assert found.most_deviation[1] == pytest.approx(
            math.hypot(found.base_noise * 500, found.new_noise * value)
        )


def test_what_is_on_one_side_alone_has_changed_and_nothing_has_not() -> None:
    found = compare_ranks(np.array([[0, 0], [0, 0]]), np.array([[5, 5], [0, 0]]))
    assert found.is_beyond.tolist() == [True, False]
    assert found.is_worst_beyond.tolist() == [True, False]


def table(durations: list[list[int]], kinds: list[int]) -> CollectiveTable:
    columns: dict[str, Any] = dict.fromkeys(COLUMNS, np.zeros(len(kinds), np.int64))
    columns |= {
        "kind_low": np.array(kinds),
        "kind_high": np.array(kinds),
        "ranks": np.array([len(row) for row in durations]),
        "shortest": np.array([min(row) for row in durations]),
        "duration": np.array([sum(row) for row in durations]),
    }
    return CollectiveTable(**columns, kinds=((7, "all-reduce"), (3, "all-gather")))


def test_transfer_and_wait_are_told_apart() -> None:
    """A rank that was late is gone: the all-reduce is as fast as before."""
    late = table([[40, 140, 140], [50, 150, 150], [9, 9, 9]], [7, 7, 3])
    even = table([[40, 40, 44], [50, 56, 50]], [7, 7])
    base = collective_times(late, np.array([True, True, False]))
    new = collective_times(even, np.array([True, True]))
    assert (base.calls.tolist(), base.ranks.tolist()) == ([2], [6])
    assert (base.transfer.tolist(), base.wait.tolist()) == ([270], [400])
    assert (base.transfer + base.wait).tolist() == [320 + 350]
    found = compare_collectives(base, new)
    assert kind_names(found.kind, late, even) == ["all-reduce"]
    assert (found.base_transfer[0], found.new_transfer[0]) == (45, 45)
    assert found.base_wait[0] == pytest.approx(400 / 6)
    assert found.new_wait[0] == pytest.approx(10 / 6)


def test_kinds_of_one_run_alone_are_not_compared() -> None:
    one = collective_times(table([[5, 9]], [7]), np.array([True]))
    other = collective_times(table([[5, 9]], [3]), np.array([True]))
    assert not len(compare_collectives(one, other).kind)
    assert kind_names(np.array([1])) == ["other"]
