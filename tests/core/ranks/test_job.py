"""From the files of a job to who is late, and what is left of it in a merged summary."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from flame.core.loading.many import load
from flame.core.rank_summary.merge import merge_summaries
from flame.core.rank_summary.rank_communication import RankCommunication
from flame.core.rank_summary.summary import RankSummary
from flame.core.rank_summary.summary_file import pack_summary, unpack_summary
from flame.core.ranks.communication.clocks import clocks_of
from flame.core.ranks.communication.late import find_late
from flame.core.ranks.communication.matching import match_table
from flame.core.ranks.communication.summary_waits import with_waits
from flame.core.ranks.communication.waits import causes_of, waits_by_sums, waits_of
from flame.core.ranks.summarise import RankPart, summarise
from tests.support.ranks.rank_traces import RankRun, write_ranks

RANKS = 8


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RankRun:
    folder = tmp_path_factory.mktemp("run")
    return write_ranks(folder, RANKS, steps=18, layers=2, straggler=5, late=2)


@pytest.fixture(scope="module")
def parts(run: RankRun) -> list[RankPart]:
    return [summarise(load(path), path) for path in run.paths]


@pytest.fixture(scope="module")
def whole(parts: list[RankPart]) -> RankSummary:
    return merge_summaries([part.summary for part in parts])


@pytest.mark.deep
def test_waits_and_clocks_are_the_truth(
    run: RankRun, parts: list[RankPart], whole: RankSummary
) -> None:
    table, error = whole.collectives, 2 * run.collectives
    matching = match_table(table, len(whole))
    waits = [waits_of(part.arrivals[0], table, matching) for part in parts]
    assert [one.matched for one in waits] == [run.collectives] * RANKS
    assert np.abs(np.array([one.wait for one in waits]) - run.waits).max() <= error
    by_sums = waits_by_sums(whole.communication, table, matching, whole.rank)
    assert by_sums.tolist() == [one.wait for one in waits]
    assert causes_of(table, matching, whole.rank).last.tolist() == run.last
    clocks = clocks_of(waits)
    assert np.ptp(clocks.offset + np.array(run.clocks)) <= 2
    assert clocks.tell(2)


@pytest.mark.deep
def test_those_that_were_planted_are_late(whole: RankSummary) -> None:
    table = whole.collectives
    found = find_late(table, match_table(table, RANKS), whole.communication)
    by_rank = {one.rank: one for one in found}
    assert sorted(by_rank) == [2, 5]
    assert by_rank[5].by_work > 5 * by_rank[5].by_idle
    assert by_rank[2].by_idle > 5 * by_rank[2].by_work


@pytest.mark.deep
def test_waiting_is_that_of_groups_and_steps_of_the_summary(
    parts: list[RankPart], whole: RankSummary
) -> None:
    for part in parts:
        (arrivals,) = part.arrivals
        waits = waits_of(arrivals, whole.collectives, RANKS)
        assert waits.group_wait.sum() == waits.wait
        assert set(map(tuple, waits.group_hash.tolist())) <= set(
            map(tuple, part.summary.group_hash.tolist())
        )
        assert waits.step_wait.sum() == waits.wait
        assert arrivals.steps.number.tolist() == list(part.summary.info[0].step_numbers)
        assert arrivals.steps.time.tolist() == list(part.summary.info[0].step_times)


@pytest.mark.deep
def test_a_file_has_the_same_collectives(whole: RankSummary) -> None:
    again = unpack_summary(pack_summary(whole), "run.flamesum")
    for name in RankCommunication._fields:
        assert np.array_equal(
            getattr(again.communication, name), getattr(whole.communication, name)
        )
    assert pack_summary(again) == pack_summary(whole)


@pytest.mark.deep
def test_sums_of_files_whose_rank_is_not_known_are_added_up(tmp_path: Path) -> None:
    """Both are rank 0, and what they are merged into can be read again."""
    run = write_ranks(tmp_path, 2, steps=2, layers=2)
    paths = [path.rename(tmp_path / name) for path, name in zip(run.paths, ("a", "b"), strict=True)]
    parts = [summarise(load(path), path) for path in paths]
    whole = merge_summaries([part.summary for part in parts])
    assert whole.rank.tolist() == [0, 0]
    waits = [waits_of(part.arrivals[0], whole.collectives, 2) for part in parts]
    assert waits[0].matched and with_waits(whole, waits).waits is None, "nobody knows whose"
    again = unpack_summary(pack_summary(whole), "run.flamesum")
    assert again.communication.calls.tolist() == [2 * run.collectives]
