"""Write the traces of many ranks of one training run, whose truth is known.

Every rank is an export of Nsight Systems with one process and one GPU, whose clock is off by some
milliseconds. In every step each layer runs some kernels and an all-reduce, which ends on all ranks
at the same time: who comes last waits for nobody. Faults can be planted.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from samples.nsys_schema import (
    NEWEST_VERSION,
    PUSH_POP,
    RUNTIME_API,
    TABLES_2026,
    VM_ID,
    create_sql,
    gpid,
    gtid,
    required,
)

KERNELS = (
    ("sm90_xmma_gemm_qkv", 60_000, "attn"),
    ("flash_fwd_kernel", 90_000, "attn"),
    ("sm90_xmma_gemm_o", 30_000, "attn"),
    ("sm90_xmma_gemm_mlp_up", 120_000, "mlp"),
    ("silu_and_mul_kernel", 12_000, "mlp"),
    ("sm90_xmma_gemm_mlp_down", 110_000, "mlp"),
    ("rms_norm_kernel", 6_000, "norm"),
    ("rotary_kernel", 5_000, "attn"),
)
"""What a layer runs: name, usual duration in ns, and module."""

COLLECTIVE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
ODD_KERNEL = "fallback_gemm_cublaslt_legacy"

SLOWER, STALL, ODD_TIME = 1.25, 400_000, 777_000
"""How much slower the straggler's `mlp` is, how long the host stalls, and what the odd one runs."""

_TRANSFER, _BEGIN = 150_000, 5_000_000
_UNIX = 1_790_000_000_000_000_000
_KERNEL, _CALL = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"

F8 = NDArray[np.float64]


class RankRun(NamedTuple):
    """The files of the ranks, and the truth of them.

    ``clocks`` is how far each clock is ahead, ns. ``waits`` is how long each rank waited in
    collectives, to 2 ns for each of these; ``last`` how often it was the last one. There are
    ``collectives`` of each rank.
    """

    paths: list[Path]
    clocks: list[int]
    waits: list[int]
    last: list[int]
    collectives: int


class _Layer(NamedTuple):
    """What all ranks do in a layer: f8[kernels, ranks], f8[ranks] and the end of the collective."""

    number: int
    starts: F8
    durations: F8
    arrivals: F8
    end: float


class _Step(NamedTuple):
    begin: F8
    layers: list[_Layer]
    end: F8


def write_ranks(
    folder: Path,
    ranks: int = 8,
    steps: int = 4,
    layers: int = 4,
    seed: int = 1,
    *,
    straggler: int | None = None,
    late: int | None = None,
    odd: int | None = None,
) -> RankRun:
    """Write ``rank0000.sqlite`` and so on into ``folder``.

    The `mlp` of the rank ``straggler`` is slower, the host of ``late`` stalls before every third
    step, and ``odd`` runs a kernel that no other rank has.
    """
    folder.mkdir(parents=True, exist_ok=True)
    run = _run(ranks, steps, layers, seed, straggler, late)
    clocks = np.random.default_rng(seed + 99).integers(-3_000_000, 3_000_000, ranks).tolist()
    paths = [folder / f"rank{rank:04}.sqlite" for rank in range(ranks)]
    for rank, path in enumerate(paths):
        _write(path, rank, run, clocks[rank], rank == odd)
    arrivals = np.array([layer.arrivals for step in run for layer in step.layers])
    latest = arrivals.max(axis=1, keepdims=True)
    return RankRun(
        paths,
        clocks,
        np.rint(latest - arrivals).sum(axis=0).astype(int).tolist(),
        np.bincount(arrivals.argmax(axis=1), minlength=ranks).tolist(),
        len(arrivals),
    )


def _run(
    ranks: int, steps: int, layers: int, seed: int, straggler: int | None, late: int | None
) -> list[_Step]:
    """When all ranks do what, on one clock."""
    rng = np.random.default_rng(seed)
    now, run = np.full(ranks, float(_BEGIN)), []
    for number in range(steps):
        begin = now.copy()
        now += rng.exponential(20_000, ranks)
        if late is not None and number % 3 == 0:
            now[late] += STALL
        done = []
        for layer in range(layers):
            done.append(_layer(layer, now, rng, straggler))
            now = np.full(ranks, done[-1].end) + rng.exponential(2_000, ranks) + 1_000
        run.append(_Step(begin, done, now.copy()))
    return run


