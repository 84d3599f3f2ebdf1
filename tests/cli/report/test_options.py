"""Options of `flame report` on iterations and phases, from the command line to what is printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Flame, write_batches
from tests.support.writers.nsysfile import NsysFile


@pytest.fixture
def steps(tmp_path: Path) -> Path:
    """Four ranges `batch N`, with a kernel each."""
    path = tmp_path / "steps.sqlite"
    with NsysFile(path) as file:
        write_batches(file)
    return path


def test_ranges_are_iterations_if_somebody_says_so(flame: Flame, steps: Path) -> None:
    without = json.loads(flame("report", steps, "--json", "--section", "iterations").out)
    assert without["iterations"]["why"] == "no iterations: name a range by --iteration"
    assert "'^batch [0-9]+$' has 4" in without["iterations"]["how"]
    words = ("--iteration", "^batch", "--section", "iterations,phases", "--json")
    found = json.loads(flame("report", steps, *words).out)
    assert [row["iteration"] for row in found["iterations"]["rows"]] == [0, 1, 2, 3]
    assert [row["period_ns"] for row in found["iterations"]["rows"]] == [1_000] * 3 + [900]
    assert found["phases"]["families"][0]["iteration_ns"] == 101


def test_iterations_restrict_all_sections(flame: Flame, steps: Path) -> None:
    words = ("--iteration", "^batch", "--iterations", "1-2", "--json")
    found = json.loads(flame("report", steps, *words).out)
    assert [row["iteration"] for row in found["iterations"]["rows"]] == [1, 2]
    assert found["processes"]["rows"][0]["gpu_time_ns"] == 203
    assert found["utilization"]["devices"][0]["window_ns"] == 1_800


def test_links_name_no_steps_of_ranges_that_the_app_does_not_know(
    flame: Flame, steps: Path
) -> None:
    words = ("--iteration", "^batch", "--iterations", "1-2", "--section", "iterations", "--json")
    rows = json.loads(flame("report", steps, *words).out)["iterations"]["rows"]
    assert all("--time" in row["view"] and "--step" not in row["view"] for row in rows)


def test_phases_are_read_from_a_file(flame: Flame, steps: Path, tmp_path: Path) -> None:
    phases = tmp_path / "phases.json"
    phases.write_text('{"first": ["nvtx:batch 0"], "mm": ["GEMM"]}')
    words = ("--phases", phases, "--section", "phases", "--json")
    found = json.loads(flame("report", steps, *words).out)["phases"]
    assert {row["phase"]: row["gpu_time_ns"] for row in found["rows"]} == {
        "first": 100,
        "mm": 306,
        "unmapped": 0,
    }
    assert found["by"] == "file"


def test_the_patterns_of_kernels_are_shown(flame: Flame, steps: Path) -> None:
    result = flame("report", steps, "--phases", "show")
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert {"prefill", "decode", "communication", "matrix product"} <= {*lines[::2]}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--iterations", "3-1"), "--iterations '3-1': use A-B, such as 3-5, or a number"),
        (("--iteration", "("), "--iteration '(': not a regular expression"),
        (("--iteration", "epoch"), "--iteration 'epoch': no range of the trace matches"),
        (("--phases", "none.json"), "--phases none.json: No such file"),
    ],
)
def test_mistakes_are_told(flame: Flame, steps: Path, words: tuple[str, str], why: str) -> None:
    result = flame("report", steps, *words)
    assert result.code in (2, 3)
    assert result.complaint().startswith(why)


def test_names_cannot_break_out(flame: Flame, tmp_path: Path) -> None:
    path = tmp_path / "hostile.sqlite"
    with NsysFile(path) as file:
        for number in range(3):
            name = f"layers.{number}\x1b[31m|`<script>"
            file.nvtx(name, 1_000 * number, 1_000 * number + 900)
            file.api(
                "cudaLaunchKernel_v7000", 1_000 * number + 1, 1_000 * number + 2, corr=number + 1
            )
            file.kernel(
                "moe|\x1b]0;x\x07`k", 1_000 * number + 10, 1_000 * number + 20, corr=number + 1
            )
    names = "layers,experts,processes,threads,communication"
    for form in ((), ("--md",), ("--json",)):
        result = flame("report", path, "--section", names, *form)
        assert result.code == 0
        assert "\x1b" not in result.out
        assert "\x07" not in result.out
