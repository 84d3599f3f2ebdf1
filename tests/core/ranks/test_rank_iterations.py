"""Iterations of ranks are the ranges that an expression matches, as those of a report are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flame.core.errors import UsageError
from flame.core.loading.many import load
from flame.core.options import LoadOptions, silent
from flame.core.projection.selection import select
from flame.core.rank_summary.merge import merge_summaries
from flame.core.ranks.job import read_part
from flame.core.ranks.rank_sections.of_summary import questions_of
from flame.core.ranks.rank_sections.steps import steps_section
from flame.core.ranks.summarise import RankOptions, summarise
from flame.core.report.options import with_iteration
from tests.support.ranks.rank_traces import write_ranks
from tests.support.writers.nsysfile import NsysFile

HOSTILE = "(a|aa)+$"


def write_loops(path: Path, loops: int, times: int) -> Path:
    """A thread that is in ``batch 0 of x``, ``batch 1 of x`` and so on, with a kernel in each."""
    with NsysFile(path) as file:
        for number in range(loops):
            at = 1_000 * number
            file.nvtx(f"batch {number} of x", at, at + times)
            file.nvtx("inner batch 7", at + 1, at + 9)
            file.api("cudaLaunchKernel_v7000", at + 10, at + 20, corr=number + 1)
            file.kernel("gemm", at + 200, at + 300, corr=number + 1)
    return path


def test_the_ranges_of_an_expression_are_the_steps(tmp_path: Path) -> None:
    path = write_loops(tmp_path / "rank3.sqlite", 4, 700)
    (info,) = summarise(load(path), path).summary.info
    assert (info.step_numbers, info.iteration) == ((), "")
    (info,) = summarise(load(path), path, options=RankOptions(iteration="batch [0-9]")).summary.info
    assert (info.step_numbers, info.step_times) == ((0, 1, 2, 3), (700,) * 4)
    assert info.step_work == (100,) * 4 and info.iteration == "batch [0-9]"
    expected = with_iteration(load(path), "batch [0-9]").iterations
    assert info.step_times == tuple((expected.end - expected.start).tolist())


def test_no_other_steps_are_taken_where_nothing_matches(tmp_path: Path) -> None:
    (path, _) = write_ranks(tmp_path, 2, 3, 1).paths
    assert summarise(load(path), path).summary.info[0].step_numbers == (0, 1, 2)
    (info,) = summarise(load(path), path, options=RankOptions(iteration="nothing")).summary.info
    assert (info.step_numbers, info.iteration) == ((), "nothing")


@pytest.mark.deep
def test_summaries_with_other_expressions_say_so(tmp_path: Path) -> None:
    expressions = ("batch", "batch", "x$", "")
    paths = [write_loops(tmp_path / f"rank{rank}.sqlite", 3, 700 + rank) for rank in range(4)]
    parts = [
        summarise(load(path), path, options=RankOptions(iteration=one)).summary
        for path, one in zip(paths, expressions, strict=True)
    ]

    def told(*places: int) -> list[str]:
        merged = merge_summaries([parts[place] for place in places])
        found = steps_section(questions_of(merged, select("kernel")))
        return [note for note in found.notes if "named differently" in note]

    assert told(0, 1) == told(0, 1, 3) == []  # The last one has no steps.
    (note,) = told(0, 1, 2)
    assert "(--iteration batch, --iteration x$)" in note


@pytest.mark.deep
def test_a_hostile_expression_is_given_up(tmp_path: Path) -> None:
    path = tmp_path / "rank0.sqlite"
    with NsysFile(path) as file:
        file.nvtx("a" * 5_000 + "b", 0, 900)
        file.api("cudaLaunchKernel_v7000", 10, 20, corr=1)
        file.kernel("gemm", 200, 300, corr=1)
    with pytest.raises(
        UsageError, match=re.escape(f"--iteration '{HOSTILE}': ") + ".*takes too long"
    ):
        summarise(load(path), path, options=RankOptions(iteration=HOSTILE))
    how = RankOptions(iteration=HOSTILE)
    (lost,) = read_part(path, LoadOptions(), silent, name="x", how=how).summary.lost
    assert "takes too long" in lost.reason
