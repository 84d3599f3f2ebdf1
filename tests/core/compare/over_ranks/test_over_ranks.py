"""Two runs over ranks: what ranks differ by is no change, and waiting is told apart."""

from __future__ import annotations

import math
import random
import statistics
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
import pytest

from flame.core.compare.basis import parse_per
from flame.core.compare.changes import Limits
from flame.core.compare.comparable import compare_facts
from flame.core.compare.comparison import Comparison, compare
from flame.core.compare.evidence import EvidenceLevel, find_evidence
from flame.core.compare.noise.beyond_noise import FrameVerdict, changed_nodes, node_verdicts
from flame.core.compare.over_ranks.collective_noise import noise_in_common, ratio_deviation
from flame.core.compare.over_ranks.rank_samples import rank_samples, rank_values
from flame.core.compare.over_ranks.waiting import changed_by_waiting, waiting_changes
from flame.core.compare.over_ranks.worst_ranks import worst_ranks
from flame.core.compare.sections.frames import changed_frames
from flame.core.compare.sides import Run, Sides, runs_of
from flame.core.compare.verdict import find_verdict
from flame.core.loading.many import load
from flame.core.model.frames import SMALLER
from flame.core.projection.filters import Kernel, MinShare, Ranks
from flame.core.projection.selection import Selection, select
from flame.core.rank_summary.merge import merge_summaries
from flame.core.rank_summary.opened import profile_of
from flame.core.rank_summary.summary import RankSummary
from flame.core.ranks.summarise import RankPart, summarise
from tests.support.generated.compared import node_called
from tests.support.ranks.compared_ranks import rank_parts, sides_of, summed_up
from tests.support.ranks.random_ranks import random_summary
from tests.support.ranks.rank_traces import COLLECTIVE, ODD_KERNEL, write_ranks
from tests.support.tiers import deep_except

FOLDED = select(fold=True)
KERNEL = "flash_fwd_kernel"
RANKS = 8

Parts = Callable[[str], list[RankPart]]

_RUNS = {
    "even": lambda folder: rank_parts(folder, RANKS, 1),
    "other": lambda folder: rank_parts(folder, RANKS, 2),
    "slow": lambda folder: rank_parts(folder, RANKS, 2, slower={KERNEL: 1.10}),
    "slightly": lambda folder: rank_parts(folder, RANKS, 2, slower={KERNEL: 1.02}),
    "one slow": lambda folder: rank_parts(folder, RANKS, 2, straggler=5, straggles=1.10),
    "straggler": lambda folder: rank_parts(folder, RANKS, 3, straggler=3, steps=8),
    "more steps": lambda folder: rank_parts(folder, RANKS, 2, steps=8),
    "renamed": lambda folder: rank_parts(folder, RANKS, 2, renamed={KERNEL: "flash_v3"}),
    "odd": lambda folder: rank_parts(folder, RANKS, 2, odd=6),
    "wide": lambda folder: rank_parts(folder, 2 * RANKS, 4),
}


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    return cache(lambda name: _RUNS[name](tmp_path_factory.mktemp("ranks")))


@pytest.fixture(scope="module")
def compared(parts: Parts) -> Callable[[str, str], Comparison]:
    summary = cache(lambda name: summed_up(parts(name)))
    return cache(lambda base, new: compare(sides_of(summary(base), summary(new)), FOLDED))


def called(comparison: Comparison, *verdicts: FrameVerdict) -> set[str]:
    """The frames of which that is known."""
    found, tree = node_verdicts(comparison), comparison.union.tree
    return {tree.name(node) for node in np.flatnonzero(np.isin(found, verdicts)).tolist()}


Compared = Callable[[str, str], Comparison]


# Sums and basis


@pytest.mark.parametrize("new", deep_except(["slow"], ["slow", "wide"]))
def test_values_are_the_mean_of_the_ranks(compared: Compared, new: str) -> None:
    found = compared("even", new)
    assert (found.basis.kind, found.basis.words) == ("rank", "per rank")
    for at, side in enumerate((found.changes.base, found.changes.new)):
        values = rank_values(found, at, np.arange(len(found.union)))
        assert values.sum(axis=1).tolist() == found.union.total[at].tolist()
        assert side.value == pytest.approx([statistics.fmean(row) for row in values.tolist()])
        root = sum(one.info[0].activities for one in [found.sides.runs[at].summary] if one)
        assert side.scaled_count[0] == root
    own = found.own_changes.delta
    assert own.sum() == pytest.approx(found.changes.delta[0])


