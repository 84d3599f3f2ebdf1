"""What `flame record --memory` records: sizes, whose code it was, pools, and what it costs."""

from __future__ import annotations

from collections import Counter

import numpy as np

from benchmarks.gpu.bench import ROOT, TRANSFORMER, Bench
from benchmarks.gpu.check import Check, Finding
from benchmarks.gpu.criteria import LAUNCHED, hold_count, share_of
from benchmarks.gpu.recording import Recording
from flame.core.model.profile import Profile
from flame.core.projection.project import project
from flame.core.projection.selection import select

ROUNDS = 100
OF_MEMORY, RELEASED = 0, 2  # of a Memory record in inject/dump/dump.h
SIZE = 0.02
"""How far sizes may differ: CUDA may allocate something for itself."""


def memory(bench: Bench) -> Finding:
    """All that a program allocates and frees is there, with its size, its call and its stack."""
    found = Finding()
    script = str(ROOT / "benchmarks" / "memory_calls.py")
    recording = bench.record([bench.workload("")[0], script, str(ROUNDS)], "--memory")
    wanted = recording.done.json()
    hold_events(found, recording, wanted["events"])
    profile = recording.profile
    devices = profile.memory.devices if profile.memory is not None else ()
    hold_count(found, "peak", sum(one.peak for one in devices), wanted["peak"], SIZE)
    hold_count(found, "at the end", sum(one.live_end for one in devices), wanted["live"], SIZE)
    hold_count(found, "allocated", allocated(profile), wanted["alloc"], SIZE)
    elsewhere = {one.kind: one.peak for one in profile.memory.elsewhere} if profile.memory else {}
    hold_count(found, "pinned", elsewhere.get("pinned", 0), wanted["pinned"], SIZE)
    curves = profile.memory.curves if profile.memory is not None else ()
    known = [curve.reserved for curve in curves if curve.reserved is not None]
    found.hold("sizes of pools", bool(known), [int(one.max()) for one in known])
    found.tell(way=wanted["way"], elsewhere=elsewhere, warnings=list(profile.warnings))
    return found


def hold_events(found: Finding, recording: Recording, want: int) -> None:
    """Hold that each event is there, of a call that was seen, and what frees tell."""
    rows = recording.rows("memory")
    of_memory = rows[rows["what"] == OF_MEMORY]
    told = Counter(rows[["what", "operation", "kind"]].tolist())
    found.tell(
        events={str(key): count for key, count in told.items()}, counters=recording.counters()
    )
    hold_count(found, "events", len(of_memory), want, SIZE)
    seen = of_memory["tid"] != 0
    found.hold("call", share_of(seen) >= LAUNCHED, f"{share_of(seen):.3%} of {len(seen)}")
    python = of_memory["python"] != 0
    found.hold("python", share_of(python) >= LAUNCHED, f"{share_of(python):.3%}")
    frees = of_memory[of_memory["operation"] == RELEASED]
    sized = int((frees["bytes"] != 0).sum())
    found.hold("sizes of frees", sized == len(frees), f"{sized} of {len(frees)}")
    dropped = recording.dropped()
    found.hold("nothing lost", not dropped, dropped or "")


def allocated(profile: Profile) -> int:
    """How many bytes of all GPUs were allocated; 0 where nothing was recorded."""
    if profile.memory is None or not len(profile.memory.activities):
        return 0
    chosen = select(metric="alloc", levels=("device",))
    return int(project(profile, chosen).total[0])


def within_calls(bench: Bench) -> Finding:
    """An allocation is told of at a time within its call, which gives it its launch frame."""
    found = Finding()
    script = str(ROOT / "benchmarks" / "memory_calls.py")
    recording = bench.record([bench.workload("")[0], script, str(ROUNDS)], "--memory")
    recorded = recording.profile.memory
    launch = recorded.activities.launch if recorded is not None else np.zeros(0, np.int32)
    share = share_of(launch >= 0)
    found.hold("within calls", share >= LAUNCHED, f"{share:.3%} of {len(launch)}")
    return found


def beside_kernels(bench: Bench) -> Finding:
    """With memory on, kernels and their launches are as many as without; how long each run is."""
    found = Finding()
    command = [*TRANSFORMER, str(bench.size(10, 50))]
    ways = {
        way: bench.record(command, *options, name=way)
        for way, options in (("without", ()), ("with", ("--memory",)))
    }
    kernels = {way: one.count("kernel") for way, one in ways.items()}
    hold_count(found, "kernels", kernels["with"], kernels["without"])
    found.hold("off by default", ways["without"].count("memory") == 0)
    found.tell(seconds={way: one.done.seconds for way, one in ways.items()})
    found.tell(events=ways["with"].count("memory"))
    return found


NEEDS = ("gpu", "library", "nvtx")
CHECKS = (
    Check("memory", "M", 2, memory, NEEDS, 60, quick=True),
    Check("memory-within-calls", "M", 2, within_calls, NEEDS, 60),
    Check("memory-beside-kernels", "M", 2, beside_kernels, NEEDS, 60),
)
