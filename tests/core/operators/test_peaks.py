"""Peaks of GPUs: from their data sheets, else from the user, else from nobody."""

from __future__ import annotations

import pytest

from flame.core.errors import UsageError
from flame.core.model.meta import Device, DeviceFacts
from flame.core.operators.gpu_table import ROWS, GpuRow
from flame.core.operators.peaks import find_peak, find_row
from flame.core.operators.work import WorkOptions
from flame.core.operators.work_options import read_work_options

NOTHING = WorkOptions()

NARROW = (
    *("V100-SXM2-16GB", "V100-PCIE-16GB", "T4", "AMD Instinct MI250X"),
    *("A100-SXM4-40GB", "A100 80GB PCIe", "A100-SXM4-80GB"),
)
"""Rows whose multiprocessors do 128 FLOPs in FP32 per cycle; the others do 256."""

CLOSE = 0.013
"""How far data sheets are from what their own clocks say: they round, and clocks are rounded."""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.names[0])
def test_every_row_is_what_its_multiprocessors_can_do_at_its_clock(row: GpuRow) -> None:
    assert row.sms * row.clock * row.per_cycle / 1e6 == pytest.approx(row.fp16, rel=CLOSE)
    assert row.bf16 in (None, row.fp16)
    fp32 = 128 if row.names[0] in NARROW else 256
    assert row.sms * row.boost * fp32 / 1e6 == pytest.approx(row.fp32, rel=CLOSE)
    # AMD's matrix units multiply FP32 at a quarter of the rate of FP16 where they have no TF32.
    fast = row.fp16 / (4 if row.names == ("AMD Instinct MI250X",) else 2)
    assert row.fast_fp32 in (None, pytest.approx(fast, rel=CLOSE))
    assert row.fp8 is None or row.fp8 == pytest.approx(2 * row.fp16, rel=CLOSE)
    assert row.clock <= row.boost
    assert row.source
    # A ridge of a few hundred FLOPs per byte: what is off is in another unit.
    assert 50 < row.fp16 * 1e3 / row.gb_per_s < 430


def test_no_name_is_of_two_rows() -> None:
    names = [name for row in ROWS for name in row.names]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("name", "bf16", "gb_per_s"),
    [
        ("NVIDIA H100 80GB HBM3", 989.4, 3350),
        ("NVIDIA H100 PCIe", 756, 2000),
        ("NVIDIA A100-SXM4-40GB", 312, 1555),
        ("A100-SXM4-40GB", 312, 1555),
        ("NVIDIA A100 80GB PCIe", 312, 1935),
        ("NVIDIA A100-SXM4-80GB", 312, 2039),
        ("NVIDIA GeForce RTX 4090", 165.2, 1008),
        ("NVIDIA B200", 2250, 8000),
        ("AMD Instinct MI300X", 1307.4, 5300),
    ],
)
def test_gpus_are_found_by_their_names(name: str, bf16: float, gb_per_s: float) -> None:
    peak = find_peak(Device(0, name), NOTHING)
    assert peak is not None
    assert (peak.tflops["bf16"], peak.bandwidth) == (bf16, gb_per_s * 1e9)
    assert peak.source and peak.bandwidth_source == peak.source


@pytest.mark.parametrize(
    "device",
    [
        Device(0, ""),
        Device(0, "NVIDIA A100-SXM4-40GB MIG 1g.5gb"),
        Device(0, "NVIDIA GeForce RTX 4090 Laptop GPU"),
        Device(0, "NVIDIA GeForce RTX 4090 D"),
        Device(0, "NVIDIA A10G"),
        Device(0, "NVIDIA H100 80GB HBM3", facts=DeviceFacts(sms=66)),
        Device(0, "NVIDIA H100 80GB HBM3", facts=DeviceFacts(memory=10 * 10**9)),
    ],
)
def test_slices_and_boards_that_are_only_called_alike_have_no_peak(device: Device) -> None:
    assert find_row(device) is None
    assert find_peak(device, NOTHING) is None


def test_a_gpu_in_no_row_has_what_its_multiprocessors_do_at_their_clock() -> None:
    facts = DeviceFacts("", 68, 10**10, 760 * 10**9, "8.6", 1_710_000_000)
    geforce = find_peak(Device(0, "NVIDIA GeForce RTX 3080", facts=facts), NOTHING)
    other = find_peak(Device(0, "NVIDIA RTX A5000", facts=facts), NOTHING)
    assert geforce is not None and other is not None
    assert geforce.tflops == pytest.approx({"fp16": 59.535, "bf16": 59.535}, rel=1e-4)
    assert other.tflops["bf16"] == 2 * geforce.tflops["bf16"]
    assert (geforce.source, geforce.bandwidth_source) == ("its clock", "the trace")
    turing = DeviceFacts("", 72, None, None, "7.5", 1_770_000_000)
    peak = find_peak(Device(0, "NVIDIA TITAN RTX", facts=turing), NOTHING)
    assert peak is not None and list(peak.tflops) == ["fp16"]
    for capability in ("", "6.1", "12.0"):
        facts = DeviceFacts("", 72, None, None, capability, 1_770_000_000)
        assert find_peak(Device(0, "NVIDIA X", facts=facts), NOTHING) is None
    part = DeviceFacts("", 108, None, None, "8.0", 1_410_000_000)
    assert find_peak(Device(0, "NVIDIA A100-SXM4-40GB MIG 1g.5gb", facts=part), NOTHING) is None


def test_a_v100_multiplies_fp32_in_one_way_and_no_bf16() -> None:
    peak = find_peak(Device(0, "Tesla V100-SXM2-16GB"), NOTHING)
    assert peak is not None and "bf16" not in peak.tflops
    assert peak.tflops_by_place(fast=True) == peak.tflops_by_place(fast=False)
    assert peak.ridge("fp16") == 125e12 / 900e9
    assert peak.ridge("bf16") is None


def test_the_user_goes_before_the_table_and_the_trace() -> None:
    gpu = Device(0, "NVIDIA H100 80GB HBM3", facts=DeviceFacts(bandwidth=3_352_320_000_000))
    told = find_peak(gpu, NOTHING)
    assert told is not None
    assert (told.bandwidth, told.bandwidth_source) == (3_352_320_000_000, "the trace")
    peak = find_peak(gpu, read_work_options("bf16=800,mem=3000", None, None))
    assert peak is not None
    assert (peak.tflops["bf16"], peak.tflops["fp8"], peak.bandwidth) == (800, 1978.9, 3e12)
    assert peak.source.startswith("--peak, NVIDIA")
    unknown = find_peak(Device(0), read_work_options("fp16=65.5", None, None))
    assert unknown is not None
    assert (dict(unknown.tflops), unknown.bandwidth) == ({"fp16": 65.5}, 0)


@pytest.mark.parametrize(
    "text",
    ["", "bf16", "bf16=", "bf16=x", "bf16=0", "bf16=-1", "bf15=3", "bf16=1,,mem=2", "mem=1e3"],
)
def test_what_is_no_peak_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError, match=r"--peak: '.*' is not one of bf16, fp16") as error:
        read_work_options(text, None, None)
    assert "\n" not in str(error.value)


def test_types_and_flops_of_the_model_are_read() -> None:
    found = read_work_options(None, "bf16", "6.2e15")
    assert (found.dtype, found.model_flops) == ("bf16", 6_200_000_000_000_000)
    for text in ("0", "-3", "many", "1e99", "inf"):
        with pytest.raises(UsageError, match="--model-flops: "):
            read_work_options(None, None, text)
    with pytest.raises(UsageError, match="--dtype b16: use a type"):
        read_work_options(None, "b16", None)