@pytest.mark.parametrize("seed", deep_except([0], range(12)))
def test_ranks_have_what_they_have_alone(seed: int) -> None:
    """By path, beside trees of single ranks."""
    numbers = [*range(5)]
    singles = [random_summary(seed, rank, 9) for rank in numbers]
    whole = merge_summaries(singles)
    other = merge_summaries([random_summary(seed + 99, rank, 9) for rank in numbers[:3]])
    selection = Selection(("python", "launch", "kernel"), metric="gpu")
    found = compare(sides_of(whole, other), selection)
    tree, nodes = found.union.tree, np.arange(len(found.union))
    values = rank_values(found, 0, nodes)
    lacking = found.union.total[0] - values.sum(axis=1)
    assert (lacking >= 0).all()
    for place, rank in enumerate(one.info[0].rank for one in singles):
        alone = compare(sides_of(singles[place], singles[place]), selection)
        expected = defaultdict[tuple[str, ...], int](int)
        mine = rank_values(alone, 0, np.arange(len(alone.union)))[:, 0]
        for node, value in enumerate(mine.tolist()):
            expected[alone.union.tree.names(node)] += value
        at = whole.rank.tolist().index(rank)
        got = defaultdict[tuple[str, ...], int](int)
        for node in nodes.tolist():
            got[tree.names(node)] += int(values[node, at])
        assert _positive(got) == _positive(expected)


def _positive(values: dict[tuple[str, ...], int]) -> dict[tuple[str, ...], int]:
    return {path: value for path, value in values.items() if value}


@pytest.mark.deep
def test_the_other_way_round_all_signs_turn(compared: Compared) -> None:
    there, back = compared("even", "straggler"), compared("straggler", "even")
    names = [
        {one.union.tree.names(node): node for node in range(len(one.union))}
        for one in (there, back)
    ]
    assert names[0].keys() == names[1].keys()
    for path, node in names[0].items():
        turned = names[1][path]
        assert there.changes.delta[node] == -back.changes.delta[turned]
        assert waits(there)[node] == -waits(back)[turned]


def waits(comparison: Comparison) -> np.ndarray:
    found = waiting_changes(comparison)
    assert found is not None
    return found.delta


@pytest.mark.deep
def test_a_run_is_identical_to_itself_and_not_to_ranks_that_changed_places(
    parts: Parts, compared: Compared
) -> None:
    same = compared("straggler", "straggler")
    assert find_verdict(same).outcome == "identical" and not same.changes.delta.any()
    turned = [
        part._replace(summary=renumbered(part.summary, RANKS - 1 - place))
        for place, part in enumerate(parts("straggler"))
    ]
    whole = merge_summaries([one.summary for one in parts("straggler")])
    other = merge_summaries([one.summary for one in turned])
    found = compare(sides_of(whole, other), FOLDED)
    assert not found.changes.delta.any() and not compare_facts(found).identical


@pytest.mark.deep
def test_steps_that_took_longer_are_not_identical(parts: Parts) -> None:
    whole = summed_up(parts("even"))
    longer = [
        msgspec.structs.replace(one, step_times=tuple(time + 1 for time in one.step_times))
        for one in whole.info
    ]
    other = replace(whole, info=tuple(longer))
    assert not compare_facts(compare(sides_of(whole, other), FOLDED)).identical


def renumbered(summary: RankSummary, rank: int) -> RankSummary:
    return replace(summary, info=(msgspec.structs.replace(summary.info[0], rank=rank),))


@pytest.mark.deep
@pytest.mark.parametrize(("per", "divisor"), [("step", 4 * RANKS), ("total", 1), ("2,4", 2)])
def test_other_bases(parts: Parts, per: str, divisor: int) -> None:
    sides = sides_of(summed_up(parts("even")), summed_up(parts("more steps")))
    found = compare(sides, FOLDED, parse_per(per))
    total = int(found.union.total[0, 0])
    assert found.changes.base.value[0] == pytest.approx(total / divisor)
    samples = rank_samples(found, np.zeros(1, np.int64))
    assert samples.base.mean() == pytest.approx(total / divisor)
    assert samples.new.mean() == pytest.approx(found.changes.new.value[0])
    if per == "step":
        assert abs(found.changes.ratio[0]) < 0.02, "8 steps are as long as 4"


