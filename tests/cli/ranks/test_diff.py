"""``flame diff`` of two summaries of ranks, in every form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flame.cli.main import main
from flame.core.rank_summary.summary_file import pack_summary
from tests.support.ranks.compared_ranks import rank_parts, summed_up

pytestmark = pytest.mark.deep

Capsys = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a straggler, one without, of twice as many ranks, and files of these."""
    folder = tmp_path_factory.mktemp("runs")
    for name, ranks, straggler in (("before", 8, 3), ("after", 16, None)):
        parts = rank_parts(folder / name, ranks, ranks, steps=10, straggler=straggler)
        (folder / f"{name}.flamesum").write_bytes(pack_summary(summed_up(parts)))
    return folder


@pytest.fixture(autouse=True)
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


BOTH = ("before.flamesum", "after.flamesum")


def test_a_straggler_that_is_gone_is_named(capsys: Capsys) -> None:
    assert main(["diff", *BOTH, "--print"]) == 0
    text = capsys.readouterr().out
    assert "ms per rank" in text and "8 and 16 ranks" in text
    assert "changed by waiting in collectives alone" in text
    assert "changed on the worst rank, not on most" in text
    assert "only in NEW: ranks 8–15" in text and "BASE has 8 ranks, NEW 16" in text
    assert "budget" not in text and "Not recorded" not in text


def test_json_has_the_numbers(capsys: Capsys) -> None:
    assert main(["diff", *BOTH, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["summary"]["evidence"], found["summary"]["n"]) == ("ranks", [8, 16])
    assert (found["ranks"]["base_ranks"], found["ranks"]["new_ranks"]) == (8, 16)
    (late,) = found["ranks"]["late"]
    assert (late["rank"], late["base_finding"], late.get("new_finding")) == (3, "by GPU work", None)
    assert late["base_percent"] > 50 > late["new_percent"]
    parts = {one["part"]: one for one in found["ranks"]["parts"]}
    for side in ("base_ns", "new_ns"):
        whole, *rest = (one[side] for one in parts.values())
        assert whole == pytest.approx(sum(rest), abs=1)
    assert not found["frames"]["shrank"] and not found["frames"]["grew"]
    assert any(one["name"].startswith("nccl") for one in found["frames"]["waiting"])
    worst = found["frames"]["worst"]
    assert {one["base_rank"] for one in worst} == {3} and all(
        "mlp" in one["frame"] for one in worst
    )
    changes = {(one["change"], one["rule"]) for one in found["finding_changes"]["rows"]}
    assert ("went", "late-rank") in changes


def test_every_other_form(tmp_path: Path, capsys: Capsys) -> None:
    assert main(["diff", *BOTH, "--md"]) == 0
    assert "| 3 |" in capsys.readouterr().out
    assert main(["diff", *BOTH, "-f", "svg", "-o", str(tmp_path / "d.svg")]) == 0
    assert "per rank" in (tmp_path / "d.svg").read_text()
    assert main(["diff", *BOTH, "-f", "speedscope", "-o", str(tmp_path / "d.json")]) == 0
    assert main(["diff", *BOTH, "-f", "folded"]) == 0
    rows = [line.rsplit(" ", 2) for line in capsys.readouterr().out.splitlines()]
    base, new = (sum(int(row[at]) for row in rows) for at in (1, 2))
    assert main(["diff", *BOTH, "--json", "--section", "summary"]) == 0
    runs = json.loads(capsys.readouterr().out)["summary"]["runs"]
    assert new == runs[1]["total"]
    assert base == pytest.approx(runs[0]["total"] * 2, abs=1), "as of so many ranks as NEW has"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--fail-on", 'frame("AllReduce").total < +10%'], 5),
        (["--fail-on", "kernels > +0"], 0),
        (["--fail-on", "idle > 3%"], 6),
        (["--fail-on", "idle > 3%", "--on-undecided", "fail"], 5),
    ],
)
def test_the_gate(words: list[str], code: int, capsys: Capsys) -> None:
    assert main(["diff", *BOTH, *words]) == code
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert last["flame_diff"] == 1 and last["evidence"] == "ranks"


def test_kept_bases_and_summaries(tmp_path: Path, capsys: Capsys) -> None:
    kept = tmp_path / "base.gz"
    assert main(["diff", "before.flamesum", "--keep-base", str(kept)]) == 2
    assert "is a summary of ranks" in capsys.readouterr().err and not kept.exists()
    assert main(["diff", "before/rank0000.sqlite", "--keep-base", str(kept)]) == 0
    capsys.readouterr()
    assert main(["diff", str(kept), "after.flamesum"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "a kept base, which knows no ranks" in error


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["before.flamesum", "after/rank0000.sqlite", "--per", "step"], "compare --per rank"),
        ([*BOTH, "--step", "1"], "a summary of ranks has sums only"),
        ([*BOTH, "--base-select", "--step 1"], "a summary of ranks has sums only"),
    ],
)
def test_what_is_refused(words: list[str], said: str, capsys: Capsys) -> None:
    assert main(["diff", *words, "--print"]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_a_rank_of_both(capsys: Capsys) -> None:
    assert main(["diff", *BOTH, "--rank", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["summary"]["divisors"] == [1, 1] and found["summary"]["evidence"] == "none"
    assert {one["name"] for one in found["frames"]["shrank"]} >= {"sm90_xmma_gemm_mlp_up"}


def test_a_trace_against_a_summary(capsys: Capsys) -> None:
    assert main(["diff", "before.flamesum", "after/rank0000.sqlite", "--print"]) == 0
    assert "comparable are their means of a rank" in capsys.readouterr().out.replace(
        "\n      ", " "
    )
