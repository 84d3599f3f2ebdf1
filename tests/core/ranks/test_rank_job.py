"""Merging ranks as they arrive, and keeping them by and by."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from flame.core.errors import CancelledError
from flame.core.options import LoadOptions, silent
from flame.core.rank_summary.merge import merge_summaries
from flame.core.rank_summary.summary import LostRank, RankSummary
from flame.core.rank_summary.summary_file import pack_summary
from flame.core.ranks.job import (
    FAN_IN,
    PartsByHeight,
    RankFile,
    RankJob,
    Reduction,
    height_of,
    lost_summary,
    read_part,
)
from tests.support.ranks.random_ranks import random_summary
from tests.support.tiers import deep_except


def summaries(number: int) -> list[RankSummary]:
    return [random_summary(rank, rank, 5) for rank in range(number)]


@pytest.mark.parametrize("seed", deep_except([0], range(9)))
def test_a_reduction_is_one_merge_in_any_order(seed: int) -> None:
    parts = [*summaries(19), merge_summaries(summaries(40)[19:30]), lost_summary("x", "why")]
    expected = pack_summary(merge_summaries(parts))
    random.Random(seed).shuffle(parts)
    reduction = Reduction()
    for part in parts:
        reduction.add(part)
    assert pack_summary(reduction.whole()) == expected


def test_few_parts_of_each_height_are_held() -> None:
    held, merges, most = PartsByHeight[int](), 0, 0
    for _ in range(1000):
        part, height = 1, 0
        while batch := held.put(part, height):
            part, height, merges = sum(batch), height + 1, merges + 1
        most = max(most, len(held.parts()))
    assert sum(held.parts()) == 1000
    assert merges == 1000 // 8 + 1000 // 64 + 1000 // 512
    assert most <= 4 * (FAN_IN - 1)
    assert sum(held.take()) == 1000
    assert held.parts() == []


def test_height_is_that_of_a_tree_of_eights() -> None:
    assert [height_of(ranks) for ranks in (0, 1, 7, 8, 63, 64, 4096)] == [0, 0, 0, 1, 1, 2, 4]


def test_what_was_lost_and_found_again_is_not_lost() -> None:
    one = random_summary(1, 0)
    path = one.info[0].path
    reduction = Reduction()
    for part in (one, lost_summary(f"./{path}", "no such file"), lost_summary("other", "empty")):
        reduction.add(part)
    assert set(reduction.whole().lost) == {*one.lost, LostRank("other", "empty")}


class _Engine:
    """Yields what it is told to."""

    def __init__(self, parts: Sequence[RankSummary], left: Sequence[RankSummary] = ()) -> None:
        self.files: list[RankFile] = []
        self._parts, self._left = parts, left

    def read(
        self, files: Sequence[RankFile], options: object, meter: object
    ) -> Iterator[Sequence[RankSummary]]:
        self.files = list(files)
        for part in self._parts:
            yield [part]

    def unfinished(self) -> Sequence[RankSummary]:
        return self._left

    def second_pass(self, work: object, table: object) -> Sequence[Any]:
        return []

    def close(self) -> None: ...


class _Meter:
    """Ends the job after so many reports."""

    def __init__(self, reports: int = 1000) -> None:
        self._left = reports

    def note(self, file: RankFile, share: float) -> None: ...
    def end(self, file: RankFile) -> None: ...
    def say(self, text: str) -> None: ...
    def tell(self) -> None:
        self._left -= 1
        if not self._left:
            raise CancelledError("stopped")


def test_a_job_reads_the_largest_first_beside_what_is_known() -> None:
    parts = summaries(4)
    engine = _Engine(parts[1:])
    files = [RankFile("a", 1), RankFile("b", 30), RankFile("c", 20), RankFile("d", 20)]
    job = RankJob(engine, parts[:1], lambda summary: None)
    assert len(job.run(files, _Meter())) == 4
    assert [file.path for file in engine.files] == ["b", "c", "d", "a"]


def test_a_job_that_is_stopped_keeps_what_there_is() -> None:
    parts = summaries(6)
    kept: list[RankSummary] = []
    job = RankJob(_Engine(parts[:4], left=parts[5:]), (), kept.append)
    with pytest.raises(CancelledError):
        job.run([], _Meter(3))
    expected = merge_summaries([*parts[:3], parts[5]])
    assert [pack_summary(one) for one in kept] == [pack_summary(expected)]


def test_a_job_keeps_what_there_is_by_and_by() -> None:
    kept: list[int] = []
    job = RankJob(_Engine(summaries(3)), (), lambda summary: kept.append(len(summary)), every=0)
    job.run([], _Meter())
    assert kept == [1, 2, 3]


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "no such file"), (b"", "the file is empty"), (b"text", "not a trace")],
)
def test_a_file_that_cannot_be_read_says_why(
    content: bytes | None, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "rank0"
    if content is not None:
        path.write_bytes(content)
    (lost,) = read_part(path, LoadOptions(), silent, name="given").summary.lost
    assert lost.path == "given"
    assert reason in lost.reason
    assert str(path) not in lost.reason


def test_a_fault_of_a_reader_loses_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr("flame.core.ranks.job.load_file", fail)
    (lost,) = read_part(tmp_path, LoadOptions(), silent, name="r").summary.lost
    assert lost == LostRank("r", "internal error: KeyError: 'x'")