# What is told


def test_a_kernel_that_is_slower_on_all_ranks_has_changed(compared: Compared) -> None:
    found = compared("even", "slow")
    told = find_evidence(found)
    node = node_called(found, KERNEL)
    assert EvidenceLevel(int(told.level[node])) == EvidenceLevel.RANKS
    assert (told.base[node], told.new[node]) == (RANKS, RANKS)
    assert 0.05 < told.low[node] < 0.10 < told.high[node] < 0.15
    kernels = {name for name in called(found, FrameVerdict.CHANGED) if not name.startswith("model")}
    assert kernels == {KERNEL}
    assert not changed_by_waiting(found)[node]
    worst = worst_ranks(found)
    assert worst is not None and not worst.marked.any(), "it is all ranks, not the worst alone"


@pytest.mark.deep
@pytest.mark.parametrize("new", ["slightly", "other"])
def test_two_percent_and_nothing_are_not_told(compared: Compared, new: str) -> None:
    found = compared("even", new)
    assert not called(found, FrameVerdict.CHANGED, FrameVerdict.WORST)
    assert find_verdict(found).outcome in ("same", "unclear")


@pytest.mark.deep
def test_a_rank_alone_is_told_as_the_worst(compared: Compared) -> None:
    found = compared("even", "one slow")
    assert not called(found, FrameVerdict.CHANGED)
    worst = worst_ranks(found)
    assert worst is not None
    for name in ("sm90_xmma_gemm_mlp_up", "sm90_xmma_gemm_mlp_down"):
        node = node_called(found, name)
        assert worst.told[node] and worst.new_rank[node] == 5
        assert worst.change[node] / worst.base[node] == pytest.approx(0.10, abs=0.02)
        values = rank_values(found, 1, np.array([node]))[0]
        assert worst.new[node] == values.max() == values[5]
    assert worst.told.sum() <= 4
    assert not worst.marked[node_called(found, COLLECTIVE)], "who waits is not the worst"


@pytest.mark.deep
def test_a_kernel_of_one_rank_alone_is_told(compared: Compared) -> None:
    found = compared("even", "odd")
    worst, node = worst_ranks(found), node_called(found, ODD_KERNEL)
    assert worst is not None
    assert worst.told[node] and worst.new_rank[node] == 6 and not changed_nodes(found)[node]


@pytest.mark.deep
def test_what_all_ranks_have_on_one_side_alone_has_changed(compared: Compared) -> None:
    found = compared("even", "renamed")
    lists = changed_frames(found)
    names = [[found.union.tree.name(node) for node in some.tolist()] for some in lists]
    assert names == [[], [], ["flash_v3"], [KERNEL]]
    told, nodes = find_evidence(found), [node_called(found, one) for one in ("flash_v3", KERNEL)]
    assert (told.level[nodes] == EvidenceLevel.RANKS).all()
    assert told.low[nodes].tolist() == [math.inf, -1.0]


@pytest.mark.deep
def test_small_siblings_are_merged_on_all_ranks(parts: Parts) -> None:
    sides = sides_of(summed_up(parts("even")), summed_up(parts("renamed")))
    found = compare(sides, replace(FOLDED, where=(MinShare(35),)))
    assert SMALLER in found.union.tree.text
    for at in (0, 1):
        values = rank_values(found, at, np.arange(len(found.union)))
        assert values.sum(axis=1).tolist() == found.union.total[at].tolist()


@pytest.mark.deep
def test_a_straggler_that_is_gone_is_told_as_waiting(compared: Compared) -> None:
    found = compared("straggler", "more steps")
    node = node_called(found, COLLECTIVE)
    waited, changes = waiting_changes(found), found.changes
    assert waited is not None
    assert changes.ratio[node] < -0.1 and changed_nodes(found)[node]
    assert changed_by_waiting(found)[node]
    rest = changes.delta[node] - waited.delta[node]
    assert abs(rest) < 0.05 * changes.base.value[node]
    assert waited.delta[0] == waited.delta[node]
    worst = worst_ranks(found)
    assert worst is not None
    mlp = [n for n in np.flatnonzero(worst.told) if "mlp" in found.union.tree.name(int(n))]
    assert mlp and (worst.base_rank[mlp] == 3).all()


