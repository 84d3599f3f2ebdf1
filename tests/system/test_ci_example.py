"""The job of CI that docs/ci.md shows: its shell scripts, run as they stand there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.writers.nsysfile import NsysFile

pytestmark = pytest.mark.deep

BASE = [100_000, 101_000, 99_000, 100_500] * 5
SLOWER = [period * 11 // 10 for period in BASE]
FEW = [60_000, 140_000, 90_000, 180_000, 70_000, 130_000]


def scripts() -> list[str]:
    """The scripts of the page: to keep a base, and to compare with it."""
    page = (ROOT / "docs" / "ci.md").read_text("utf-8")
    return re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def record(path: Path, periods: list[int], kernels: int = 1) -> None:
    """Write the trace of a program that takes ``periods`` ns for its steps."""
    path.unlink(missing_ok=True)
    with NsysFile(path) as file:
        begin = 0
        for number, period in enumerate(periods):
            file.nvtx(f"step {number}", begin, begin + period)
            for one in range(kernels):
                corr, at = number * kernels + one + 1, begin + 100 + one * period // 4
                file.api("cudaLaunchKernel_v7000", at - 80, at - 70, corr)
                file.kernel("gemm", at, at + period // 5, corr)
            begin += period


def run(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        ["sh", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the base that main has kept, and without its trace."""
    folder = tmp_path_factory.mktemp("ci")
    record(folder / "run.sqlite", BASE)
    keep, _ = scripts()
    assert run(keep, folder).returncode == 0
    (folder / "run.sqlite").unlink()
    return folder


@pytest.mark.parametrize(
    ("periods", "kernels", "code", "verdict"),
    [
        (SLOWER, 1, 5, "regression"),
        (BASE, 1, 0, "identical"),
        (BASE, 2, 5, "same"),
        (FEW, 1, 6, "unclear"),
    ],
    ids=["slower", "same", "more-kernels", "too-few-steps"],
)
def test_the_job_exits_as_the_gate_says(
    folder: Path, periods: list[int], kernels: int, code: int, verdict: str
) -> None:
    record(folder / "run.sqlite", periods, kernels)
    for name in ("gate.json", "diff.json", "diff.md"):
        (folder / name).unlink(missing_ok=True)
    _, compare = scripts()
    done = run(compare, folder)
    assert done.returncode == code, done.stderr
    gate = json.loads((folder / "gate.json").read_text())
    assert (gate["result"], gate["verdict"]) == ({0: False, 5: True, 6: None}[code], verdict)
    assert json.loads((folder / "diff.json").read_text())["gate"] == gate
    assert (folder / "diff.md").read_text().startswith("### ")
    if code == 6:
        assert gate["undecided"]["step.p50"].startswith("record more: 6 steps now, about ")
        assert "step.p50 cannot be decided: record more" in done.stderr


def test_a_trace_that_cannot_be_read_is_no_verdict(folder: Path) -> None:
    (folder / "run.sqlite").write_text("nothing")
    _, compare = scripts()
    assert run(compare, folder).returncode == 3
