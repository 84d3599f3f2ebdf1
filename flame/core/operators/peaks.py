"""Find the peaks of a GPU, and say where they are from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from flame.core.operators.gpu_table import PER_CYCLE, ROWS, GpuRow
from flame.core.operators.work import WorkOptions

PRECISIONS = ("bf16", "fp16", "fp8", "fp32", "fp64")
"""Types of what is multiplied that a peak may be known for."""

TF32 = "tf32"
"""How FP32 may be multiplied as well: in TF32, or on AMD's matrix units."""

_MAKERS = ("NVIDIA ", "Tesla ")
"""What names of GPUs begin with or not, depending on the driver."""

_GIVEN = "--peak"
_TRACE = "the trace"
_CLOCK = "its clock"
_SLICE = " MIG "
"""In the name of a part of a GPU, of which traces may tell the multiprocessors of the whole."""

_BF16 = 8
"""Compute capability from which on there is BF16."""


class DevicePeak(NamedTuple):
    """Say what a GPU can do at most.

    ``tflops`` are peaks by precision, TFLOP/s; ``bandwidth`` is that of the memory in bytes/s, 0
    where it is not known. ``source`` and ``bandwidth_source`` say who says so.
    """

    tflops: Mapping[str, float]
    bandwidth: float
    source: str
    bandwidth_source: str

    def tflops_by_place(self, fast: bool) -> list[float]:
        """List the peaks by place in `PRECISIONS`, 0 where not known.

        ``fast``: that of TF32 for FP32, where it is known.
        """
        found = [self.tflops.get(name, 0.0) for name in PRECISIONS]
        if fast and self.tflops.get("fp32") and self.tflops.get(TF32):
            found[PRECISIONS.index("fp32")] = max(self.tflops[TF32], self.tflops["fp32"])
        return found

    def ridge(self, precision: str) -> float | None:
        """FLOPs per byte from which on the compute peak is the bound; None where not known."""
        peak = self.tflops.get(precision)
        return peak * 1e12 / self.bandwidth if peak and self.bandwidth else None


class DeviceProperties(Protocol):
    """Say what is known of a GPU: SMs, memory in bytes, and its bandwidth in bytes/s, or None."""

    @property
    def sms(self) -> int | None:
        """Number of multiprocessors."""
        ...

    @property
    def memory(self) -> int | None:
        """Bytes of memory."""
        ...

    @property
    def bandwidth(self) -> int | None:
        """Bandwidth of the memory, bytes/s."""
        ...

    @property
    def capability(self) -> str:
        """Compute capability of CUDA; empty where it is not known."""
        ...

    @property
    def clock(self) -> int | None:
        """Highest clock of the multiprocessors, Hz."""
        ...


class KnownGpu(Protocol):
    """Name a GPU and say what is known of it, as `Device` does."""

    @property
    def name(self) -> str:
        """Name of the model, as the driver has it."""
        ...

    @property
    def facts(self) -> DeviceProperties:
        """What else is known."""
        ...


def find_peaks(gpus: Sequence[KnownGpu], given: WorkOptions) -> tuple[DevicePeak | None, ...]:
    """Find the peaks of each of ``gpus``, as `find_peak` does."""
    return tuple(find_peak(gpu, given) for gpu in gpus)


def find_peak(gpu: KnownGpu, given: WorkOptions) -> DevicePeak | None:
    """Find the peaks of ``gpu``; None where nothing is known of it.

    What the user has ``given`` goes before the table, and a bandwidth that the trace tells, too.
    """
    row = find_row(gpu)
    known, origin = (_peaks_by_clock(gpu), _CLOCK) if row is None else (row_peaks(row), row.source)
    if not known and not given.tflops and not given.bandwidth:
        return None
    sources = {_GIVEN: given.tflops, origin: known}
    bandwidth, bandwidth_source = 0.0, ""
    if given.bandwidth:
        bandwidth, bandwidth_source = given.bandwidth, _GIVEN
    elif gpu.facts.bandwidth:
        bandwidth, bandwidth_source = float(gpu.facts.bandwidth), _TRACE
    elif row is not None:
        bandwidth, bandwidth_source = row.gb_per_s * 1e9, row.source
    source = ", ".join(name for name, peaks in sources.items() if peaks)
    return DevicePeak({**known, **given.tflops}, bandwidth, source, bandwidth_source)


def _peaks_by_clock(gpu: KnownGpu) -> dict[str, float]:
    """What the multiprocessors of a GPU that is in no row can do at their clock; none unknown.

    It is too much where the chip does not reach its highest clock while it multiplies matrices.
    """
    facts = gpu.facts
    per_cycle = PER_CYCLE.get(facts.capability)
    if per_cycle is None or not facts.sms or not facts.clock or _SLICE in gpu.name:
        return {}
    major = int(facts.capability.partition(".")[0])
    halved = "GeForce" in gpu.name and facts.capability not in ("7.0", "8.0", "9.0", "10.0")
    peak = facts.sms * facts.clock * per_cycle / (2 if halved else 1) / 1e12
    return {"fp16": peak, "bf16": peak} if major >= _BF16 else {"fp16": peak}


def find_row(gpu: KnownGpu) -> GpuRow | None:
    """Find the row of the table that ``gpu`` is, by its name and what else is known of it.

    None for slices of a GPU, boards that are only called alike, and all that are not in it.
    """
    name = gpu.name
    for maker in _MAKERS:
        name = name.removeprefix(maker)
    return next((row for row in ROWS if name in row.names and _fits(row, gpu)), None)


def _fits(row: GpuRow, gpu: KnownGpu) -> bool:
    low, high = row.memory
    sms, memory = gpu.facts.sms, gpu.facts.memory
    return (sms is None or sms == row.sms) and (
        memory is None or low * 10**9 <= memory <= high * 10**9
    )


def row_peaks(row: GpuRow) -> dict[str, float]:
    """List the peaks that ``row`` has, by precision, TFLOP/s."""
    peaks = {
        "fp16": row.fp16,
        "bf16": row.bf16,
        TF32: row.fast_fp32,
        "fp32": row.fp32,
        "fp8": row.fp8,
    }
    return {name: peak for name, peak in peaks.items() if peak}
