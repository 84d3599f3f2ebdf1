"""A summary of ranks is opened by the commands that open traces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flame.cli.main import main
from flame.core.rank_summary.merge import merge_summaries
from flame.core.rank_summary.summary_file import pack_summary
from tests.support.ranks.random_ranks import random_summary
from tests.support.ranks.rank_traces import write_ranks


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


@pytest.mark.parametrize("words", [["view", "--print"], ["export", "-f", "folded", "-o", "x"]])
def test_waiting_that_is_not_known_is_refused_with_the_reason(
    words: list[str], run: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--metric", "wait", str(run[0])]) == 2
    said = capsys.readouterr()
    assert not said.out and said.err.count("\n") == 1
    assert "--metric wait: no collective was recorded" in said.err


def test_info_says_that_waiting_is_not_known(
    run: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["info", "--json", str(run[0])]) == 0
    waits = json.loads(capsys.readouterr().out)["ranks"]["waits"]
    assert [waits[key] for key in ("collectives", "wait_ns", "transfer_ns")] == [None] * 3
    assert waits["why"].startswith("no collective was recorded")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A summary of ranks that were read together."""
    folder = tmp_path_factory.mktemp("measured")
    paths = [str(path) for path in write_ranks(folder, 3, steps=2, layers=2).paths]
    assert main(["ranks", *paths, "--here", "-o", str(folder / "run.flamesum")]) == 0
    return folder / "run.flamesum"


@pytest.mark.deep
def test_all_that_writes_has_one_sum_of_waiting(
    measured: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()

    def said(*words: str) -> str:
        assert main([*words, str(measured)]) == 0
        return capsys.readouterr().out

    info = json.loads(said("info", "--json"))
    waits, gpu = info["ranks"]["waits"], info["gpu_time_ns"]
    assert waits["collectives"] == 12 and waits["why"] is None
    assert waits["wait_ns"] > 0 and "wait" in info["levels"]

    folded = said("export", "-f", "folded", "-o", "-", "--metric", "wait").splitlines()
    assert sum(int(line.rsplit(" ", 1)[1]) for line in folded) == waits["wait_ns"]
    split = said("export", "-f", "folded", "-o", "-").splitlines()
    values = {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in split}
    for name, key in (("[waiting]", "wait_ns"), ("[transfer]", "transfer_ns")):
        assert sum(one for stack, one in values.items() if stack.endswith(name)) == waits[key]
    assert sum(values.values()) == gpu

    scope = json.loads(said("export", "-f", "speedscope", "-o", "-"))
    by_name = {one["name"]: sum(one["weights"]) for one in scope["profiles"]}
    assert by_name["collective wait"] == waits["wait_ns"] and by_name["GPU time"] == gpu

    shown = said("view", "--print", "--metric", "wait", "--levels", "rank,kernel")
    assert "collective wait" in shown and "rank 2" in shown
    report = json.loads(said("report", "--json", "--section", "collectives,late"))
    assert report["collectives"]["waiting_ns"] == waits["wait_ns"]
    assert sum(one["waited_ns"] for one in report["late"]["rows"]) == waits["wait_ns"]
    frames = json.loads(said("report", "--json", "--section", "frames", "--metric", "wait"))
    assert frames["frames"]["rows"][0]["total"] == waits["wait_ns"]
