"""A summary of ranks is opened by the commands that open traces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flame.cli.main import main
from flame.core.rank_summary.merge import merge_summaries
from flame.core.rank_summary.summary_file import pack_summary
from tests.support.random_ranks import random_summary


@pytest.fixture
def run(tmp_path: Path) -> list[Path]:
    """Two summaries, of two ranks each."""
    found = []
    for first in (0, 2):
        parts = [random_summary(1, rank) for rank in (first, first + 1)]
        found.append(tmp_path / f"part{first}.flamesum")
        found[-1].write_bytes(pack_summary(merge_summaries(parts)))
    return found


def test_info_tells_of_the_ranks(run: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(run[0])]) == 0
    said = capsys.readouterr().out
    assert "flame summary" in said and "2 × H100" in said
    assert "ranks       2: 0–1\n" in said and "pid ?" not in said


def test_several_summaries_are_merged(run: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    whole = merge_summaries([random_summary(1, rank) for rank in range(4)])
    assert main(["info", "--json", *map(str, run)]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["gpu_time_ns"] == int(whole.rank_total[1].sum())
    assert said["processes"] == [] and said["ranks"]["count"] == 4


def test_a_trace_among_summaries_is_refused(
    run: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    other = run[0].with_name("other.folded")
    other.write_text("a;b 1\n")
    assert main(["info", str(run[0]), str(other)]) == 3
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["view", "--print", "--step", "3"], "--step 3"),
        (["view", "--print", "--sort", "start"], "--sort start"),
        (["export", "-f", "folded", "--time", "1s/2s"], "--time 1s/2s"),
    ],
)
def test_what_needs_activities_is_refused_in_one_line(
    words: list[str], why: str, run: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, str(run[0])]) == 2
    said = capsys.readouterr()
    assert not said.out and said.err.count("\n") == 1 and why in said.err


def test_a_damaged_summary_is_one_line(run: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    run[0].write_bytes(run[0].read_bytes()[:-3])
    assert main(["view", "--print", str(run[0])]) == 3
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "cut off" in said


def test_a_level_and_a_filter_show_ranks(
    run: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["view", "--print", "--levels", "rank,kernel", "--rank", "1", str(run[0])]) == 0
    said = capsys.readouterr().out
    assert "rank 1" in said and "rank 0" not in said
