"""Questions to summaries of generated traces: planted faults are found, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from flame.core.errors import NoMatchError, UsageError
from flame.core.loading.many import load
from flame.core.projection.filter_options import parse_filters
from flame.core.projection.selection import Selection, select
from flame.core.rank_summary.merge import merge_summaries
from flame.core.rank_summary.opened import profile_of
from flame.core.rank_summary.summary import RankSummary, empty_summary
from flame.core.ranks.communication.summary_waits import with_waits
from flame.core.ranks.communication.waits import waits_of
from flame.core.ranks.rank_sections.of_summary import left_out, questions_of, with_levels
from flame.core.ranks.rank_sections.rank_findings import find_in_ranks
from flame.core.ranks.summarise import MOST_CELLS, summarise
from tests.support.ranks.rank_traces import COLLECTIVE, ODD_KERNEL, ODD_TIME, RankRun, write_ranks
from tests.support.tiers import deep_except

FOLDED = select(kernel_names="short", fold=True, fold_numbers=True)
STRAGGLER, LATE, ODD = 3, 5, 1


def summed_up(run: RankRun, most: int = MOST_CELLS) -> RankSummary:
    return merge_summaries([summarise(load(path), path, most).summary for path in run.paths])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RankRun]:
    folder = tmp_path_factory.mktemp("run")
    yield write_ranks(folder, 8, 3, 4, straggler=STRAGGLER, late=LATE, odd=ODD)


@pytest.fixture(scope="module")
def summary(run: RankRun) -> RankSummary:
    return summed_up(run)


def test_planted_faults_are_found(summary: RankSummary) -> None:
    questions = questions_of(summary, FOLDED)
    found = [one for one in find_in_ranks(questions) if one.section in ("outliers", "only_some")]
    assert [(one.id, one.rank) for one in found] == [("outlier", STRAGGLER), ("only-some", ODD)]
    assert "step / model.layers.*.mlp" in found[0].claim
    assert ODD_KERNEL in found[1].title
    assert found[0].place is not None
    assert Path(found[0].place.file).name == f"rank{STRAGGLER:04}.sqlite"
    assert questions.only_some.most.tolist() == [ODD_TIME]


@pytest.mark.deep
def test_who_is_late_is_told_with_the_reason(tmp_path: Path) -> None:
    run = write_ranks(tmp_path, 8, 9, 4, straggler=STRAGGLER)
    questions = questions_of(summed_up(run), FOLDED)
    late, counts = questions.late, questions.collectives
    assert late is not None
    assert (counts.number, counts.matched, counts.unmatched) == (36, 36, ())
    assert late.last.tolist() == run.last
    assert np.abs(late.waited - run.waits).max() <= 2 * run.collectives
    [told] = [one for one in find_in_ranks(questions) if one.id == "late-rank"]
    assert told.rank == STRAGGLER
    assert "late by GPU work" in told.claim
    assert "most of all in step / model.layers.*.mlp" in told.claim


@pytest.mark.deep
def test_a_host_that_is_late_is_told_from_a_slow_gpu(tmp_path: Path) -> None:
    run = write_ranks(tmp_path, 8, 18, 2, late=LATE)
    found = find_in_ranks(questions_of(summed_up(run), FOLDED))
    assert [(one.id, one.rank) for one in found] == [("late-rank", LATE)]
    assert "its host, GPU idle" in found[0].claim
    assert found[0].place is not None and found[0].place.metric == "idle"


def test_ranks_that_lack_collectives_are_said_not_to_match(tmp_path: Path) -> None:
    whole, short = write_ranks(tmp_path / "a", 4, 3, 4), write_ranks(tmp_path / "b", 4, 2, 4)
    paths = [*whole.paths[:3], short.paths[3]]
    summary = merge_summaries([summarise(load(path), path).summary for path in paths])
    questions = questions_of(summary, FOLDED)
    assert questions.late is None
    assert questions.collectives.matched == 0
    [told] = [one for one in find_in_ranks(questions) if one.id == "unmatched"]
    assert "1 rank has 8" in told.claim or "3 ranks have 12" in told.claim
    assert questions.worst is None
    assert questions.not_late.why.startswith("no collective matches over ranks (stream 0: ")


@pytest.mark.parametrize("levels", [("kernel", "nvtx"), ("nvtx", "kernel", "wait")])
def test_what_is_below_collectives_is_no_finding(
    levels: tuple[str, ...], run: RankRun, summary: RankSummary
) -> None:
    """Who came last waited least, and the others longest: in all that is below, too."""
    parts = [summarise(load(path), path) for path in run.paths]
    measured = [waits_of(one.arrivals[0], summary.collectives, len(parts)) for one in parts]
    questions = questions_of(with_waits(summary, measured), Selection(levels=levels))
    assert questions.tree.levels == levels
    names = {
        name for node in questions.outliers.node.tolist() for name in questions.tree.names(node)
    }
    assert not names & {COLLECTIVE, "[waiting]", "[transfer]"}
    leaves = {questions.tree.name(node) for node in questions.only_some.node.tolist()}
    assert leaves <= {ODD_KERNEL, "step"}


def test_the_sum_of_a_rank_says_nothing_of_its_faults(summary: RankSummary) -> None:
    questions = questions_of(summary, FOLDED)
    assert questions.gpu_times.tolist() == summary.rank_total[1].tolist()
    assert questions.gpu_times[STRAGGLER] < 1.01 * np.median(questions.gpu_times)


def test_steps_are_those_that_ranks_recorded(summary: RankSummary) -> None:
    questions = questions_of(summary, FOLDED)
    assert questions.steps.there.tolist() == [8, 8, 8]
    times = np.array([one.step_times for one in summary.info])
    assert questions.steps.most.tolist() == times.max(axis=0).tolist()


def test_what_a_summary_leaves_out_is_not_taken_for_zero(run: RankRun) -> None:
    """With 6 cells of a rank small kernels are in none: nobody is said to be alone in one."""
    few = summed_up(run, 6)
    lacking = left_out(few, "gpu")
    cells = np.diff(few.cell_start)
    assert (cells == 6).all() and (lacking > 0).all()
    assert lacking.tolist() == [
        int(few.rank_total[1, at] - few.cell[1, few.cell_start[at] : few.cell_start[at + 1]].sum())
        for at in range(8)
    ]
    questions = questions_of(few, FOLDED)
    leaves = {questions.tree.names(int(node))[-1] for node in questions.only_some.node}
    assert leaves <= {ODD_KERNEL}
    assert questions.only_some.unsure > 0
    assert set(questions.outliers.worst[questions.outliers.is_beyond].tolist()) <= {STRAGGLER}


@pytest.mark.parametrize("seed", deep_except([], range(20)))
@pytest.mark.parametrize("ranks", [4, 16])
def test_nothing_is_found_where_nothing_is(tmp_path: Path, seed: int, ranks: int) -> None:
    summary = summed_up(write_ranks(tmp_path, ranks, 4, 3, 700 + seed))
    assert find_in_ranks(questions_of(summary, FOLDED)) == []


def test_levels_are_ranges_and_kernels_unless_others_are_asked_for(summary: RankSummary) -> None:
    profile = profile_of(summary)
    assert with_levels(FOLDED, profile).levels == ("nvtx", "kernel")
    assert with_levels(Selection(metric="host"), profile).levels == ("nvtx", "launch")
    assert with_levels(Selection(levels=("kernel",)), profile).levels == ("kernel",)


def test_other_metrics_and_filters_are_followed(summary: RankSummary) -> None:
    counted = questions_of(summary, select(metric="count", levels="kernel"))
    assert counted.unit == "count"
    assert counted.gpu_times.tolist() == [one.activities for one in summary.info]
    some = questions_of(summary, select("kernel", parse_filters(kernel="mlp_up")))
    assert {some.tree.names(int(node)) for node in some.widest[1:]} == {("sm90_xmma_gemm_mlp_up",)}


def test_what_cannot_be_asked_is_refused_in_one_line(summary: RankSummary) -> None:
    with pytest.raises(UsageError, match="no ranks"):
        questions_of(empty_summary(), FOLDED)
    with pytest.raises(UsageError, match="--rank: ranks are compared with all others"):
        questions_of(summary, Selection(where=parse_filters(rank="0")))
    with pytest.raises(UsageError, match="--levels rank"):
        questions_of(summary, select(levels="rank,kernel"))
    with pytest.raises(NoMatchError):
        questions_of(summary, Selection(where=parse_filters(kernel="nothing")))
