"""``flame report run.flamesum`` compares the ranks, in every form."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from flame.cli.main import main
from flame.cli.report.ranks import print_summary
from flame.core.loading.many import load
from flame.core.rank_summary.merge import merge_summaries
from flame.core.rank_summary.opened import summary_of
from flame.core.rank_summary.summary_file import pack_summary
from flame.core.ranks.report import SECTIONS
from flame.core.ranks.summarise import summarise
from tests.support.ranks.rank_traces import write_ranks


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("run")
    run = write_ranks(folder, 5, 2, 2, straggler=3)
    path = folder / "run.flamesum"
    parts = [summarise(load(one), one).summary for one in run.paths]
    path.write_bytes(pack_summary(merge_summaries(parts)))
    yield path


def test_a_summary_is_reported_on_by_its_ranks(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(path), "--json"]) == 0
    plain = capsys.readouterr().out
    found = json.loads(plain)
    assert list(SECTIONS) == [name for name in found if name in SECTIONS]
    [slow] = [one for one in found["outliers"]["rows"] if one["finding"]]
    assert slow["rank"] == 3
    assert "rank0003.sqlite" in slow["view"] and "--no-forward" not in slow["view"]
    assert main(["report", "--ranks", str(path), "--json"]) == 0
    assert capsys.readouterr().out == plain
    summary = summary_of(load(path))
    assert summary is not None
    print_summary(summary, [str(path)], as_json=True)
    assert capsys.readouterr().out == plain, "flame ranks prints the same"


def test_it_is_written_in_every_form(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, text, tables = tmp_path / "p.html", tmp_path / "p.md", tmp_path / "csv"
    assert main(["report", str(path), "--html", str(page)]) == 0
    assert main(["report", str(path), "--md", "-o", str(text)]) == 0
    assert main(["report", str(path), "--csv", str(tables)]) == 0
    assert "<svg" in page.read_text("utf-8")
    assert "**rank 3" not in text.read_text("utf-8") and "rank 3:" in text.read_text("utf-8")
    assert (tables / "outliers.csv").read_text("utf-8").count("\n") > 1
    assert main(["report", str(path), "--section", "help"]) == 0
    assert "only_some" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--iterations", "3"], "--iterations: a summary of ranks has no activities"),
        (["--fail-on", "idle > 3%"], "--fail-on: a summary of ranks has no activities"),
        (["--section", "idle"], "--section idle: is none of findings,"),
        (["--rank", "3"], "--rank: ranks are compared with all others"),
    ],
)
def test_what_a_summary_cannot_tell_is_refused(
    path: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(path), *words]) == 2
    assert said in capsys.readouterr().err


def test_ranks_of_traces_are_to_be_summed_up_first(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "--ranks", str(path.with_name("rank0000.sqlite"))]) == 2
    assert "rank0000.sqlite -o run.flamesum" in capsys.readouterr().err
