"""A summary tells of every node what the traces themselves tell."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from flame.core.errors import NoMatchError, UsageError
from flame.core.loading.many import load, load_all
from flame.core.model.metrics import metric_of
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.projection.filter_options import parse_filters
from flame.core.projection.project import project
from flame.core.projection.selection import Selection, select
from flame.core.rank_summary.merge import merge_summaries
from flame.core.rank_summary.opened import profile_of, summary_of
from flame.core.rank_summary.rank_values import values_of_ranks
from flame.core.rank_summary.summary import METRICS, RankSummary
from flame.core.ranks.summarise import summarise
from tests.conftest import NSYS_TRACES, TRACES, needs_traces
from tests.support.ranks.rank_traces import ODD_KERNEL, RankRun, write_ranks
from tests.support.tiers import deep_except

RANKS = 4
GPU_LEVELS = ("kernel", "nvtx,kernel", "kernel,nvtx", "launch,kernel", "python,native,nvtx,kernel")
HOST_LEVELS = ("python,nvtx,launch", "launch", "launch,nvtx")
NAMINGS: tuple[dict[str, object], ...] = ({}, {"fold": True}, {"kernel_names": "demangled"})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RankRun:
    return write_ranks(tmp_path_factory.mktemp("run"), RANKS, steps=3, layers=2, odd=2)


@pytest.fixture(scope="module")
def parts(run: RankRun) -> list[RankSummary]:
    return [summarise(load(path), path).summary for path in run.paths]


@pytest.fixture(scope="module")
def whole(run: RankRun) -> Profile:
    return load_all(run.paths)


def nodes_of(tree: StackTree, above: int = 0) -> dict[tuple[str, ...], tuple[int, int, int]]:
    """(total, own, number) of every node, by the names of its path from level ``above`` on."""
    found, path = {}, dict[int, tuple[str, ...]]()
    for node in range(len(tree)):
        before = path[int(tree.parent[node])] if node else ()
        path[node] = (*before, tree.name(node))
        values = int(tree.total[node]), int(tree.own[node]), int(tree.count[node])
        found[path[node][1:][above:] if node else ("all",)] = values
    return found


def selections() -> Iterator[Selection]:
    for metric in METRICS:
        levels = HOST_LEVELS if metric == "host" else GPU_LEVELS
        for level, naming in itertools.product(levels, NAMINGS):
            yield select(level, metric=metric, **naming)  # type: ignore[arg-type]


def test_numbers_are_recorded_or_in_the_name(parts: list[RankSummary], run: RankRun) -> None:
    assert [int(part.rank[0]) for part in parts] == list(range(RANKS))
    for name, rank in (("node7.sqlite", 7), ("a3-b12.json", 12), ("x", 0), ("31-1f9.fdump", 31)):
        assert summarise(load(run.paths[0]), f"r5/{name}").summary.rank.tolist() == [rank]


def test_every_node_is_that_of_the_traces_together(
    whole: Profile, parts: list[RankSummary]
) -> None:
    opened = profile_of(merge_summaries(parts))
    for selection in selections():
        assert nodes_of(project(opened, selection)) == nodes_of(project(whole, selection))


@pytest.mark.parametrize("levels", ["rank,nvtx,kernel", "nvtx,rank,kernel", "kernel,rank"])
def test_each_rank_has_what_its_trace_has(
    levels: str, whole: Profile, parts: list[RankSummary]
) -> None:
    found = nodes_of(project(profile_of(merge_summaries(parts)), select(levels)))
    wanted = nodes_of(project(whole, select(levels)))
    assert {tuple(map(_named_rank, path)): values for path, values in wanted.items()} == found


def _named_rank(name: str) -> str:
    return f"rank {int(name[4:])}" if name.startswith("rank") else name


@pytest.mark.deep
def test_the_filter_chooses_ranks(run: RankRun, parts: list[RankSummary]) -> None:
    opened = profile_of(merge_summaries(parts))
    for ranks in ("2", "rank 1", "1,3"):
        chosen = [path for at, path in enumerate(run.paths) if str(at) in ranks]
        wanted = load_all(chosen)
        selection = select("nvtx,kernel", parse_filters(rank=ranks))
        found = nodes_of(project(opened, selection))
        assert found == nodes_of(project(wanted, select("nvtx,kernel")))
    with pytest.raises(NoMatchError, match="rank 0"):
        project(opened, select("kernel", parse_filters(rank="77")))


def test_ranks_are_chosen_when_a_summary_is_opened(parts: list[RankSummary]) -> None:
    merged = merge_summaries(parts)
    two = project(profile_of(merged, [1, 2]), select("rank,kernel"))
    assert [two.name(node) for node in range(len(two)) if two.depth[node] == 1] == [
        f"rank {rank}" for rank in sorted((1, 2), key=lambda at: -merged.rank_total[1, at])
    ]
    with pytest.raises(UsageError, match="no rank 9"):
        profile_of(merged, [9])


@pytest.mark.parametrize(
    ("option", "where"),
    [
        ("--step 1-2", {"step": "1-2"}),
        ("--time 1ms/2ms", {"time": "1ms/2ms"}),
        ("--device 0", {"device": 0}),
        ("--stream 7,20", {"stream": (7, 20)}),
        ("--pid 4000", {"pid": 4000}),
        ("--tid 4000", {"tid": 4000}),
    ],
)
def test_what_needs_activities_is_refused_with_the_file_of_a_rank(
    option: str, where: dict[str, object], run: RankRun, parts: list[RankSummary]
) -> None:
    opened = profile_of(merge_summaries(parts))
    with pytest.raises(UsageError) as refused:
        project(opened, select("kernel", parse_filters(**where)))  # type: ignore[arg-type]
    assert str(refused.value).endswith(f"flame view {run.paths[0]} {option}")


@pytest.mark.deep
def test_values_of_ranks_are_those_of_their_trees(parts: list[RankSummary]) -> None:
    merged = merge_summaries(parts)
    for selection in selections():
        tree = project(profile_of(merged), selection)
        nodes = np.arange(len(tree))
        found = values_of_ranks(merged, tree, nodes)
        one_by_one = [values_of_ranks(merged, tree, nodes[at : at + 1])[0] for at in nodes]
        assert (found == np.array(one_by_one)).all()
        assert (found.sum(axis=1) == tree.total).all()
        for place in range(RANKS):
            own = nodes_of(project(profile_of(parts[place]), selection))
            paths = nodes_of(tree)
            wanted = [own.get(path, (0,))[0] for path in paths]
            assert found[:, place].tolist() == wanted


def test_values_of_ranks_of_a_tree_by_rank(parts: list[RankSummary]) -> None:
    merged = merge_summaries(parts)
    tree = project(profile_of(merged), select("rank,kernel"))
    found = values_of_ranks(merged, tree, np.arange(len(tree)))
    assert (found.sum(axis=1) == tree.total).all()
    below = tree.depth > 0
    assert (np.count_nonzero(found[below], axis=1) == 1).all()
    some = project(profile_of(merged), select("rank,kernel", parse_filters(rank="1,2")))
    with pytest.raises(ValueError, match="some"):
        values_of_ranks(merged, some, np.arange(1))


def test_the_weightiest_cells_are_kept_those_of_a_gpu_first(
    run: RankRun, parts: list[RankSummary]
) -> None:
    profile = load(run.paths[2])
    gpu = int((parts[2].groups.host == 0).sum())
    few = summarise(profile, run.paths[2], most=gpu - 3).summary
    assert len(few.cell_group) == gpu - 3 and not few.groups.host[few.cell_group].any()
    assert (few.total == parts[2].total).all() and (few.rank_total == parts[2].rank_total).all()
    weights = (few.total[1:5] / np.maximum(few.total[1:5].sum(axis=1, keepdims=True), 1)).max(
        axis=0
    )
    left = np.setdiff1d(np.flatnonzero(few.groups.host == 0), few.cell_group)
    assert weights[left].max() <= weights[few.cell_group].min()
    more = summarise(profile, run.paths[2], most=gpu + 1).summary
    assert int(more.groups.host[more.cell_group].sum()) == 1


def test_the_odd_kernel_is_there_with_its_time(parts: list[RankSummary]) -> None:
    opened = profile_of(merge_summaries(parts))
    assert nodes_of(project(opened, select("kernel")))[(ODD_KERNEL,)] == (777_000, 777_000, 1)


def test_a_summary_of_a_summary_is_itself(parts: list[RankSummary]) -> None:
    merged = merge_summaries(parts)
    opened = profile_of(merged)
    assert summary_of(opened) is merged and summarise(opened, "x.flamesum").summary is merged


@needs_traces
def test_several_processes_of_a_file_are_several_ranks() -> None:
    path = TRACES / "nsys" / "two_processes_colliding_ids.sqlite"
    profile = load(path)
    found = summarise(profile, path).summary
    assert found.rank.tolist() == [0, 1]
    assert sum(one.activities for one in found.info) == profile.size
    by_process = project(profile, select("process"))
    totals = sorted(found.rank_total[METRICS.index("gpu")].tolist())
    assert totals == sorted(by_process.total[1:].tolist())


@needs_traces
@pytest.mark.parametrize("name", deep_except(["two_processes_colliding_ids.sqlite"], NSYS_TRACES))
def test_totals_of_real_traces(name: str) -> None:
    _check_totals(TRACES / "nsys" / name)


@needs_traces
@pytest.mark.deep
@pytest.mark.parametrize("name", sorted(one.name for one in TRACES.glob("kineto/*.gz")))
def test_totals_of_real_pytorch_traces(name: str) -> None:
    _check_totals(TRACES / "kineto" / name)


def _check_totals(path: Path) -> None:
    profile = load(path)
    found = summarise(profile, path).summary
    opened = profile_of(found)
    for row, key in enumerate(METRICS):
        metric = metric_of(key)
        total = int(profile.totals_by_group(metric)[0].sum())
        assert total == int(opened.totals_by_group(metric)[0].sum())
        hosts = len(profile.host) if key == "count" else 0
        assert total + hosts == int(found.total[row].sum()) == int(found.rank_total[row].sum())
    assert found.bin_count.sum() == len(profile.activities) + len(profile.host)
    assert {key: share.ns for key, share in profile.coverage.items()}.items() >= {
        key: share.ns for key, share in opened.coverage.items()
    }.items()
