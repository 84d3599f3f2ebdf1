"""How near the GPUs were to their peaks, by operator: shares with their coverage, or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.core.loading.many import load
from flame.core.options import LoadOptions
from flame.core.projection.filters import Kernel
from flame.core.projection.selection import Selection
from flame.core.report.report import Report
from flame.core.report.scope import Scope
from flame.core.report.table import Section
from tests.support.generated.worked import write_products
from tests.support.paths import ROOT
from tests.support.writers.kinetofile import KinetoFile


def section_of(path: Path, selection: Selection | None = None) -> Section:
    return Report(Scope(load(path), selection or Selection())).section("efficiency")


def rows(section: Section, table: int = 0) -> list[dict[str, object]]:
    found = section.tables[table]
    keys = [column.key for column in found.columns]
    return [dict(zip(keys, row, strict=True)) for row in found.rows]


def test_operators_have_rates_shares_and_a_verdict(tmp_path: Path) -> None:
    found = section_of(write_products(tmp_path / "a.json"))
    (row,) = rows(found)
    assert row == {
        "operator": "aten::mm",
        "ns": 60_000,
        "percent": 80.0,
        "kernels": 3,
        "flops": 51_539_607_552,
        "bytes": 88_080_384,
        "tflops": 858.993,
        "gb_per_s": 1468.006,
        "compute_percent": 86.82,
        "bandwidth_percent": 43.821,
        "bound_percent": 86.82,
        "rated_percent": 100.0,
        "waste_ns": 7908,
        "verdict": "compute-bound",
    }
    assert {key: found.facts[key] for key in ("percent", "rated_percent", "compute_percent")} == {
        "percent": 80.0,
        "rated_percent": 80.0,
        "compute_percent": 86.82,
    }
    assert "in all 87 % of BF16 peak over 80 % of kernel time" in found.notes
    (peak,) = rows(found, 1)
    assert (peak["precision"], peak["tflops"], peak["gb_per_s"]) == ("bf16", 989.4, 3350.0)


def shaped(path: Path, types: bool) -> Path:
    """Two products of one shape, the second of which launches two kernels, and one of another."""
    file = KinetoFile()
    told = {"Input_type": ["float", "float"]} if types else {}
    for at, corrs, wide in ((0, [1], 4), (1_000, [2, 3], 4), (2_000, [4], 8)):
        file.op("aten::matmul", at, at + 100, Input_Dims=[[2, 3], [3, wide]])
        file.op("aten::mm", at + 10, at + 90, Input_Dims=[[2, 3], [3, wide]], **told)
        for corr in corrs:
            begin, run = at + 10 + 10 * corr, at + 200 * corr
            file.launch(corr, (begin, begin + 5), (run, run + 52))
    file.launch(5, (3_000, 3_010), (3_100, 3_200))
    return file.write(path / "trace.pt.trace.json")


def test_operators_are_told_by_shapes_and_types_too(tmp_path: Path) -> None:
    one, other = rows(section_of(shaped(tmp_path, types=True)), 2)
    least = 4 * (6 + 12 + 8)
    assert (one["operator"], one["shapes"], one["types"]) == ("aten::mm", "2×3, 3×4", "float")
    assert (one["ns"], one["kernels"], one["least_bytes"], one["bytes"]) == (
        *(156, 3),
        *(least, 2 * least),
    )
    assert one["gb_per_s"] == round(2 * least / 156, 3)
    assert (other["shapes"], other["ns"], other["kernels"]) == ("2×3, 3×8", 52, 1)


def test_types_that_were_not_recorded_are_told_by_the_user(tmp_path: Path) -> None:
    path = shaped(tmp_path, types=False)
    plain = section_of(path)
    assert all("types" not in row and "bytes" not in row for row in rows(plain, 2))
    assert "types of some inputs were not recorded: --dtype bf16 says what they are" in plain.notes
    typed = Report(Scope(load(path, LoadOptions(dtype="bf16")), dtype="bf16")).section("efficiency")
    one, _ = rows(typed, 2)
    assert (one["types"], one["least_bytes"]) == ("bf16", 2 * 26)
    assert "types of some inputs were not recorded: taken for bf16" in typed.notes


def test_it_is_of_what_passes(tmp_path: Path) -> None:
    path = write_products(tmp_path / "a.json")
    assert section_of(path, Selection(where=(Kernel("gemm"),))).facts["rated_percent"] == 100.0
    none = section_of(path, Selection(where=(Kernel("add"),)))
    assert not rows(none) and none.notes == (
        "nothing that passes is of an operator with a formula",
    )


def test_no_share_stands_where_no_peak_is_known(tmp_path: Path) -> None:
    found = section_of(write_products(tmp_path / "a.json", "Some GPU"))
    for table in (0, 2):
        (row,) = rows(found, table)
        assert row["tflops"] == 858.993 and "verdict" not in row
        assert not [key for key in row if key.endswith("_percent") or key == "waste_ns"]
    assert any("--peak" in note for note in found.notes)


def test_without_shapes_it_says_how_to_record_them(tmp_path: Path) -> None:
    file = KinetoFile()
    file.op("aten::mm", 1000, 1900)
    file.runtime(1, 1010, 1020)
    file.kernel("gemm", 2000, 3000, 1)
    found = section_of(file.write(tmp_path / "a.json"))
    assert not found.available and "record_shapes=True" in found.how


@pytest.mark.parametrize(
    ("name", "covered"), [("h100_bert_small", 76.5), ("h100_qwen_python", 25.5)]
)
def test_real_traces_are_covered_as_far_as_is_known(name: str, covered: float) -> None:
    path = ROOT.parent / "shared" / "traces" / "kineto" / f"{name}.json.gz"
    if not path.exists():
        pytest.skip("the shared traces are not there")
    assert section_of(path).facts["percent"] == pytest.approx(covered, abs=0.05)
