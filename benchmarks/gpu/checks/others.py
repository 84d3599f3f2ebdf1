"""flame beside other tools, and with other frameworks than PyTorch."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.gpu.bench import WORKLOADS, Bench
from benchmarks.gpu.check import Check, Finding
from benchmarks.gpu.criteria import hold_count, hold_graphs, hold_recording, share_of
from benchmarks.gpu.recording import Recording, rows_of

WHOLE = 0.9
"""Share of launches that must have run where nothing is said; those of captures never do."""
EVENT_TIMES = 0.02
"""How far a kernel of some ms may differ from what CUDA events say."""
LONGEST_COLD_NS = 5_000
"""What events measure besides a kernel."""


def beside_profiler(bench: Bench) -> Finding:
    """`torch.profiler` in the middle of a recording; whichever loses its kernels says so."""
    found = Finding()
    recording = bench.record(bench.workload("profiler_inside.py", bench.size(20, 50)), code=None)
    said = recording.done.json()
    hold_recording(found, recording)
    found.hold("exit code", recording.done.code == 0, recording.done.code)
    found.tell(kernels_of_profiler=said["kernels"])
    hold_spoken(found, recording)
    return found


def hold_spoken(found: Finding, recording: Recording) -> None:
    """Hold that a recording without many of its kernels has a note: what is wrong is silence."""
    notes, share = recording.notes(), ran(recording)
    found.tell(notes=notes)
    found.hold("whole, or says why not", share >= WHOLE or bool(notes), f"{share:.1%} have run")


def ran(recording: Recording) -> float:
    """Return the share of launches of single kernels that have a kernel."""
    have = []
    for dump in recording.dumps:
        launches, kernels = rows_of(dump, "launch"), rows_of(dump, "kernel")
        single = launches["correlation"][launches["symbol"] != 0]
        have.append(np.isin(single, kernels["correlation"]))
    return share_of(np.concatenate(have))


def stolen(bench: Bench) -> Finding:
    """Another tool registers its own callbacks for records; the recording says so."""
    found = Finding()
    count = bench.size(40, 100)
    recording = bench.record(bench.workload("stealing.py", count), code=None)
    said = recording.done.json()
    found.hold("exit code", recording.done.code == 0, recording.done.code)
    found.tell(**said, kernels=recording.count("kernel"), launches=recording.count("launch"))
    hold_spoken(found, recording)
    return found


def event_times(bench: Bench) -> Finding:
    """Long kernels take as long as CUDA events around them say."""
    found = Finding()
    recording = bench.record(bench.workload("event_times.py", 20))
    wanted = recording.done.json()["kernels_ns"]
    rows = recording.rows("kernel")
    times = sorted((rows["end"] - rows["start"]).tolist())[-len(wanted) :]
    errors = [abs(have - want) for have, want in zip(times, sorted(wanted), strict=True)]
    wrong = [
        error
        for error, want in zip(errors, sorted(wanted), strict=True)
        if error > EVENT_TIMES * want + LONGEST_COLD_NS
    ]
    found.hold("as events", not wrong, f"{len(wrong)} of {len(wanted)}, {max(errors)} ns at most")
    return found


def framework(bench: Bench, program: str) -> Finding:
    """A libcupti is found without PyTorch; there are kernels, and Python stacks."""
    found = Finding()
    hold_recording(found, bench.record(bench.workload(program, bench.size(50, 300))))
    return found


def runtime(bench: Bench, streams: str) -> Finding:
    """CUDA C++ in all its ways, on threads, with child graphs: everything is counted."""
    found = Finding()
    program = str(bench.folder / "runtime_mix")
    source = str(WORKLOADS / "runtime_mix.cu")
    bench.run(
        [
            "nvcc",
            "-std=c++17",
            "-O1",
            "-arch=native",
            f"--default-stream={streams}",
            source,
            "-o",
            program,
        ]
    )
    recording = bench.record([program, str(bench.size(20, 200))])
    said = recording.done.json()
    kernels = recording.rows("kernel")
    hold_count(found, "kernels", len(kernels), said["kernels"])
    hold_count(found, "launched", int((kernels["tid"] != 0).sum()), len(kernels))
    hold_count(found, "copies and sets", len(recording.rows("memop")), said["copies"])
    hold_graphs(found, recording)
    found.tell(dropped=recording.dropped(), counters=recording.counters())
    return found


NEEDS = ("gpu", "library")
NVCC = (*NEEDS, "hardware", "nvcc")
CHECKS = (
    Check(
        "beside-torch-profiler",
        "other tools",
        2,
        beside_profiler,
        (*NEEDS, "torch"),
        90,
        quick=True,
    ),
    Check("stolen-records", "other tools", 2, stolen, NEEDS, 60),
    Check("event-times", "times", 3, event_times, (*NEEDS, "torch"), 60, quick=True),
    Check("jax", "frameworks", 3, partial(framework, program="jax_loop.py"), (*NEEDS, "jax"), 90),
    Check(
        "cupy", "frameworks", 3, partial(framework, program="cupy_loop.py"), (*NEEDS, "cupy"), 90
    ),
    *(
        Check(f"runtime-{streams}", "CUDA C++", 3, partial(runtime, streams=streams), NVCC, 120)
        for streams in ("legacy", "per-thread")
    ),
)
