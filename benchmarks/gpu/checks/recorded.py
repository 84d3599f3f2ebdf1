"""What flame records: launches, stacks, graphs, calls that block, hidden switches."""

from __future__ import annotations

from collections import Counter
from functools import partial

from benchmarks.gpu.bench import NOTHING, ROOT, TRANSFORMER, Bench, Env
from benchmarks.gpu.check import Check, CheckSkippedError, Finding
from benchmarks.gpu.criteria import (
    KERNEL_COUNT,
    hold_count,
    hold_graphs,
    hold_launches,
    hold_recording,
)
from benchmarks.gpu.recording import Recording
from flame.core.model.calls import CallClass, call_class
from flame.core.model.profile import Profile
from samples import workload_transformer as transformer

KERNELS_PER_STEP = 2 * transformer.LAYERS * (8 + 2 + 2) + 2 * transformer.LAYERS * 6
"""Launched by one step of training and one of decoding, where PyTorch is not there."""
ROUNDS, SPARE = 100, 30
"""The runtime may make calls of its own: one context, one pool, one module."""
CLOCK_ERROR = 10_000
"""Clocks of the GPU and of the host may differ by so much, ns."""
CLASSES = {CallClass.SYNC: "waits", CallClass.ALLOC: "allocations"}
THREADS, REPLAYED, UPDATES = 2, 8, 1
"""What samples/workload_streams.cpp launches for each batch."""


def transformed(
    bench: Bench, *options: str, name: str = "recorded", env: Env = NOTHING
) -> Recording:
    """The workload of samples/, recorded."""
    return bench.record([*TRANSFORMER, str(bench.size(10, 50))], *options, name=name, env=env)


def recorded(bench: Bench) -> Finding:
    """Everything is there, of threads and of graphs, and nothing twice."""
    found, recording = Finding(), transformed(bench)
    hold_recording(found, recording)
    hold_graphs(found, recording)
    if any(frame.name == "gemm_kernel" for frame in recording.profile.frames.frames):
        hold_count(
            found, "count", len(recording.rows("kernel")), bench.size(10, 50) * KERNELS_PER_STEP
        )
    return found


def counted(bench: Bench) -> Finding:
    """PyTorch's own profiler, in another run of the same program, counts as many kernels."""
    found, count = Finding(), bench.size(10, 50)
    wanted = bench.run(bench.workload("torch_mix.py", count, "all", "count")).json()
    recording = bench.record(bench.workload("torch_mix.py", count, "all"))
    hold_recording(found, recording)
    hold_graphs(found, recording)
    hold_count(
        found,
        "torch.profiler's count",
        len(recording.rows("kernel")),
        wanted["kernels"],
        KERNEL_COUNT,
    )
    return found


def streams(bench: Bench) -> Finding:
    """A C++ program with threads, copies and graphs: as many kernels as it says, all launched."""
    found, batches = Finding(), bench.size(10, 200)
    program = bench.built("streams", [ROOT / "samples" / "workload_streams.cpp"], "-O1")
    recording = bench.record([str(program), str(batches)])
    kernels, launches = recording.rows("kernel"), recording.rows("launch")
    hold_count(found, "kernels", len(kernels), THREADS * batches * (REPLAYED + UPDATES))
    hold_count(found, "launched", int((kernels["tid"] != 0).sum()), len(kernels))
    found.tell(threads=len(set(launches["tid"].tolist())), copies=len(recording.rows("memop")))
    hold_graphs(found, recording)
    return found


def switched(bench: Bench, env: Env) -> Finding:
    """With a hidden switch of the library: the same kernels, launched as before."""
    found, recording = Finding(), transformed(bench, env=env)
    kernels = recording.rows("kernel")
    found.hold("kernels", len(kernels) > 0, len(kernels))
    hold_launches(found, recording)
    found.tell(seconds=recording.done.seconds, of_graphs=int((kernels["graph"] != 0).sum()))
    found.tell(counters=recording.counters(), dropped=recording.dropped())
    return found


def whole_graphs(bench: Bench) -> Finding:
    """Graphs as a whole, and node by node: what is seen of them, and how long it takes."""
    found = Finding()
    command = [*TRANSFORMER, str(bench.size(10, 50))]
    ways = {way: bench.injected(command, way, {"FLAME_GRAPHS": way}) for way in ("node", "whole")}
    counts = {way: recording.count("kernel") for way, recording in ways.items()}
    found.tell(kernels=counts, seconds={way: one.done.seconds for way, one in ways.items()})
    found.tell(activities=len(ways["whole"].profile.activities.start))
    found.hold("nodes", counts["node"] >= counts["whole"] > 0, counts)
    return found


