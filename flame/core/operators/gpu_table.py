"""List what GPUs can do at most, by their makers' data sheets.

Dense, on the matrix units, summed in FP32; sparse figures, which are twice as high, are halved.
Tables of peaks in circulation have sparse values as dense ones, and bandwidths of other boards:
take rows from the data sheet alone, and name it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Verification(StrEnum):
    """Say what the figures of a row were compared with.

    ``COPY``: with what others quote from the document that it names, as NVIDIA's TensorRT-LLM and
    resellers do; ``CLOCK``: with nothing but its multiprocessors and clocks. The documents
    themselves were at hand for no row.
    """

    COPY = "copy"
    CLOCK = "clock"


class GpuRow(NamedTuple):
    """Say what the GPU can do that is called ``names``: peaks in TFLOP/s, ``gb_per_s`` of memory.

    None is what it cannot do, or its data sheet does not say. ``fast_fp32`` are FP32 products in
    TF32, or on the matrix units. ``sms`` and ``memory`` (GB, from and to) tell it from boards and
    slices that are called alike. ``clock`` is that of its peak, MHz, and ``per_cycle`` the FLOPs of
    an SM in BF16 or FP16: their product is the peak, which is a check of the row. ``boost`` is the
    clock of its peak in FP32, which is higher where matrices take too much power. ``source`` is the
    title of the data sheet, ``checked`` what the figures were compared with.
    """

    names: tuple[str, ...]
    sms: int
    memory: tuple[int, int]
    fp16: float
    bf16: float | None
    fast_fp32: float | None
    fp32: float
    fp8: float | None
    gb_per_s: float
    clock: int
    per_cycle: int
    boost: int
    source: str
    checked: Verification


PER_CYCLE = {
    "7.0": 1024,
    "7.5": 1024,
    "8.0": 2048,
    "8.6": 1024,
    "8.9": 1024,
    "9.0": 4096,
    "10.0": 8192,
}
"""FLOPs of an SM per cycle in FP16 and, from 8.0 on, BF16, by compute capability.

