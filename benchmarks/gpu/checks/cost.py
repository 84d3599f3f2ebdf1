"""What recording costs, in time, memory and bytes, also after millions of kernels."""

from __future__ import annotations

from functools import partial

from benchmarks.gpu.bench import FLAME, NOTHING, Bench, Env
from benchmarks.gpu.check import Check, Finding
from benchmarks.gpu.criteria import LAUNCHED, hold_count

WAYS: dict[str, tuple[str, ...]] = {
    "recorded": (),
    "no-calls": ("--no-calls",),
    "no-python": ("--no-python",),
    "continuous": ("--pc", "continuous"),
    "serialized": ("--pc", "serialized"),
}
PARTS = ("eager", "triton", "graph")
SLOWER = 0.03
"""How much slower the last part of a long recording may be than its first."""
DEARER, CHEAP = 2.0, 0.1
"""Recording may cost so many times what torch.profiler does, or what that may at any rate."""
FLAT = 1.25
"""How much more memory the process may have at the end than after its first part."""
LOST = 1e-4
"""Share of kernels without times, or dropped, which is more than none."""


def cost(bench: Bench, command: list[str]) -> Finding:
    """How long the loop takes alone and recorded; the fastest of some runs. No time is wrong."""
    found = Finding()
    rounds = bench.size(1, 3)
    alone = min(bench.run(command).json()["loop_s"] for _ in range(rounds))
    found.tell(alone_s=alone)
    for name, options in WAYS.items():
        folder = bench.folder / name
        runs = [
            bench.run(
                [*FLAME, "record", "-q", *options, "-o", f"{folder}-{turn}", "--", *command]
            ).json()
            for turn in range(rounds)
        ]
        best = min(runs, key=lambda run: float(run["loop_s"]))
        extra = (best["loop_s"] - alone) / best["launches"] * 1e6
        found.tell(**{name: f"x{best['loop_s'] / alone:.2f}, {extra:.2f} us a launch"})
        found.tell(**{f"{name}_times": best["loop_s"] / alone})
        found.tell(**{f"{name}_warm_s": [run["warm_s"] for run in runs]})
    found.hold("runs", alone > 0, f"{alone:.3f} s")
    return found


def driver_cost(bench: Bench) -> Finding:
    """The cost for a program of the driver alone."""
    return cost(bench, bench.workload("steady.py", bench.size(30, 2000)))


def torch_cost(bench: Bench, part: str) -> Finding:
    """The cost for PyTorch, of one way to launch, beside that of its own profiler."""
    command = bench.workload("torch_mix.py", bench.size(50, 200), part)
    found = cost(bench, command)
    theirs = bench.run([*command, "count"]).json()["loop_s"] / found.numbers["alone_s"]
    ours = found.numbers["recorded_times"]
    said = f"x{ours:.2f}, x{theirs:.2f} with torch.profiler"
    found.hold("beside torch.profiler", ours - 1 <= DEARER * max(theirs - 1, CHEAP), said)
    return found


def long_graphs(bench: Bench, env: Env = NOTHING) -> Finding:
    """Millions of nodes of a graph keep their times, and take no more and more GPU memory."""
    found = Finding()
    nodes = bench.size(20_000, 3_000_000 if env else 30_000_000)
    recording = bench.record(bench.workload("graph_replays.py", nodes), env=env)
    said = recording.done.json()
    dropped = recording.dropped()
    lost = sum(dropped.values())
    have = recording.count("kernel")
    found.tell(nodes=said["nodes"], seconds=said["seconds"], device_MiB=said["device_mib"])
    found.tell(dropped=dropped, counters=recording.counters(), bytes=recording.size)
    hold_count(found, "kernels or losses", have + lost, said["nodes"], LOST)
    found.hold("times", lost <= LOST * said["nodes"], f"{lost} without")
    if not bench.quick:
        for dump in recording.dumps:  # gigabytes
            dump.unlink()
    return found


def soak(bench: Bench) -> Finding:
    """A long recording grows neither slower nor larger in memory."""
    found = Finding()
    command = bench.workload("steady.py", 10**9, "--seconds", bench.size(6, 150))
    recording = bench.record(command)
    said = recording.done.json()
    found.tell(rss_mib=said["rss_mib"], step_ms=said["step_ms"], descriptors=said["descriptors"])
    found.tell(bytes=recording.size, counters=recording.counters())
    first, last = said["step_ms"][0], said["step_ms"][-1]
    # Six seconds of a machine that others share prove nothing.
    found.hold("step time", bench.quick or last <= first * (1 + SLOWER), f"{first} ms, then {last}")
    first, last = said["rss_mib"][1], said["rss_mib"][-1]
    found.hold("memory", last <= first * FLAT, f"{first} MiB, then {last}")
    found.hold("descriptors", said["descriptors"][-1] <= said["descriptors"][0] + 1)
    seen = recording.rows("kernel")["tid"] != 0
    found.hold("launch", float(seen.mean()) >= LAUNCHED, f"{float(seen.mean()):.3%}")
    return found


NEEDS = ("gpu", "library")
CHECKS = (
    Check("cost-driver", "cost", 2, driver_cost, NEEDS, 120),
    *(
        Check(
            f"cost-torch-{part}",
            "cost",
            2,
            partial(torch_cost, part=part),
            (*NEEDS, "torch", *(("triton",) if part == "triton" else ())),
            150,
        )
        for part in PARTS
    ),
    Check(
        "long-graphs-pool-8",
        "long runs",
        2,
        partial(long_graphs, env={"FLAME_POOL": "8"}),
        NEEDS,
        60,
        quick=True,
    ),
    Check("long-graphs", "long runs", 3, long_graphs, NEEDS, 280),
    Check("soak", "long runs", 3, soak, NEEDS, 220),
)
