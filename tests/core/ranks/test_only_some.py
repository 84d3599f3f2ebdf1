"""Frames of some ranks: those that plain loops over leaves find, where it is known."""

from __future__ import annotations

import random

import numpy as np
import pytest

from flame.core.ranks import spread
from flame.core.ranks.only_some import find_only_some, rank_words, same_ranks
from tests.support.ranks.rank_runs import Path, even_run, looking_up, questions_of, tree_of

GEMM = ("step", "layer2", "gemm")


@pytest.mark.parametrize("seed", range(6))
def test_as_plain_loops_find_them(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    ranks = chance.randint(1, 9)
    stacks: dict[Path, list[int]] = {
        ("a" * chance.randint(1, 3), f"k{number}"): [
            chance.choice([0, 0, 1, 5, 9]) for _ in range(ranks)
        ]
        for number in range(30)
    }
    tree, values = tree_of(stacks)
    monkeypatch.setattr(spread, "_BLOCK", chance.choice([1, 20, 1 << 20]))
    found = find_only_some(looking_up(values), tree.total, tree.end, ranks)
    expected = {path: row for path, row in stacks.items() if 0 < sum(x > 0 for x in row) < ranks}
    assert {tree.names(int(node)) for node in found.node} == set(expected)
    assert (np.diff(found.most) <= 0).all()
    for at, node in enumerate(found.node.tolist()):
        row = expected[tree.names(node)]
        assert found.is_there[at].tolist() == [one > 0 for one in row]
        assert (found.most[at], found.total[at]) == (max(row), sum(row))
    assert found.unsure == 0


@pytest.mark.parametrize("ranks", [1, 2, 16])
def test_nothing_is_found_in_an_even_run(ranks: int) -> None:
    for seed in range(40):
        stacks = {path: [max(one, 1) for one in row] for path, row in even_run(ranks, seed).items()}
        assert not len(questions_of(stacks).only_some)


def test_a_kernel_of_one_rank_is_found_and_no_other() -> None:
    stacks = even_run(16, 1)
    stacks["step", "layer1", "fallback_gemm"] = [0] * 5 + [800] + [0] * 10
    found = questions_of(stacks).only_some
    assert (len(found), np.flatnonzero(found.is_there[0]).tolist()) == (1, [5])


def test_of_what_was_left_out_nothing_is_said() -> None:
    tree, values = tree_of({("a",): [5, 0, 5], ("b",): [5, 5, 5], ("c",): [0, 0, 5]})
    total = tree.total + np.array([0, 2, 2, 0])
    found = find_only_some(looking_up(values), total, tree.end, 3)
    assert [tree.names(int(node)) for node in found.node] == [("c",)]
    assert found.unsure == 1, "all ranks have some of b, whatever was left out"


def test_rows_of_the_same_ranks_are_put_together() -> None:
    marks = np.array([[1, 0, 1], [0, 1, 0], [1, 0, 1], [0, 1, 1]], bool)
    assert [one.tolist() for one in same_ranks(marks)] == [[0, 2], [1], [3]]
    assert same_ranks(np.zeros((0, 3), bool)) == []


@pytest.mark.parametrize(
    ("ranks", "words"),
    [
        ([], ""),
        ([5], "5"),
        ([0, 1], "0, 1"),
        ([3, 1, 2, 7], "1–3, 7"),
        ([4, 4], "4"),
        ([*range(100), 200], "0–99, 200"),
        ([*range(0, 80, 2)], f"{', '.join(map(str, range(0, 32, 2)))}, … (40 in all)"),
    ],
)
def test_ranks_are_written_in_short(ranks: list[int], words: str) -> None:
    assert rank_words(ranks) == words
