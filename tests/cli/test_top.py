"""``flame top``: the table of frames on a terminal, in a pipe, in a file."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from tests.cli.conftest import Flame
from tests.support.paths import SAMPLES
from tests.support.worked import write_products
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