@pytest.mark.deep
def test_waits_are_the_truth(tmp_path: Path) -> None:
    run = write_ranks(tmp_path / "run", 6, 4, 2, 5, straggler=2)
    whole = summed_up([summarise(load(path), path) for path in run.paths])
    found = compare(sides_of(whole, whole), FOLDED)
    waited = waiting_changes(found)
    assert waited is not None
    assert waited.base.total[0] == pytest.approx(sum(run.waits), abs=2 * 6 * run.collectives)


# No fault


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], list[RankPart]]:
    return cache(lambda seed: rank_parts(tmp_path_factory.mktemp("many"), 16, seed, steps=6))


@pytest.mark.parametrize("seed", [pytest.param(one, marks=pytest.mark.deep) for one in range(20)])
def test_halves_of_the_ranks_have_not_changed(
    many: Callable[[int], list[RankPart]], seed: int
) -> None:
    ranks = [*many(77)]
    random.Random(seed).shuffle(ranks)
    sides = sides_of(summed_up(ranks[:8]), summed_up(ranks[8:]))
    found = compare(sides, FOLDED, limits=Limits(0.01, 0.005))
    assert not called(found, FrameVerdict.CHANGED, FrameVerdict.WORST)
    assert find_verdict(found).outcome in ("same", "unclear")


@pytest.mark.deep
@pytest.mark.parametrize("ranks", [2, 3, 4, 8, 16])
def test_runs_without_a_fault_have_not_changed(tmp_path: Path, ranks: int) -> None:
    found = [summed_up(rank_parts(tmp_path / str(seed), ranks, seed)) for seed in range(10)]
    for base, new in pairwise(found):
        comparison = compare(sides_of(base, new), FOLDED)
        assert not called(comparison, FrameVerdict.CHANGED, FrameVerdict.WORST)


def test_collectives_vary_by_what_their_ratios_do(compared: Compared) -> None:
    found = compared("even", "slow")
    tables = [one.summary.collectives for one in found.sides.runs if one.summary is not None]
    logs = [
        math.log(new / base)
        for base, new in zip(*(t.duration.tolist() for t in tables), strict=True)
    ]
    expected = statistics.stdev(logs) * (1 + 3 / len(logs))
    assert ratio_deviation(found) == pytest.approx(expected)
    noise, node = noise_in_common(found), node_called(found, COLLECTIVE)
    longer = max(found.changes.base.value[node], found.changes.new.value[node])
    assert noise[node] == pytest.approx(expected * longer / math.sqrt(8))
    assert noise[0] == noise[node] and noise[node_called(found, KERNEL)] == 0


# What cannot be told


@pytest.mark.parametrize(
    ("selection", "why"),
    [
        (select(where=(Ranks(("3",)),)), "some of the ranks alone"),
        (select(levels="rank,kernel"), "each rank stands by itself"),
    ],
)
def test_why_ranks_tell_nothing(parts: Parts, selection: Selection, why: str) -> None:
    whole = merge_summaries([part.summary for part in parts("even")])
    found = compare(sides_of(whole, whole), selection)
    assert why in find_evidence(found).why and worst_ranks(found) is None


def test_filters_by_name_leave_the_rest_out(parts: Parts) -> None:
    whole, other = summed_up(parts("even")), summed_up(parts("slow"))
    found = compare(sides_of(whole, other), select(where=(Kernel(KERNEL),), fold=True))
    assert KERNEL in called(found, FrameVerdict.CHANGED) and not waits(found).any()
    assert find_verdict(found).outcome == "regression"


@pytest.mark.deep
def test_a_trace_is_one_rank(parts: Parts) -> None:
    whole = summed_up(parts("even"))
    one = load(Path(whole.info[2].path))
    sides = Sides(runs_of("BASE", [profile_of(whole)]), (Run(one, "NEW"),))
    found = compare(sides, FOLDED)
    notes = " ".join(note.text for note in compare_facts(found).notes)
    assert compare_facts(found).is_comparable and "means of a rank" in notes
    assert abs(found.changes.ratio[0]) < 0.05
    assert "NEW is no summary of ranks" in find_evidence(found).why
