"""``flame top``: the table of frames on a terminal, in a pipe, in a file."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from tests.cli.conftest import Flame
from tests.support.generated.worked import write_products, write_sampled
from tests.support.paths import SAMPLES
from tests.support.writers.kinetofile import KinetoFile

DECODE = SAMPLES / "decode_small.sqlite"


def test_it_lists_the_frames_that_weigh_most(flame: Flame) -> None:
    done = flame("top", DECODE, "-n", "2", "--levels", "kernel")
    title, _, head, *rows = done.out.splitlines()
    assert title == "decode_small.sqlite: GPU time 371 ms by kernel"
    assert head.split()[:3] == ["name", "level", "self"]
    assert rows[0].split()[0] == "fused_moe_kernel"
    assert rows[1].split()[0].startswith("ncclDevKernel")
    assert "more" in rows[2]


def test_json_and_csv_have_all_frames(flame: Flame) -> None:
    document = json.loads(flame("top", DECODE, "--json").out)
    rows = list(csv.DictReader(io.StringIO(flame("top", DECODE, "--csv").out)))
    assert document["frames"] == len(document["rows"]) == len(rows) > 500
    assert sum(int(row["self_ns"]) for row in rows) == document["total"]
    few = json.loads(flame("top", DECODE, "--json", "--rows", "3").out)
    assert (few["rows"], few["frames"]) == (document["rows"][:3], document["frames"])


def test_a_level_and_an_order(flame: Flame) -> None:
    done = flame("top", DECODE, "--json", "--level", "nvtx", "--by", "total")
    rows = json.loads(done.out)["rows"]
    assert {row["level"] for row in rows} == {"nvtx"}
    totals = [row["total_ns"] for row in rows]
    assert totals == sorted(totals, reverse=True)


def test_names_are_searched_as_in_the_app(flame: Flame) -> None:
    def names(pattern: str) -> set[str]:
        rows = json.loads(flame("top", DECODE, "--json", "--name", pattern).out)["rows"]
        return {row["name"] for row in rows}

    assert flame("top", DECODE, "--json", "--name", "^NCCL.*ring").code == 4
    found = names("^nccl.*ring")
    assert found == {"ncclDevKernel_AllReduce_Sum_bf16_RING_LL"}
    assert found < names("nccl")


def test_markdown_is_a_table(flame: Flame) -> None:
    lines = flame("top", DECODE, "--md", "-n", "1").out.splitlines()
    assert lines[0].startswith("### ") and lines[2].startswith("| name | level |")


def test_a_file_is_replaced_only_by_force(flame: Flame, folder: Path) -> None:
    assert flame("top", DECODE, "--csv", "-o", "x.csv").code == 0
    before = Path("x.csv").read_bytes()
    refused = flame("top", DECODE, "--json", "-o", "x.csv")
    assert (refused.code, Path("x.csv").read_bytes()) == (2, before)
    assert flame("top", DECODE, "--json", "-o", "x.csv", "--force").code == 0
    assert json.loads(Path("x.csv").read_text())["flame_top"] == 1


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["--by", "size"], 2, "choose from self, total, count, mean, p50, p95, p99, max"),
        (["--by", "p99", "--metric", "count"], 2, "choose from self, total, count"),
        (["--level", "layer"], 2, "--level layer: is none of"),
        (["--level", "memset", "--levels", "nvtx"], 4, "no frame of the level memset"),
        (["-n", "0"], 2, "--rows 0"),
        (["--name", "("], 2, "--name: not a regular expression"),
        (["--name", "nothing of it"], 4, "no frame called nothing of it"),
        (["--json", "--csv"], 2, "not allowed with"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(
    options: list[str], code: int, says: str, flame: Flame
) -> None:
    refused = flame("top", DECODE, *options)
    assert refused.code == code
    assert says in refused.complaint()


def test_frames_say_how_near_they_are_to_the_peak(flame: Flame, tmp_path: Path) -> None:
    trace = write_products(tmp_path / "a.json")
    options = (trace, "--levels", "kernel")
    rows = json.loads(flame("top", *options, "--json", "--by", "bound").out)["rows"]
    gemm, add = ({row["name"]: row for row in rows}[name] for name in ("gemm", "add"))
    found = [gemm[key] for key in ("tflops", "compute_percent", "bound_percent", "rated_percent")]
    assert found == [858.993, 86.82, 86.82, 100.0] and gemm["verdict"] == "compute-bound"
    assert {add[key] for key in ("tflops", "compute_percent", "bound_percent", "verdict")} == {None}
    [first, _] = csv.DictReader(io.StringIO(flame("top", *options, "--csv").out))
    assert (first["name"], first["bandwidth_percent"]) == ("gemm", "43.821")
    text = flame("top", *options).out
    assert all(word in text for word in ("TFLOP/s", "peak %", "bandwidth %", "compute-bound"))


def test_a_trace_without_shapes_has_no_such_columns(flame: Flame, tmp_path: Path) -> None:
    file = KinetoFile()
    file.op("aten::mm", 1000, 1900)
    file.runtime(1, 1010, 1020)
    file.kernel("gemm", 2000, 3000, 1)
    trace = file.write(tmp_path / "a.json")
    [row] = json.loads(flame("top", trace, "--json", "-n", "1").out)["rows"]
    assert not {"tflops", "bound_percent", "verdict"} & set(row)
    assert flame("top", trace, "--by", "bound").code == 2


RUNS = [("relu", 1_000, 2_000), ("mm", 3_000, 4_000), ("short", 5_000, 5_050)]


def test_frames_have_what_gpu_metrics_say_while_they_ran(flame: Flame, tmp_path: Path) -> None:
    trace = write_sampled(tmp_path / "a.sqlite", RUNS, read=2, write=1)
    options = (trace, "--levels", "kernel", "--dtype", "bf16")
    rows = json.loads(flame("top", *options, "--json", "--by", "moved").out)["rows"]
    assert [row["name"] for row in rows] == ["mm", "relu", "short"]
    keys = ("dram_percent", "sampled_ns", "shared", "moved_ratio")
    found = [[row.get(key) for key in keys] for row in rows]
    assert found == [[3.0, 1e6, None, 4.768], [3.0, 1e6, None, None], [None] * 4]
    [first, *_] = csv.DictReader(io.StringIO(flame("top", *options, "--csv", "--by", "dram").out))
    assert (first["dram_percent"], first["sampled_ns"]) == ("3.0", "1000000")
    text = flame("top", *options, "-n", "3").out
    assert all(word in text for word in ("DRAM %", "sampled", "3.0 %", "1.00 ms"))
    exported = flame("export", *options, "-f", "json", "-o", str(tmp_path / "b.json"))
    assert exported.code == 0 and '"moved_ratio": 4.768' in (tmp_path / "b.json").read_text()
    made = ("-f", "html", "--metric", "flops", "-o", str(tmp_path / "c.html"))
    assert flame("export", *options, *made).code == 0
    page = (tmp_path / "c.html").read_text()
    assert ">4.8×<" in page and ">1.00 ms<" in page and ">2.15 GFLOP<" in page


def test_kernels_that_run_beside_others_are_marked(flame: Flame, tmp_path: Path) -> None:
    runs = [("relu", 1_000, 2_000), ("mm", 1_500, 2_000)]
    trace = write_sampled(tmp_path / "a.sqlite", runs, read=2)
    rows = json.loads(flame("top", trace, "--levels", "kernel", "--json").out)["rows"]
    assert [row["shared"] for row in rows] == ["yes", "yes"]


def test_the_printed_view_has_them_too(flame: Flame, tmp_path: Path) -> None:
    trace = write_sampled(tmp_path / "a.sqlite", RUNS, read=2, write=1)
    text = flame("view", trace, "--print", "--dtype", "bf16").out
    lines = text[text.index("while it ran") :].splitlines()[1:3]
    assert [line.split() for line in lines] == [
        ["3.0", "%", "1.00", "ms", "relu"],
        ["3.0", "%", "1.00", "ms", "4.8×", "mm"],
    ]
