"""What the details say of the work of operators: shares with their coverage, or why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.core.loading.many import load
from flame.core.projection.selection import Selection
from flame.tui.details.blocks.work_blocks import work_lines, work_words
from flame.tui.details.facts import Facts, collect
from flame.tui.session.session import project
from tests.support.generated.worked import H100, write_products
from tests.support.writers.kinetofile import KinetoFile
from tests.tui.trees import node


def facts_of(path: Path, name: str, **selected: str) -> Facts:
    shown = project(load(path), Selection(levels=("kernel",), **selected))  # type: ignore[arg-type]
    tree = shown.view.tree
    *_, facts = collect(shown, tree, node(tree, name) if name else 0)
    return facts


def texts(facts: Facts) -> list[str]:
    return [
        "".join(piece.text for piece in line)
        for block in work_lines(facts.work, 300)
        for line in block
    ]


def test_a_kernel_says_how_near_it_is_to_which_peak(tmp_path: Path) -> None:
    facts = facts_of(write_products(tmp_path / "a.json"), "gemm")
    assert texts(facts) == [
        "work        51.5 GFLOP, 88.1 MB at least",
        "rate        859 TFLOP/s, 1.47 TB/s over 100.0 % of kernel time",
        "intensity   585.1 FLOP/byte, ridge 295",
        "of peak     86.8 % compute, at least 43.8 % bandwidth, 86.8 % of bound over 100.0 % of "
        "kernel time",
        "above bound 7.91 µs",
        "verdict     compute-bound",
        "GPU peak    989.4 TFLOP/s BF16, 3.35 TB/s: NVIDIA H100 Tensor Core GPU Architecture "
        "whitepaper; bandwidth: NVIDIA H100 data sheet (nvidia.com/data-center/h100)",
        "work by shapes, of 1: time, % of bound",
        "100.0 %   86.8 %  mm 4096×1024, 1024×2048",
    ]


def test_all_say_of_which_part_of_the_time_shares_are(tmp_path: Path) -> None:
    found = [*work_words(facts_of(write_products(tmp_path / "a.json"), "").work)]
    assert found == ["859 TFLOP/s", "86.8 % of bound over 80.0 % of kernel time", "compute-bound"]


@pytest.mark.parametrize(
    ("device", "dtype", "peak", "verdict"),
    [
        ("Some GPU", "c10::BFloat16", None, "the peak of the GPU for this type is not known"),
        (H100, "float", "12–86 % compute", "whether FP32 was multiplied in TF32"),
    ],
)
def test_what_cannot_be_told_says_why(
    tmp_path: Path, device: str, dtype: str, peak: str | None, verdict: str
) -> None:
    lines = texts(facts_of(write_products(tmp_path / "a.json", device, dtype, 300_000), "gemm"))
    of_peak = [line for line in lines if line.startswith("of peak")]
    assert (peak in of_peak[0]) if peak else not of_peak
    assert any(line.startswith("verdict     cannot tell: ") and verdict in line for line in lines)


def test_attention_with_a_mask_says_so(tmp_path: Path) -> None:
    file = KinetoFile()
    file.device(0, H100)
    inputs = {
        "Input_Dims": [[8, 16, 2048, 64]] * 3,
        "Input_type": ["c10::BFloat16"] * 3,
        "Concrete_Inputs": ["", "", "", "0.", "True", "False", ""],
    }
    file.op("aten::_scaled_dot_product_flash_attention", 1000, 1900, **inputs)
    file.runtime(1, 1010, 1020)
    file.kernel("flash", 2000, 502_000, 1)
    lines = texts(facts_of(file.write(tmp_path / "a.json"), "flash"))
    assert any(line.startswith("causal      100.0 % of that time") for line in lines)


def test_what_has_no_formula_or_is_no_time_of_gpus_says_nothing(tmp_path: Path) -> None:
    path = write_products(tmp_path / "a.json")
    assert facts_of(path, "add").work is None
    assert facts_of(path, "", metric="host").work is None