GeForce boards of 7.5, 8.6 and 8.9 have half of that.
"""

_V100 = "NVIDIA V100 data sheet (nvidia-v100-datasheet-1165301)"
_A100 = "NVIDIA A100 data sheet (nvidia-a100-datasheet-us-nvidia-1758950)"
_A100_40 = "NVIDIA A100 40 GB data sheet (nvidia-a100-datasheet, 2020)"
_H100 = "NVIDIA H100 Tensor Core GPU Architecture whitepaper"
_H100_PAGE = "NVIDIA H100 data sheet (nvidia.com/data-center/h100)"
_H200_PAGE = "NVIDIA H200 data sheet (nvidia.com/data-center/h200)"
_ADA = "NVIDIA Ada GPU Architecture whitepaper, appendix A"

ROWS = (
    GpuRow(
        ("V100-SXM2-16GB", "V100-SXM2-32GB"),
        *(80, (16, 35), 125.0, None, None, 15.7, None, 900.0, 1530, 1024, 1530),
        _V100,
        Verification.COPY,
    ),
    GpuRow(
        ("V100-PCIE-16GB", "V100-PCIE-32GB"),
        *(80, (16, 35), 112.0, None, None, 14.0, None, 900.0, 1380, 1024, 1380),
        _V100,
        Verification.COPY,
    ),
    GpuRow(
        ("T4",),
        *(40, (15, 17), 65.0, None, None, 8.1, None, 320.0, 1590, 1024, 1590),
        "NVIDIA T4 data sheet (t4-tensor-core-datasheet-951643)",
        Verification.COPY,
    ),
    GpuRow(
        ("A10",),
        *(72, (22, 26), 125.0, 125.0, 62.5, 31.2, None, 600.0, 1695, 1024, 1695),
        "NVIDIA A10 data sheet (a10-datasheet)",
        Verification.COPY,
    ),
    GpuRow(
        ("A100-SXM4-40GB", "A100-PCIE-40GB"),
        *(108, (39, 44), 312.0, 312.0, 156.0, 19.5, None, 1555.0, 1410, 2048, 1410),
        _A100_40,
        Verification.COPY,
    ),
    GpuRow(
        ("A100 80GB PCIe", "A100-PCIE-80GB"),
        *(108, (79, 88), 312.0, 312.0, 156.0, 19.5, None, 1935.0, 1410, 2048, 1410),
        _A100,
        Verification.COPY,
    ),
    GpuRow(
        ("A100-SXM4-80GB", "A100-SXM-80GB"),
        *(108, (79, 88), 312.0, 312.0, 156.0, 19.5, None, 2039.0, 1410, 2048, 1410),
        _A100,
        Verification.COPY,
    ),
    GpuRow(
        ("L4",),
        *(58, (22, 26), 121.0, 121.0, 60.0, 30.3, 242.5, 300.0, 2040, 1024, 2040),
        "NVIDIA L4 data sheet (l4-tensor-datasheet), halved",
        Verification.COPY,
    ),
    GpuRow(
        ("L40S",),
        *(142, (44, 52), 362.05, 362.05, 183.0, 91.6, 733.0, 864.0, 2520, 1024, 2520),
        "NVIDIA L40S data sheet (l40s-datasheet)",
        Verification.COPY,
    ),
    GpuRow(
        ("H100 80GB HBM3", "H100 SXM5 80GB"),
        *(132, (79, 88), 989.4, 989.4, 494.7, 66.9, 1978.9, 3350.0, 1830, 4096, 1980),
        f"{_H100}; bandwidth: {_H100_PAGE}",
        Verification.COPY,
    ),
    GpuRow(
        ("H100 PCIe",),
        *(114, (79, 88), 756.0, 756.0, 378.0, 51.2, 1513.0, 2000.0, 1620, 4096, 1755),
        _H100,
        Verification.COPY,
    ),
    GpuRow(
        ("H100 NVL",),
        *(132, (93, 103), 835.5, 835.5, 417.5, 60.0, 1670.5, 3900.0, 1545, 4096, 1785),
        f"{_H100_PAGE}, halved",
        Verification.CLOCK,
    ),
    GpuRow(
        ("H200",),
        *(132, (139, 156), 989.4, 989.4, 494.7, 66.9, 1978.9, 4800.0, 1830, 4096, 1980),
        f"{_H200_PAGE}, halved",
        Verification.COPY,
    ),
    GpuRow(
        ("H200 NVL",),
        *(132, (139, 156), 835.5, 835.5, 417.5, 60.0, 1670.5, 4800.0, 1545, 4096, 1785),
        f"{_H200_PAGE}, halved",
        Verification.COPY,
    ),
    # Some tables have 80 and 1,100 TFLOP/s in FP32 and TF32: the first is what a GPU of GB200 can
    # do, the second half of the 2.2 PFLOP/s to which the data sheet rounds 18 PFLOP/s of eight.
    GpuRow(
        ("B200",),
        *(148, (178, 200), 2250.0, 2250.0, 1125.0, 75.0, 4500.0, 8000.0, 1850, 8192, 1980),
        "NVIDIA HGX B200 specifications (nvidia.com/data-center/hgx), an eighth, halved; "
        "bandwidth: NVIDIA Blackwell architecture brief (the data sheet has 7.7 TB/s of HGX B200)",
        Verification.COPY,
    ),
    GpuRow(
        ("GeForce RTX 3090",),
        *(82, (23, 27), 71.0, 71.0, 35.6, 35.6, None, 936.0, 1695, 512, 1695),
        "NVIDIA Ampere GA102 GPU Architecture whitepaper, appendix A",
        Verification.CLOCK,
    ),
    GpuRow(
        ("GeForce RTX 4090",),
        *(128, (23, 27), 165.2, 165.2, 82.6, 82.6, 330.3, 1008.0, 2520, 512, 2520),
        _ADA,
        Verification.COPY,
    ),
    GpuRow(
        ("GeForce RTX 5090",),
        *(170, (31, 36), 209.5, 209.5, 104.8, 104.8, 419.0, 1792.0, 2407, 512, 2407),
        "NVIDIA RTX Blackwell GPU Architecture whitepaper, appendix A",
        Verification.COPY,
    ),
    GpuRow(
        ("AMD Instinct MI250X",),
        *(110, (62, 71), 191.5, 191.5, 47.9, 23.9, None, 1638.4, 1700, 1024, 1700),
        "AMD Instinct MI250X specifications (amd.com), a half: a device is one of two dies",
        Verification.COPY,
    ),
    GpuRow(
        ("AMD Instinct MI300X",),
        *(304, (190, 210), 1307.4, 1307.4, 653.7, 163.4, 2614.9, 5300.0, 2100, 2048, 2100),
        "AMD Instinct MI300X data sheet (amd-instinct-mi300x-data-sheet)",
        Verification.COPY,
    ),
)
"""GeForce boards sum in FP32 at half the rate: with FP16 sums they are twice as fast."""
