"""What ``flame info`` and the printed view say of work: shares with their coverage, or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.console.print_view import view
from flame.console.work_info import work_facts, work_lines
from flame.core.loading.many import load
from flame.core.options import LoadOptions
from flame.core.projection.selection import select
from tests.support.generated.worked import H100, product
from tests.support.writers.kinetofile import KinetoFile

FLOPS = 2 * 4096 * 1024 * 2048
"""At 989.4 TFLOP/s these take 17.4 µs."""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Three products of 20 µs in a step of 300 µs, and a kernel of 15 µs that is none."""
    return products(tmp_path / "a.json", H100)


def products(path: Path, device: str, dtype: str = "c10::BFloat16", ns: int = 20_000) -> Path:
    file = KinetoFile()
    file.device(0, device)
    file.annotation("ProfilerStep#1", 0, 300_000)
    for number in range(4):
        at = 1000 + 70_000 * number
        name = "aten::mm" if number else "aten::add"
        file.op(name, at, at + 900, **product(4096, 1024, 2048, dtype))
        file.runtime(number + 1, at + 10, at + 20)
        file.kernel("k", at + 1000, at + 1000 + (ns if number else 15_000), number + 1)
    return file.write(path)


def test_the_whole_says_what_share_of_which_time_it_is_of(trace: Path) -> None:
    assert work_lines(load(trace, LoadOptions(model_flops="5e10")), 300) == [
        "operators with a formula, 80.0 % of kernel time: 51.5 GFLOP, 859 TFLOP/s",
        "86.8 % of compute peak, at least 43.8 % of bandwidth, 86.8 % of the bound, over 80.0 % of "
        "kernel time; 7.91 µs above the bound",
        "verdict: compute-bound",
        "of the wall time of 1 step: HFU 17.4 %, MFU 16.8 %",
        f"peak of {H100} (TFLOP/s): fp16 989.4, bf16 989.4, tf32 494.7, fp32 66.9, fp8 1978.9; "
        "3,350 GB/s; from NVIDIA H100 Tensor Core GPU Architecture whitepaper; bandwidth: NVIDIA "
        "H100 data sheet (nvidia.com/data-center/h100)",
        " GPU time  TFLOP/s  % peak % bandwidth  % bound  verdict         operator",
        "  60.0 µs      859    86.8        43.8     86.8  compute-bound   aten::mm",
    ]


def test_no_share_stands_anywhere_where_the_gpu_is_not_known(tmp_path: Path) -> None:
    profile = load(products(tmp_path / "b.json", "\x1b[31mSome GPU"))
    assert work_lines(profile, 200) == [
        "operators with a formula, 80.0 % of kernel time: 51.5 GFLOP, 859 TFLOP/s",
        "cannot tell: the peak of the GPU for this type is not known",
        "\\x1b[31mSome GPU: no peak known: --peak",
        " GPU time  TFLOP/s  % peak % bandwidth  % bound  verdict         operator",
        "  60.0 µs      859                               –               aten::mm",
    ]
    facts = work_facts(profile)
    assert facts is not None
    assert [facts[key] for key in facts if key.endswith("_share")] == [None] * 3
    assert facts["steps"] is None and facts["waste_ns"] is None and facts["verdict"] is None


def test_types_without_a_peak_leave_shares_empty(tmp_path: Path) -> None:
    facts = work_facts(load(products(tmp_path / "c.json", "Tesla V100-SXM2-16GB")))
    assert facts is not None
    assert facts["flops"] == 3 * FLOPS and facts["compute_share"] is None


def test_fp32_has_both_shares_and_no_verdict_where_they_would_differ(tmp_path: Path) -> None:
    facts = work_facts(load(products(tmp_path / "d.json", H100, "float", 60_000)))
    assert facts is not None
    assert facts["compute_share"] == pytest.approx(100 * FLOPS / 66.9e12 / 60e-6, rel=1e-3)
    assert facts["compute_share_tf32"] == pytest.approx(100 * FLOPS / 494.7e12 / 60e-6, rel=1e-3)
    assert facts["verdict"] is None
    assert facts["why_not"] == "whether FP32 was multiplied in TF32 is not recorded"


def test_json_has_the_peaks_and_their_sources(trace: Path) -> None:
    facts = work_facts(load(trace, LoadOptions(peak="bf16=900")))
    assert facts is not None
    assert facts["peaks"] == [
        {
            "device": 0,
            "source_file": 0,
            "name": H100,
            "tflops": {"bf16": 900.0, "fp16": 989.4, "fp32": 66.9, "fp8": 1978.9, "tf32": 494.7},
            "memory_bytes_per_s": 3350e9,
            "source": "--peak, NVIDIA H100 Tensor Core GPU Architecture whitepaper; bandwidth: "
            "NVIDIA H100 data sheet (nvidia.com/data-center/h100)",
            "memory_source": "NVIDIA H100 Tensor Core GPU Architecture whitepaper; bandwidth: "
            "NVIDIA H100 data sheet (nvidia.com/data-center/h100)",
        }
    ]
    assert (facts["covered_ns"], facts["kernel_ns"], facts["covered_percent"]) == (
        60_000,
        75_000,
        80.0,
    )
    assert (facts["flops"], facts["verdict"]) == (3 * FLOPS, "compute-bound")


def test_what_was_not_recorded_is_said(tmp_path: Path) -> None:
    file = KinetoFile()
    args = product(4, 4, 4)
    del args["Input_Strides"]
    file.op("aten::mm", 0, 100, **args)
    file.launch(1, (10, 20), (30, 40))
    lines = work_lines(load(file.write(tmp_path / "old.json")), 200)
    assert "strides were not recorded: tensors are taken for dense" in lines
    del args["Input_type"]
    file.op("aten::mm", 1000, 1100, **args)
    path, hint = file.write(tmp_path / "older.json"), "types were not recorded: --dtype bf16"
    assert [line for line in work_lines(load(path), 200) if line.startswith(hint)]
    typed = work_lines(load(path, LoadOptions(dtype="bf16")), 200)
    assert not [line for line in typed if line.startswith(hint)]


def test_the_printed_view_tells_of_what_it_shows(trace: Path) -> None:
    profile = load(trace)
    shown = view(profile, select(levels="nvtx,kernel"), "a.json", 120)
    assert "operators with a formula, 80.0 % of kernel time: 51.5 GFLOP" in shown
    host = view(profile, select(metric="host"), "a.json", 120)
    assert "FLOP" not in host


def test_traces_without_shapes_say_nothing_of_it(tmp_path: Path) -> None:
    file = KinetoFile()
    file.op("aten::mm", 0, 100)
    file.launch(1, (10, 20), (30, 40))
    profile = load(file.write(tmp_path / "e.json"))
    assert work_facts(profile) is None and work_lines(profile, 100) == []
