"""What makes one doubt that ranks are of one run is said, and nothing else."""

from __future__ import annotations

from dataclasses import replace

from flame.core.rank_summary.merge import merge_summaries
from flame.core.rank_summary.summary import RankInfo, RankSummary
from flame.core.ranks.consistency import inconsistencies
from tests.support.ranks.random_ranks import random_summary

MINUTE = 60_000_000_000


def ranks(*infos: RankInfo) -> RankSummary:
    parts = [replace(random_summary(1, one.rank, 3), info=(one,), lost=()) for one in infos]
    return merge_summaries(parts)


def notes(*infos: RankInfo, iteration: str = "") -> list[str]:
    return list(inconsistencies(ranks(*infos), iteration))


def at(rank: int, begin: int, end: int) -> RankInfo:
    return RankInfo(rank, f"{rank}.sqlite", begin=begin, end=end, origin=1 << 60)


def test_ranks_of_one_run_are_not_doubted() -> None:
    assert notes(RankInfo(0, "a"), RankInfo(1, "b")) == []
    assert notes(at(0, 0, 10), at(1, MINUTE, 2 * MINUTE), at(2, 5, MINUTE // 2)) == []


def test_two_of_one_number_are_named() -> None:
    told = "waits and clocks need a number for each; are they of one run?"
    assert notes(RankInfo(3, "a"), RankInfo(3, "b")) == [f"a and b are both rank 3: {told}"]
    some = [RankInfo(rank, path) for rank in (3, 4) for path in "ab"]
    assert notes(*some) == [f"a and b are both rank 3 (and 1 more number): {told}"]


def test_recordings_far_apart_are_named() -> None:
    infos = (at(0, 0, 10), at(1, 5, MINUTE), at(2, 4 * MINUTE, 5 * MINUTE), RankInfo(3, "x"))
    (said,) = notes(*infos)
    assert said == "2.sqlite: began 3 min after all before it had ended: are all ranks of one run?"


def test_iterations_that_are_not_there_or_of_several_kinds_are_told() -> None:
    none = RankInfo(0, "a", iteration="x")
    some = RankInfo(1, "b", step_numbers=(1,), step_times=(1,), step_work=(0,), iteration="x")
    assert notes(none, iteration="x") == ["--iteration 'x': no range of any rank matches"]
    assert notes(none, some, iteration="x") == []
    (said,) = notes(some, RankInfo(2, "c"))
    (kept,) = notes(some, RankInfo(2, "c"), iteration="x")
    assert kept == "--iteration 'x': 1 rank of summaries keep the iterations that they had"
    assert said.startswith("iterations were told in 2 ways (no --iteration, --iteration 'x'): ")