def _layer(number: int, now: F8, rng: np.random.Generator, straggler: int | None) -> _Layer:
    starts, durations = [], []
    for _, usual, module in KERNELS:
        duration = usual * rng.lognormal(0, 0.02, len(now))
        if straggler is not None and module == "mlp":
            duration[straggler] *= SLOWER
        starts.append(now.copy())
        durations.append(np.rint(duration))
        now = now + durations[-1] + 1_500
    end = now.max() + _TRANSFER * rng.lognormal(0, 0.05)
    return _Layer(number, np.array(starts), np.array(durations), now, float(end))


class _Rows:
    """Collects the rows of one rank."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.tables: dict[str, list[dict[str, object]]] = {
            name: [] for name in (_KERNEL, _CALL, "NVTX_EVENTS")
        }
        self.strings: dict[str, int] = {}

    def text(self, text: str) -> int:
        return self.strings.setdefault(text, len(self.strings) + 1)

    def kernel(self, start: float, end: float, name: str, stream: int) -> None:
        """Add a kernel and the call that launched it."""
        begin, correlation = int(start), len(self.tables[_KERNEL]) + 1
        self.tables[_CALL].append(
            {
                "start": begin - 4_000,
                "end": begin - 1_500,
                "eventClass": RUNTIME_API,
                "globalTid": gtid(self.pid, self.pid),
                "correlationId": correlation,
                "nameId": self.text("cudaLaunchKernel_v7000"),
            }
        )
        self.tables[_KERNEL].append(
            {
                "start": begin,
                "end": int(end),
                "deviceId": 0,
                "contextId": 1,
                "streamId": stream,
                "correlationId": correlation,
                "globalPid": gpid(self.pid),
                "demangledName": self.text(f"{name}(params)"),
                "shortName": self.text(name),
                **dict.fromkeys(("gridY", "gridZ", "blockY", "blockZ"), 1),
                "gridX": 128,
                "blockX": 256,
                "registersPerThread": 64,
            }
        )

    def range(self, start: float, end: float, text: str) -> None:
        """Add a range around what is launched from ``start`` to ``end``."""
        self.tables["NVTX_EVENTS"].append(
            {
                "start": int(start) - 5_000,
                "end": int(end),
                "eventType": PUSH_POP,
                "globalTid": gtid(self.pid, self.pid),
                "text": text,
                "domainId": 0,
            }
        )


def _write(path: Path, rank: int, run: Sequence[_Step], clock: int, odd: bool) -> None:
    rows = _Rows(4000 + rank % 8)
    for step in run:
        for layer in step.layers:
            _add_layer(rows, layer, rank)
        rows.range(step.begin[rank], step.end[rank] - 6_000, "step")
    if odd:
        begin = run[-1].end[rank] + 50_000
        rows.kernel(begin, begin + ODD_TIME, ODD_KERNEL, 7)
    _write_rows(path, rows, clock)


def _add_layer(rows: _Rows, layer: _Layer, rank: int) -> None:
    name = f"model.layers.{layer.number}"
    for (kernel, _, module), starts, durations in zip(
        KERNELS, layer.starts, layer.durations, strict=True
    ):
        start = starts[rank]
        rows.range(start, start - 1_000, f"{name}.{module}")
        rows.kernel(start, start + durations[rank], kernel, 7)
    arrival = layer.arrivals[rank]
    rows.range(arrival, arrival - 1_000, f"{name}.allreduce")
    rows.kernel(arrival, layer.end, COLLECTIVE, 20)


def _write_rows(path: Path, rows: _Rows, clock: int) -> None:
    path.unlink(missing_ok=True)
    file = sqlite3.connect(path)
    file.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA page_size=4096")
    for table, columns in TABLES_2026.items():
        file.execute(create_sql(table, columns))
    for table, found in rows.tables.items():
        usual = required(TABLES_2026[table])
        names = [*{**usual, **found[0]}]
        slots = ",".join("?" * len(names))
        file.executemany(
            f"INSERT INTO {table} ({','.join(names)}) VALUES ({slots})",
            [[row.get(name, usual.get(name)) for name in names] for row in found],
        )
    texts = [(number, text) for text, number in rows.strings.items()]
    file.executemany("INSERT INTO StringIds VALUES (?, ?)", texts)
    file.execute("INSERT INTO PROCESSES VALUES (?, ?, 'python')", (gpid(rows.pid), rows.pid))
    insert = "INSERT INTO"
    file.execute(
        f"{insert} META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', ?)", (NEWEST_VERSION,)
    )
    file.execute(
        f"{insert} TARGET_INFO_SESSION_START_TIME (utcEpochNs) VALUES (?)", (_UNIX + clock,)
    )
    file.execute(f"{insert} TARGET_INFO_GPU (vmId, id, name) VALUES (?, 0, 'H100')", (VM_ID,))
    file.commit()
    file.close()
