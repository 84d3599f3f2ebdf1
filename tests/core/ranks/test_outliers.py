"""Outliers are those of the definition, by plain loops; in even runs nothing is told."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import numpy as np
import pytest

from flame.core.columns import I8
from flame.core.ranks import spread
from flame.core.ranks.outliers import find_outliers, outliers_among, to_tell, without_collectives
from flame.core.ranks.rank_sections.questions import RankQuestions, collective_nodes
from tests.support.ranks.rank_runs import MS, Path, even_run, looking_up, questions_of, tree_of
from tests.support.tiers import deep_except

GEMM = ("step", "layer2", "gemm")
SEEDS = range(40)


def by_definition(row: Sequence[int], gpu_time: float) -> tuple[list[int], float]:
    """The ranks that are outliers, and the excess of the worst: SCALE.md, section 1."""
    median = statistics.median(row)
    spread_ = max(1.4826 * statistics.median(abs(one - median) for one in row), 0.005 * median)
    if sum(one > 0 for one in row) < len(row) / 2:
        return [], 0
    far = [
        rank
        for rank, one in enumerate(row)
        if one - median > 6 * spread_ and one - median > 0.003 * gpu_time
    ]
    return far, max(row) - median


def found_in(questions: RankQuestions) -> dict[tuple[str, ...], list[int]]:
    found, tree = questions.outliers, questions.tree
    return {
        tree.names(node): np.flatnonzero(far).tolist()
        for node, far in zip(found.node.tolist(), found.is_far, strict=True)
    }


@pytest.mark.parametrize("seed", deep_except([0, 1], SEEDS))
def test_as_the_definition_finds_them(seed: int) -> None:
    random = np.random.default_rng(seed)
    ranks = int(random.integers(1, 30))
    stacks = even_run(ranks, seed)
    for path in list(stacks):
        for _ in range(int(random.integers(0, 3))):
            at = int(random.integers(ranks))
            stacks[path][at] = int(stacks[path][at] * random.choice([0, 0.5, 1.031, 1.2, 3]))
    tree, values = tree_of(stacks)
    gpu_times, gpu_time = values[0], statistics.median(values[0].tolist())
    found = find_outliers(looking_up(values), tree.total, tree.end, gpu_times)
    expected = {
        node: by_definition(values[node].tolist(), gpu_time) for node in range(1, len(tree))
    }
    expected = {node: each for node, each in expected.items() if each[0]}
    assert found.node.tolist() == sorted(expected, key=lambda node: (-expected[node][1], node))
    for at, node in enumerate(found.node.tolist()):
        far, excess = expected[node]
        assert np.flatnonzero(found.is_far[at]).tolist() == far
        assert found.excess[at] == pytest.approx(excess)
        assert found.worst[at] == values[node].argmax()
        assert found.value[at] == values[node].max()


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 16, 64])
@pytest.mark.parametrize("seed", deep_except([3, 21, 39], SEEDS))
def test_nothing_is_found_in_an_even_run(seed: int, ranks: int) -> None:
    assert not questions_of(even_run(ranks, seed)).outliers.is_beyond.any()


@pytest.mark.parametrize("seed", deep_except([0], SEEDS))
@pytest.mark.parametrize("ranks", [4, 16, 64])
def test_a_slow_frame_is_found_and_no_other(seed: int, ranks: int) -> None:
    stacks, slow = even_run(ranks, seed), seed % ranks
    stacks[GEMM][slow] = int(1.25 * stacks[GEMM][slow])
    questions = questions_of(stacks)
    assert found_in(questions)[GEMM] == [slow]
    beyond = questions.outliers.node[questions.outliers.is_beyond].tolist()
    names = {questions.tree.names(node) for node in beyond}
    assert names <= {GEMM, GEMM[:2], GEMM[:1]}, "and the ranges that it is in"
    told = to_tell(questions.outliers, questions.tree.end)
    assert [questions.tree.names(int(node)) for node in questions.outliers.node[told]] == [GEMM]


def test_all_ranks_that_are_slow_are_named() -> None:
    stacks = even_run(16, 3)
    for rank in (2, 5):
        stacks[GEMM][rank] *= 2
    questions = questions_of(stacks)
    assert found_in(questions)[GEMM] == [2, 5]


def test_of_equal_ranks_the_first_is_the_worst() -> None:
    row = [100] * 8
    row[3] = row[6] = 200
    found = outliers_among(np.array([5]), np.array([row]), 100.0)
    assert (found.worst[0], found.value[0], found.median[0]) == (3, 200, 100)
    assert found.deviations[0] == pytest.approx(100 / 0.5)


def test_two_ranks_cannot_tell_which_is_odd() -> None:
    assert not len(outliers_among(np.array([1]), np.array([[100, 900]]), 100.0))
    assert not len(outliers_among(np.array([1]), np.array([[100, 100, 900, 900]]), 100.0))


def test_a_frame_of_less_than_half_of_the_ranks_is_none() -> None:
    few, half = [0, 0, 0, 9, 90], [0, 0, 0, 9, 9, 90]
    assert not len(outliers_among(np.array([1]), np.array([few]), 1.0))
    assert len(outliers_among(np.array([1]), np.array([half]), 1.0))


@pytest.mark.parametrize(("value", "is_far"), [(1030, False), (1031, True)])
def test_what_is_less_than_3_percent_above_is_none(value: int, is_far: bool) -> None:
    row = [1000] * 9 + [value]
    assert bool(len(outliers_among(np.array([1]), np.array([row]), 1000.0))) == is_far


@pytest.mark.parametrize(("gpu_time", "is_far"), [(33_333.0, True), (33_334.0, False)])
def test_what_is_little_of_the_gpu_time_is_none(gpu_time: float, is_far: bool) -> None:
    row = [1000] * 9 + [1100]
    assert bool(len(outliers_among(np.array([1]), np.array([row]), gpu_time))) == is_far


def test_nothing_is_in_what_nobody_has() -> None:
    assert not len(outliers_among(np.array([1]), np.zeros((1, 4), np.int64), 0.0))
    questions = questions_of({("a",): [0, 0, 0]})
    assert not len(questions.outliers)


def test_a_group_that_waits_is_no_outlier() -> None:
    """Ranks 0 and 1 are a group of their own: rank 0 waits for rank 1, which is the late one."""
    stacks = even_run(16, 5)
    wait = ("step", "layer0", "ncclDevKernel_AllReduce")
    stacks[wait][0] += 300 * MS
    questions = questions_of(stacks)
    assert not len(questions.outliers)
    tree, values = tree_of(stacks)
    plain = find_outliers(looking_up(values), tree.total, tree.end, values[0])
    names = {tree.names(int(node)) for node in plain.node}
    assert {wait, wait[:2], wait[:1]} <= names, "with collectives it would be one"


def test_without_collectives_is_what_is_left() -> None:
    stacks = even_run(5, 1)
    tree, values = tree_of(stacks)
    work_of = without_collectives(looking_up(values), tree.end, collective_nodes(tree))
    mine = {path: row for path, row in stacks.items() if "nccl" not in path[-1]}
    for node in range(len(tree)):
        path = tree.names(node)
        expected = [
            sum(row[rank] for stack, row in mine.items() if stack[: len(path)] == path)
            for rank in range(5)
        ]
        assert work_of(np.array([node])).tolist() == [expected]


def test_few_nodes_are_looked_at_and_none_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Below a node that is light on all ranks nothing is looked up, block by block."""
    random = np.random.default_rng(4)
    stacks = even_run(8, 4)
    for number in range(300):
        stacks["step", "tiny", f"range{number}", "kernel"] = random.integers(0, 900, 8).tolist()
    stacks[GEMM][6] *= 2
    tree, values = tree_of(stacks)
    seen = list[int]()

    def counted(nodes: I8) -> I8:
        seen.extend(nodes.tolist())
        return values[nodes]

    monkeypatch.setattr(spread, "_BLOCK", 8 * 4)
    found = find_outliers(counted, tree.total, tree.end, values[0])
    assert GEMM in {tree.names(int(node)) for node in found.node}
    assert len(seen) == len(set(seen)) < 40
    whole = outliers_among(np.arange(1, len(tree)), values[1:], float(np.median(values[0])))
    assert found.node.tolist() == whole.node.tolist()


