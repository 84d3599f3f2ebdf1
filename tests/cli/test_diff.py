"""``flame diff`` as a user calls it: sides, formats, mistakes."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from flame.cli.main import main
from flame.cli.parser import command_parsers, parse_command_line
from flame.core.compare.sections.diff_report import SECTIONS
from tests.conftest import TRACES, needs_traces
from tests.exporters.test_speedscope import checked
from tests.support.generated.worked import write_products
from tests.support.paths import SAMPLES

TRACE = str(SAMPLES / "decode_small.sqlite")
OTHER = str(SAMPLES / "six_levels" / "tiny_llm.fdump")


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Two files of stacks, in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.folded").write_text("main;old 30\nmain;work 100\n")
    (tmp_path / "b.folded").write_text("main;new 20\nmain;work 150\n")
    return "a.folded", "b.folded"


def test_text_has_all_sections(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", TRACE, OTHER]) == 0
    text = capsys.readouterr().out
    assert text.startswith("BASE and NEW cannot be compared: ")
    names = [name for name in SECTIONS if name not in ("summary", "ranks")]
    assert all(SECTIONS[name].title in text for name in names)


def test_text_of_stacks(pair: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", *pair]) == 0
    text = capsys.readouterr().out
    assert "work ‹ main     100  150     +50" in text
    assert "a side has no GPU activity with times" in text


def test_json_adds_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", TRACE, OTHER, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["flame_diff"], found["base"], found["new"]) == (1, [[TRACE]], [[OTHER]])
    [whole] = found["summary"]["rows"]
    changes = [row["change_ns"] for row in found["kernels"]["rows"]]
    assert sum(changes) == pytest.approx(whole["change_ns"], abs=0.01 * len(changes))


def test_parts_of_one_trace(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["diff", TRACE, "--base-select", "--kernel gemm", "--new-select", "--kernel norm"]
    assert main([*words, "--json", "--section", "summary"]) == 0
    base, new = json.loads(capsys.readouterr().out)["summary"]["runs"]
    assert base["count"] and new["count"] and base["count"] != new["count"]


def test_several_runs_of_a_side(pair: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    base, new = pair
    assert main(["diff", "--base", base, "--base", new, "--new", new, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["summary"]
    assert [run["label"] for run in found["runs"]] == ["BASE 1", "BASE 2", "NEW"]
    assert found["rows"][0]["base"] == 150


def test_folded_has_two_columns(pair: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", *pair, "-f", "folded"]) == 0
    assert capsys.readouterr().out == "main;new 0 20\nmain;old 30 0\nmain;work 100 150\n"
    assert main(["diff", *pair, "-f", "folded", "--widths", "base", "--per", "1,2"]) == 0
    assert capsys.readouterr().out == "main;new 20 0\nmain;old 0 60\nmain;work 150 200\n"


@pytest.mark.parametrize("name", ["pprof", "chrome", "html", "csv", "json", "parquet"])
def test_formats_of_one_trace_are_none_of_two(
    name: str, pair: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", *pair, "-f", name, "-o", "out"]) == 2
    assert f"'{name}'" in capsys.readouterr().err
    assert not Path("out").exists()


def test_speedscope_has_both_sides_and_what_grew_and_shrank(pair: tuple[str, str]) -> None:
    assert main(["diff", *pair, "-f", "speedscope", "-o", "out.json"]) == 0
    found = checked(Path("out.json").read_bytes())
    sums = {one.name: one.end_value for one in found.profiles}
    assert sums == {"new": 170, "base": 130, "grew": 70, "shrank": 30}


def test_a_picture(pair: tuple[str, str]) -> None:
    assert main(["diff", *pair, "-f", "svg", "-o", "out.svg"]) == 0
    assert Path("out.svg").read_text().startswith('<svg xmlns="http://www.w3.org/2000/svg"')


def test_markdown(pair: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", *pair, "--md"]) == 0
    assert "| `work ‹ main` | 100 | 150 | +50 | +50.0 % |" in capsys.readouterr().out


def test_nothing_is_replaced_without_being_told(
    pair: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("out.txt").write_text("kept")
    assert main(["diff", *pair, "-o", "out.txt"]) == 2
    assert "--force replaces it" in capsys.readouterr().err
    assert Path("out.txt").read_text() == "kept"
    assert main(["diff", *pair, "-o", "out.txt", "--force"]) == 0
    assert "work" in Path("out.txt").read_text()
    assert main(["diff", *pair, "-o", pair[0], "--force"]) == 2
    assert "is what is read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["a.folded"], "name two traces"),
        (["a.folded", "b.folded", "a.folded"], "name two traces"),
        (["a.folded", "--base", "b.folded"], "name both sides"),
        (["--base", "b.folded"], "name both sides"),
        (["a.folded", "b.folded", "--per", "minute"], "choose from step"),
        (
            ["a.folded", "b.folded", "--per", "step"],
            "BASE has no iterations after the warm-up; choose another basis",
        ),
        (["a.folded", "b.folded", "--min-change", "x"], "write parts of the base"),
        (["a.folded", "b.folded", "--section", "x"], "is none of summary"),
        (["a.folded", "b.folded", "--top", "0"], "is no number of rows"),
        (["a.folded", "b.folded", "--metric", "gpu"], "unknown metric"),
        (["a.folded", "--base-select", "--levels kernel"], "takes filters alone"),
        (["a.folded", "--base-select", "'"], "No closing quotation"),
        (["a.folded", "b.folded", "-f", "folded", "--widths", "both"], "one side after the other"),
        (["a.folded", TRACE], "no metric in common"),
        (["a.folded", "b.folded", "-f", "pprof"], "'pprof' is none of folded, speedscope, svg"),
    ],
)
def test_mistakes_are_told_in_a_line(
    pair: tuple[str, str], capsys: pytest.CaptureFixture[str], words: list[str], why: str
) -> None:
    assert main(["diff", *words]) == 2
    error = capsys.readouterr().err
    assert why in error and error.count("\n") == 1


@pytest.mark.parametrize("word", ["self", "own"])
def test_frames_are_coloured_by_self_as_lines_that_were_copied_may_have_it(word: str) -> None:
    parsed = parse_command_line(["diff", "a", "b", "--colour-by", word])
    assert parsed.colour_by == "self"
    (action,) = (
        one for one in command_parsers(("diff",))["diff"]._actions if one.dest == "colour_by"
    )
    assert action.choices == ("total", "self") and "own" not in str(action.help)


def test_sections_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "--section", "help"]) == 0
    assert capsys.readouterr().out.split()[0] == "summary"


def stacks(path: Path) -> Counter[str]:
    """The values of an export by stack."""
    lines = path.read_text().splitlines()
    return Counter({line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in lines})


@needs_traces
@pytest.mark.deep
@pytest.mark.parametrize(
    ("base", "new"),
    [
        ("nsys/rtx3070_train_17k.sqlite", "nsys/rtx3060_23k.sqlite"),
        ("nsys/a100_llm_nvtx.sqlite", "nsys/two_processes_colliding_ids.sqlite"),
        ("kineto/v100_old_categories.json.gz", "kineto/v100_cuda_graphs.json.gz"),
        ("nsys/rtx3070_train_17k.sqlite", "kineto/h100_qwen_python.json.gz"),
    ],
)
def test_both_columns_are_what_exports_of_the_sides_say(
    tmp_path: Path, base: str, new: str
) -> None:
    # Names with all their numbers: which of them fold depends on the trace.
    words = ["--levels", "nvtx,kernel", "--fold-layers", "--kernel-names", "base"]
    sums = []
    for name in (base, new):
        target = tmp_path / "one.folded"
        export = ["export", str(TRACES / name), "-f", "folded", *words, "--forward"]
        assert main([*export, "-o", str(target)]) == 0
        sums.append(without_numbers(stacks(target)))
    target = tmp_path / "both.folded"
    diff = ["diff", str(TRACES / base), str(TRACES / new), "-f", "folded", "--per", "total"]
    assert main([*diff, *words, "--no-fold-numbers", "-o", str(target)]) == 0
    found = [Counter[str](), Counter[str]()]
    for line in target.read_text().splitlines():
        stack, old, now = line.rsplit(" ", 2)
        found[0][stack] += int(old)
        found[1][stack] += int(now)
    assert [without_numbers(+one) for one in found] == sums


def without_numbers(values: Counter[str]) -> Counter[str]:
    """The same with a star for every number: iterations are one frame in a comparison."""
    found = Counter[str]()
    for stack, value in values.items():
        found[re.sub(r"[0-9]+", "*", stack)] += value
    return found


@pytest.mark.parametrize(
    ("metric", "says"),
    [
        ("flops", "51.5 GFLOP  51.5 GFLOP"),
        ("bytes", "88.1 MB  88.1 MB"),
        ("waste", "7.91 µs  37.9 µs  +30.0 µs"),
    ],
)
def test_work_of_operators_is_compared_in_its_units(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], metric: str, says: str
) -> None:
    base = write_products(tmp_path / "base.json")
    new = write_products(tmp_path / "new.json", ns=30_000)
    assert main(["diff", str(base), str(new), "--metric", metric]) == 0
    assert says in re.sub(" {2,}", "  ", capsys.readouterr().out)