def blocking(bench: Bench) -> Finding:
    """Calls of the runtime that wait, allocate or free are seen as the driver's: all, and once."""
    found = Finding()
    script = str(ROOT / "benchmarks" / "blocking_calls.py")
    recording = bench.record([bench.workload("")[0], script, str(ROUNDS)])
    wanted = recording.done.json()
    seen = outermost(recording.profile)
    for one, key in CLASSES.items():
        have = sum(count for name, count in seen.items() if call_class(name) == one)
        found.hold(key, 0 <= have - wanted[key] <= SPARE, f"{have} of {wanted[key]}")
    found.tell(way=wanted["way"], calls=dict(seen))
    late, waits = too_early(recording.profile)
    found.hold("waits end after the work", waits > 0 and not late, f"all but {late} of {waits}")
    return found


def outermost(profile: Profile) -> Counter[str]:
    """How often each call of the driver was made, in no other."""
    calls = profile.calls
    frames = [] if calls is None else calls.frame.tolist()
    return Counter(profile.frames[frame].name for frame in frames)


def too_early(profile: Profile) -> tuple[int, int]:
    """Count waits for all work that end before it: clocks that differ show here first."""
    calls, table = profile.calls, profile.activities
    if calls is None:
        return 0, 0
    names = [profile.frames[frame].name for frame in calls.frame.tolist()]
    rows = [row for row, name in enumerate(names) if name.startswith("cuCtxSynchronize")]
    until = table.start + table.duration - CLOCK_ERROR
    running = [
        table.launched & (table.launch_end <= calls.start[row]) & (until > calls.end[row])
        for row in rows
    ]
    return sum(bool(one.any()) for one in running), len(rows)


def loads(bench: Bench) -> Finding:
    """Loading code is seen, which lazy loading may do in launches instead."""
    found, calls = Finding(), outermost(transformed(bench).profile)
    some = {name: calls[name] for name in calls if name.startswith(("cuModule", "cuLibrary"))}
    found.hold("loads", bool(some), some)
    return found


def nested(bench: Bench) -> Finding:
    """How many launches lie in other calls; they are the same without the recording of these."""
    found = Finding()
    flags = transformed(bench).rows("launch")["flags"]
    without = transformed(bench, "--no-calls", name="no-calls").rows("launch")
    found.tell(within=int((flags >> 16 > 0).sum()))
    hold_count(found, "launches", len(flags), len(without))
    return found


def forked(bench: Bench, way: str) -> Finding:
    """A child of multiprocessing that uses CUDA has a recording of its own, where CUDA lets it."""
    found = Finding()
    recording = bench.record(bench.workload("children.py", way, bench.size(10, 200)), code=None)
    said = recording.done.json()
    if said["error"] and way == "fork":
        found.hold("refused by CUDA, as documented", True, said["error"])
    elif said["error"]:
        raise CheckSkippedError(f"CUDA in a child by {way} ({said['error']})")
    hold_count(found, "kernels", len(recording.rows("kernel")), said["kernels"])
    found.hold("exit code", recording.done.code == 0, recording.done.code)
    found.tell(dumps=len(recording.dumps))
    return found


NEEDS = ("gpu", "library", "nvtx")
SWITCHES = {
    "kind-kernel": {"FLAME_KERNEL_KIND": "kernel"},
    "kind-concurrent": {"FLAME_KERNEL_KIND": "concurrent"},
    "pool-8": {"FLAME_POOL": "8"},
    "subscribers-several": {"FLAME_SUBSCRIBERS": "several"},
}
CHECKS = (
    Check("recorded", "what is recorded", 2, recorded, NEEDS, 60, quick=True),
    Check("counted-by-torch", "what is recorded", 2, counted, (*NEEDS, "torch"), 120, quick=True),
    Check("streams", "what is recorded", 2, streams, (*NEEDS, "compiler"), 60, quick=True),
    Check("blocking-calls", "other calls", 2, blocking, NEEDS, 60, quick=True),
    Check("loading-of-code", "other calls", 2, loads, NEEDS, 60),
    Check("launches-in-calls", "other calls", 2, nested, NEEDS, 60),
    *(
        Check(f"switch-{name}", "switches", 2, partial(switched, env=env), NEEDS, 30)
        for name, env in SWITCHES.items()
    ),
    Check("switch-graphs-whole", "graphs", 2, whole_graphs, NEEDS, 60),
    *(
        Check(
            f"child-{way}",
            "child processes",
            2,
            partial(forked, way=way),
            NEEDS,
            60,
            quick=way == "spawn",
        )
        for way in ("spawn", "forkserver", "fork")
    ),
)
