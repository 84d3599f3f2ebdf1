"""What benchmarks tell: rows, their goals, and the page that is made of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import run_all
from benchmarks.support import goals, machine, page, rows
from benchmarks.support.goals import GOALS, Goal
from benchmarks.support.page import Result
from benchmarks.support.rows import Row
from tests.support.paths import ROOT

AT_MOST = Goal("load, 1M kernels", "≤", 1.5, "x SQL limit", "7.9")
AT_LEAST = Goal("a peer", "≥", 40, "x flame", "9")
PAGE = (ROOT / "docs" / "performance.md").read_text("utf-8")


def result(*found: Row, text: str = "", failure: str = "", size: str = "small") -> Result:
    """What `bench_load` might have told."""
    return Result(
        script="bench_load",
        command="benchmarks/bench_load.py",
        size=size,
        date="2026-01-02 03:04",
        state="abc123",
        load="0.1",
        seconds=3.4,
        failure=failure,
        rows=found,
        text=text,
    )


@pytest.mark.parametrize(
    ("goal", "figure", "verdict"),
    [
        (AT_MOST, 1.5, "met"),
        (AT_MOST, 1.51, "missed"),
        (AT_LEAST, 40, "met"),
        (AT_LEAST, 39.9, "missed"),
    ],
)
def test_a_goal_is_a_bound_that_counts_as_reached(goal: Goal, figure: float, verdict: str) -> None:
    assert goal.verdict(figure) == verdict


def test_rows_are_told_with_their_goal_and_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = [Row("load, 1M kernels", 1.6, "x SQL limit", "wall 2 s"), Row("new", 1234.5, "ms")]
    rows.tell(told, tmp_path / "rows.json")
    first, second = capsys.readouterr().out.splitlines()
    assert re.sub(" +", " ", first) == (
        "load, 1M kernels 1.6 x SQL limit wall 2 s goal ≤ 1.5 x SQL limit: missed"
    )
    assert second.split() == ["new", "1,234", "ms"]
    assert rows.read(tmp_path / "rows.json") == told


def test_every_goal_is_told_measured_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "GOALS", (AT_MOST, AT_LEAST))
    lines = page.goal_table([result(Row("load, 1M kernels", 1.6, "x SQL limit"))]).splitlines()
    assert lines[2:] == [
        "| load, 1M kernels | 7.9 | ≤ 1.5 x SQL limit | 1.6 | **missed** |",
        "| a peer | 9 | ≥ 40 x flame |  | not measured |",
    ]


def test_of_two_figures_the_last_one_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "GOALS", (AT_MOST,))
    new = result(Row(AT_MOST.row, 1.2, "x SQL limit"))._replace(date="2026-01-03 10:00")
    old = result(Row(AT_MOST.row, 1.6, "x SQL limit"), size="large")
    assert "| 1.2 | met |" in page.goal_table([new, old])


def test_a_script_without_rows_is_shown_as_it_printed() -> None:
    text = page.figures([result(text="flame   1.2\n")])
    assert "```\n  flame   1.2\n```" in text and "| what |" not in text


def test_a_script_that_failed_is_told() -> None:
    assert "**It failed:** exit code 1." in page.figures([result(failure="exit code 1")])


def test_pages_keep_what_is_written_by_hand() -> None:
    text = "# A\n<!-- measured: goals -->\nold\n<!-- end of goals -->\nby hand\n"
    new = page.written(text, {"goals": "new\n"})
    assert new == text.replace("old", "new")
    assert page.written(new, {"goals": "new\n"}) == new


def test_the_page_has_a_place_for_every_measured_part() -> None:
    marks = re.findall(r"<!-- measured: ([\w ]+) -->", PAGE)
    assert sorted(marks) == sorted(run_all.parts())
    filled = page.written(PAGE, dict.fromkeys(marks, "here\n"))
    assert filled.count("here\n") == len(marks)


def test_the_page_tells_nothing_of_the_machine_but_what_it_is() -> None:
    assert not re.search(r"/(home|tmp|root|usr|work)\b", PAGE)
    assert {name for name, _ in machine.facts()} >= {"processor", "system", "flame", "Python"}
    assert page.without_paths(f"{ROOT}/x /tmp/tmpab_1/y", ROOT) == "x y"


def test_kept_results_are_read_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_all, "KEPT", tmp_path / "kept")
    large, small = result(Row("a", 1, "s"), size="large"), result(Row("b", 2, "s", "of it"))
    for one in (large, small):
        run_all.keep(one)
    found = run_all.kept()
    assert [one._replace(rows=()) for one in found] == [
        one._replace(rows=()) for one in (small, large)
    ]
    assert [list(one.rows) for one in found] == [[Row("b", 2, "s", "of it")], [Row("a", 1, "s")]]


def test_every_script_is_run_small() -> None:
    scripts = {path.stem for path in (ROOT / "benchmarks").glob("bench_*.py")}
    assert {name for name, _ in run_all.jobs("small", [])} == scripts >= set(run_all.JOBS)


def test_a_benchmark_that_is_not_there_is_named() -> None:
    with pytest.raises(SystemExit, match="no benchmark bench_nothing; there are bench_attach"):
        list(run_all.jobs("small", ["bench_nothing"]))


def test_a_script_that_does_not_end_is_ended(tmp_path: Path) -> None:
    script = tmp_path / "endless.py"
    script.write_text("import time\nprint('begun', flush=True)\ntime.sleep(60)\n")
    failure, text = run_all.watched([str(script)], limit=0.2)
    assert failure == "ended after 0 s" and text in ("", "begun\n")


def test_goals_are_named_once() -> None:
    assert len({(one.row, one.unit) for one in GOALS}) == len(GOALS)
    assert {one.sense for one in goals.GOALS} == {"≤", "≥"}
