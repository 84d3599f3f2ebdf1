"""Memory snapshots for other tools: bytes, and a speedscope profile per metric."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flame.cli.main import main
from tests.support.writers.snapshotfile import SnapshotFile


@pytest.fixture
def snapshot(tmp_path: Path) -> str:
    file = SnapshotFile()
    file.alloc(1_000, ("main", "weights"))
    file.free(file.alloc(500, ("main", "forward")))
    return str(file.write(tmp_path / "snapshot.pickle"))


@pytest.mark.parametrize(
    ("metric", "lines"),
    [
        ("peak", ["forward 500", "weights 1000"]),
        ("live", ["weights 1000"]),
        ("churn", ["forward 500"]),
    ],
)
def test_folded_lines_are_bytes(
    metric: str, lines: list[str], snapshot: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", "-f", "folded", snapshot, "--metric", metric, "-o", "-"]) == 0
    found = capsys.readouterr().out.splitlines()
    assert [line.split(";")[-1].replace(" (model.py:11)", "") for line in found] == lines


def test_a_speedscope_profile_per_metric_in_bytes(snapshot: str, tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    assert main(["export", "-f", "speedscope", snapshot, "-o", str(target)]) == 0
    profiles = json.loads(target.read_text())["profiles"]
    assert {one["unit"] for one in profiles} == {"bytes"}
    sums = {one["name"]: sum(one["weights"]) for one in profiles}
    assert all(sums[one["name"]] == one["endValue"] for one in profiles)
    sums.pop("memory held")
    assert sums == {
        "memory at the peak": 1_500,
        "live memory": 1_000,
        "allocated memory": 1_500,
        "memory given back": 500,
    }


@pytest.mark.parametrize(
    "words", [("--nvtx-range", "step"), ("--kernel", "gemm"), ("--pid", "3"), ("--tid", "3")]
)
def test_filters_that_mean_nothing_are_refused_in_a_line(
    words: tuple[str, str], snapshot: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", "-f", "folded", snapshot, *words, "-o", "-"]) != 0
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "a memory snapshot has no kernels, ranges, processes or threads" in error


def test_ranks_are_not_summed_up(
    snapshot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ranks", snapshot, "-o", str(tmp_path / "run.flamesum")]) != 0
    assert "a memory snapshot has no GPU time: flame view FILES" in capsys.readouterr().err