def test_what_is_little_more_than_too_little_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread, "_BLOCK", 8)
    row = [100] * 7 + [4000]
    questions = questions_of({("big",): [1_000_000] * 8, ("step", "small", "kernel"): row})
    assert found_in(questions)["step", "small", "kernel"] == [7]


def test_what_was_left_out_is_not_held_against_a_rank() -> None:
    """Of half of the ranks 50 were left out: the others are no outliers for that."""
    kept = [[0] * 7 + [100] * 8, [100] * 14 + [160]]
    total = np.array([0, 15 * 100, 14 * 100 + 160])
    values = np.array([[1000] * 15, *kept])
    end, gpu_times = np.array([3, 2, 3], np.int32), np.full(15, 1000)
    plain = find_outliers(looking_up(values), np.array([15_000, 800, 1560]), end, gpu_times)
    assert plain.node.tolist() == [2]
    found = find_outliers(looking_up(values), total, end, gpu_times, unsure=100)
    assert found.node.tolist() == [2], "what is whole is told as ever"
    lacking = np.array([0, 1500, 14 * 100 + 160 + 14 * 59])
    found = find_outliers(looking_up(values), lacking, end, gpu_times, unsure=59)
    assert not len(found)


def test_of_nested_frames_the_one_that_has_most_of_the_excess_is_told() -> None:
    kernels = (("mlp", "up"), ("mlp", "down"), ("mlp", "silu"), ("attention", "flash"))
    base: dict[Path, list[int]] = {("step", *path): [100 * MS] * 8 for path in kernels}
    for slow, told in (
        ({("step", "mlp", "up"): 0.3}, {("step", "mlp", "up")}),
        ({path: 0.3 for path in base if "mlp" in path}, {("step", "mlp")}),
        (dict.fromkeys(base, 0.3), {("step", "mlp")} | {("step", "attention", "flash")}),
        (
            {("step", "mlp", "up"): 0.3, ("step", "attention", "flash"): 0.29},
            {("step",)},
        ),
    ):
        stacks: dict[Path, list[int]] = {path: list(row) for path, row in base.items()}
        for path, part in slow.items():
            stacks[path][3] = int((1 + part) * stacks[path][3])
        found, tree = questions_of(stacks).outliers, questions_of(stacks).tree
        names = {tree.names(node) for node in found.node[to_tell(found, tree.end)].tolist()}
        assert names == told
