"""Traces of operators with shapes, at random: what they launch is one kernel or several."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from flame.core.efficiency.sums import count_operators, whole_of
from flame.core.efficiency.work_counts import WorkCounts
from flame.core.model.profile import Profile
from flame.core.projection.filters import Filter
from flame.core.projection.weights import row_indices
from tests.support.writers.kinetofile import KinetoFile
from tests.support.writers.nsysfile import NsysFile

H100 = "NVIDIA H100 80GB HBM3"
BF16 = "c10::BFloat16"


def product(m: int, k: int, n: int, dtype: str = BF16) -> dict[str, Any]:
    """The arguments of ``aten::mm``."""
    return {
        "Input_Dims": [[m, k], [k, n]],
        "Input_type": [dtype, dtype],
        "Input_Strides": [[k, 1], [n, 1]],
        "Concrete_Inputs": ["", ""],
    }


@dataclass(frozen=True)
class Call:
    """A call of an operator: its name, arguments, thread, and the lengths of its kernels, ns.

    It may be ``inside`` another one that has a formula, or one without, or none. Kernels of `TALKS`
    ns are collectives.
    """

    name: str
    args: dict[str, Any]
    tid: int
    kernels: tuple[int, ...]
    inside: tuple[str, dict[str, Any]] | None


ALL_REDUCE, TALKS = (
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    900,
)
"""A kernel that moves data between GPUs, and how long each of them takes in ns: no other does."""

sizes = st.integers(1, 3000)
_mm = st.builds(product, sizes, sizes, sizes, st.sampled_from([BF16, BF16, "float", "mystery"]))
_attention = st.builds(
    lambda batch, length, causal: {
        "Input_Dims": [[batch, 2, length, 8]] * 3,
        "Input_type": [BF16] * 3,
        "Concrete_Inputs": ["", "", "", "0.", str(causal), "False", ""],
    },
    st.integers(1, 4),
    st.integers(1, 64),
    st.booleans(),
)
_ATTENTION = "aten::_scaled_dot_product_flash_attention"
_outer = st.one_of(
    st.none(),
    st.just(("aten::linear", {"Input_Dims": [[4, 4], [4, 4]], "Input_type": [BF16, BF16]})),
    st.tuples(st.just("aten::mm"), _mm),
)
_operators = st.one_of(
    st.tuples(st.just("aten::mm"), _mm),
    st.tuples(st.just(_ATTENTION), _attention),
    st.tuples(st.just("aten::add"), _mm),
    st.tuples(st.just("aten::mm"), st.just({"Input_Dims": [[3, 4], [5, 6]]})),
)
calls = st.lists(
    st.builds(
        lambda operator, *rest: Call(*operator, *rest),
        _operators,
        st.sampled_from([1, 2]),
        st.lists(st.sampled_from([0, 1, 7, TALKS, 20_000]), max_size=4).map(tuple),
        _outer,
    ),
    max_size=8,
)


def write_calls(path: Path, made: list[Call], device: str = H100) -> Path:
    """Write a trace in which ``made`` follow each other, each with its kernels."""
    file, now, correlation = KinetoFile(), 1000, 0
    file.device(0, device)
    gpu = 0
    for call in made:
        begin, now = now, now + 100
        for length in call.kernels:
            correlation += 1
            now += 10
            file.runtime(correlation, now, now + 5, tid=call.tid)
            gpu = max(gpu, now)
            file.kernel(
                ALL_REDUCE if length == TALKS else f"kernel {call.name}",
                *(gpu, gpu + length, correlation),
            )
            gpu += length
        now += 100
        if call.inside is not None:
            name, args = call.inside
            file.op(name, begin, now, tid=call.tid, **args)
        file.op(call.name, begin + 10, now - 10, tid=call.tid, **call.args)
        now += 50
    file.annotation("end", now, now + 10)
    return file.write(path)


def write_products(path: Path, device: str = H100, dtype: str = BF16, ns: int = 20_000) -> Path:
    """Write three products of 20 µs (``ns``), and a kernel of 15 µs that is none.

    At the peak for BF16 each needs 17.4 µs.
    """
    file = KinetoFile()
    file.device(0, device)
    for number in range(4):
        at = 1000 + (50_000 + ns) * number
        name = "aten::mm" if number else "aten::add"
        file.op(name, at, at + 900, **product(4096, 1024, 2048, dtype))
        file.runtime(number + 1, at + 10, at + 20)
        kernel, length = ("gemm", ns) if number else ("add", 15_000)
        file.kernel(kernel, at + 1000, at + 1000 + length, number + 1)
    return file.write(path)


READ, WRITE = "DRAM Read Bandwidth [Throughput %]", "DRAM Write Bandwidth [Throughput %]"
MOVED = 6 * 1024 * 1024
"""Bytes that a product of two matrices of 1024×1024 in BF16 reads and writes."""


def write_sampled(path: Path, runs: list[tuple[str, int, int]], read: int, write: int = 0) -> Path:
    """Write products (``mm``) and other kernels on an H100 whose memory is sampled every 10 µs.

    ``runs`` are names, and when they begin and end, µs; the memory, of 1 TB/s, reads and writes so
    many per cent of that all the time.
    """
    with NsysFile(path) as file:
        file.gpu(0, H100, pid=100)
        file.db.execute("UPDATE TARGET_INFO_GPU SET memoryBandwidth = 1000000000000")
        for number, (name, start, end) in enumerate(runs, 1):
            at = 100 * number
            if name == "mm":
                text = f"aten::mm, op_id = {number}, sizes = [[1024, 1024], [1024, 1024]]"
                file.nvtx(text, at, at + 50)
            file.api("cudaLaunchKernel_v7000", at + 10, at + 20, corr=number)
            file.kernel(name, 1000 * start, 1000 * end, corr=number, stream=number)
        for at in range(0, max(end for *_, end in runs) + 20, 10):
            file.metric(READ, 1000 * at, read)
            file.metric(WRITE, 1000 * at, write)
    return path


def count_whole(profile: Profile, filters: tuple[Filter, ...] = ()) -> WorkCounts | None:
    """The work of all that passes ``filters`` on single activities, one row; None: not told."""
    chosen = row_indices(profile, profile.activities, filters)
    operators = count_operators(profile, chosen)
    return None if operators is None else whole_of(profile, operators, chosen)
