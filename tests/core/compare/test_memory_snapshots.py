"""Memory snapshots compared: by the peak unless told otherwise, in all, in bytes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flame.cli.main import main
from tests.support.writers.snapshotfile import SnapshotFile


def snapshot(path: Path, activations: int, weights: int = 1_000_000) -> str:
    file = SnapshotFile()
    file.alloc(weights, ("main", "weights"))
    file.free(file.alloc(activations, ("main", "forward")))
    return str(file.write(path))


@pytest.fixture
def two(tmp_path: Path) -> list[str]:
    """NEW holds half a megabyte more at the peak, and the same at the end."""
    sizes = {"base.pickle": 500_000, "new.pickle": 1_000_000}
    return [snapshot(tmp_path / name, size) for name, size in sizes.items()]


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main(["diff", *words])
    out, error = capsys.readouterr()
    return code, out + error


def test_the_peak_is_compared(two: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, text = run(capsys, *two, "--print")
    assert code == 0
    first = text.partition("\n")[0]
    assert "memory at the peak: 1.50 MB → 2.00 MB, +33.3 %" in first
    assert "no evidence: fewer than 4 runs a side, and memory snapshots have nothing" in first
    (row,) = [line for line in text.splitlines() if line.lstrip().startswith("forward ‹ main")]
    assert "+500 kB" in row


def test_other_metrics_by_name(two: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert "BASE and NEW are identical" in run(capsys, *two, "--print", "--metric", "live")[1]
    assert "500 kB → 1.00 MB" in run(capsys, *two, "--print", "--metric", "churn")[1]


@pytest.mark.parametrize("metric", ["peak", "live", "alloc", "churn", "held"])
def test_a_snapshot_and_its_copy_are_identical(
    metric: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = (snapshot(tmp_path / name, 7_000) for name in ("a.pickle", "b.pickle"))
    code, text = run(capsys, one, other, "--print", "--metric", metric)
    assert code == 0 and text.startswith("BASE and NEW are identical")


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("memory.peak > +5%", 5),
        ("memory.peak > +400kB", 5),
        ("memory.peak > +600kB", 0),
        ("memory.live > +5%", 0),
        ("memory.peak > 1MB", 5),
        ('frame("forward").total > +1kB', 6),
    ],
)
def test_the_gate(
    condition: str, code: int, two: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    found, text = run(capsys, *two, "--print", "--fail-on", condition)
    assert found == code
    decided = json.loads(text.splitlines()[-1 if code == 0 else -2])
    assert decided["result"] is {5: True, 0: False, 6: None}[code]


def test_the_gate_writes_bytes(two: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, *two, "--print", "--fail-on", "memory.peak > +5%", "--per", "2,2")[1]
    assert "memory.peak 1.50 MB → 2.00 MB, +33.3 %" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--per", "second"), "--per second: memory is held, not spent: compare --per total"),
        (("--per", "step"), "--per step: BASE has no iterations after the warm-up"),
        (("--metric", "gpu"), "unknown metric 'gpu': choose from peak, live, alloc, churn, held"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_line(
    words: tuple[str, ...], message: str, two: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = run(capsys, *two, "--print", *words)
    assert code == 2 and text.count("\n") == 1
    assert message in text
