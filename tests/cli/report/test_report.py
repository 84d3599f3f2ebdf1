"""``flame report`` as a user calls it: text, formats, sections, mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flame.cli.main import main
from flame.core.report.report import SECTIONS
from tests.support.paths import SAMPLES

TRACE = str(SAMPLES / "decode_small.sqlite")
STACKS = "main;work 3\n"


def test_findings_come_first_and_then_what_was_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", TRACE]) == 0
    text = capsys.readouterr().out
    titles = [line for line in text.splitlines() if line and not line.startswith(" ")]
    assert titles[:2] == ["What to look at first", "What was recorded"]


def test_json_adds_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", TRACE, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["path"] == [TRACE]
    for device in found["budget"]["devices"]:
        parts = [device[key] for key in ("compute_ns", "exposed_comm_ns", "copies_alone_ns")]
        assert sum(parts) + sum(device["idle_ns"].values()) == device["window_ns"]
        assert device["check"] == 0


def test_only_the_sections_that_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", TRACE, "--json", "--section", "idle, budget"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"idle", "budget"} < {*found} and "utilization" not in found


def test_sections_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", TRACE, "--section", "help"]) == 0
    assert capsys.readouterr().out.startswith("findings")


def test_csv_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report", TRACE, "--csv", "out"]) == 0
    assert (tmp_path / "out" / "budget_parts.csv").exists()
    out, error = capsys.readouterr()
    assert (out, error.startswith("flame: wrote out: ")) == ("", True)
    assert main(["report", TRACE, "--csv", "out"]) == 2
    assert "not empty" in capsys.readouterr().err


def test_stacks_say_what_they_cannot_tell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "stacks.folded"
    path.write_text(STACKS)
    assert main(["report", str(path)]) == 0
    shown, _, absent = capsys.readouterr().out.partition("Not recorded\n")
    assert "What was recorded" in shown and "Frames, by what they hold" in shown
    told = " ".join(absent.split())
    assert told.endswith("metrics: a file of stacks knows no activities and no times of them")
    assert told.startswith("findings, coverage, budget, ") and told.count(":") == 1
    assert main(["report", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [name for name in SECTIONS if found[name]["available"]] == ["summary", "kernels"]
    assert found["summary"]["trace"]["gpu_time_ns"] is None


@pytest.mark.parametrize(
    ("condition", "code", "result"),
    [("idle >= 0%", 5, True), ("idle > 100%", 0, False), ("step.p50 > 1h", 2, None)],
)
def test_a_condition_decides_the_exit_code(
    condition: str, code: int, result: bool | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", TRACE, "--section", "budget", "--fail-on", condition]) == code
    if code != 2:
        last = capsys.readouterr().out.splitlines()[-1]
        assert json.loads(last)["result"] is result
    assert main(["report", TRACE, "--json", "--fail-on", condition]) == code
    if code != 2:
        assert json.loads(capsys.readouterr().out)["gate"]["result"] is result


def test_a_condition_that_cannot_be_decided(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "stacks.folded"
    path.write_text(STACKS)
    assert main(["report", str(path), "--section", "budget", "--fail-on", "kernels > 3"]) == 6
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["result"] is None


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--section", "budgets"], "--section budgets: is none of findings, "),
        (["--unit", "minutes"], "--unit"),
        (["--json", "--md"], "not allowed with"),
        (["--fail-on", "idle > "], "--fail-on: "),
        (["--top", "-1"], "--top -1: "),
        (["--top", "x"], "--top"),
    ],
)
def test_mistakes_are_said_in_a_line(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", TRACE, *words]) == 2
    error = capsys.readouterr().err
    assert says in error and error.count("\n") == 1


def test_filters_that_leave_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", TRACE, "--time", "90s/91s"]) in (0, 4)
    assert "Traceback" not in capsys.readouterr().err
