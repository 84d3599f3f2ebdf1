#!/usr/bin/env python3
"""Compares what HTA and flame say of PyTorch traces, number by number.

    python benchmarks/compare_hta.py trace.json.gz …

HTA (Holistic Trace Analysis) is asked for its temporal breakdown, the overlap of communication and
computation, its breakdowns of kernels and of idle time, and its launch statistics. Beside each of
its numbers stands that of `flame report`, and what flame's columns make of HTA's definition: that
has to be HTA's number. Where the first two differ, the definitions do:

- Rows: of a trace with several `ProfilerStep`s HTA leaves out what was launched outside them, and
  all of which no launch was recorded; flame counts all that ran.
- Operators: one that has an argument `stream`, as those that launch Triton's kernels have, runs on
  a GPU to HTA, for as long as it lasts on the host.
- Classes: HTA tells communication by `^nccl.*Kernel`, flame by more names (`cross_device_reduce`,
  RCCL, NVSHMEM, …). To HTA a kernel with `Memcpy` or `Sync` in its name is nothing of both.
- Idle time: HTA's breakdown is by stream, and a stream that waits for another one is idle; that of
  flame is of the whole GPU. HTA gives all of a gap to the host where the call that launched its end
  began in it; flame cuts the gap at that call. Where no launch was recorded HTA takes the time of
  the first event in the file instead.
- Launches: HTA joins `cudaLaunchKernel`, `cudaLaunchKernelExC`, `cudaMemcpyAsync` and
  `cudaMemsetAsync`; flame takes any launching call, of the driver, of HIP, of graphs.

Times are in µs, as HTA has them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from benchmarks.support.peers import HTA
from flame.core.columns import I8, Bool
from flame.core.loading.many import load
from flame.core.model.activities import has_times
from flame.core.model.frames import COPIES, Kind
from flame.core.model.profile import Profile
from flame.core.report.parties.communication import device_communication
from flame.core.report.scope import Scope
from flame.core.report.sections.budget import budgets
from flame.core.timeline.busy_time import BusyTime
from flame.core.timeline.idle_parts import IdleCause

ASKED = """
import json, logging, os, sys
os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, include_last_profiler_step=True)
found = {}
for name, ask in {
    "temporal": lambda: analysis.get_temporal_breakdown(visualize=False),
    "overlap": lambda: analysis.get_comm_comp_overlap(visualize=False),
    "kernels": lambda: analysis.get_gpu_kernel_breakdown(
        visualize=False, num_kernels=10**9, duration_ratio=1.0, include_memory_kernels=True)[1],
    "idle": lambda: analysis.get_idle_time_breakdown(ranks=[0], visualize=False)[0],
    "launches": lambda: analysis.get_cuda_kernel_launch_stats(ranks=[0], visualize=False)[0],
}.items():
    try:
        found[name] = ask().to_dict("records")
    except Exception as error:
        found[name] = None
print(json.dumps(found))
"""
LAUNCHING = frozenset(
    {"cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpyAsync", "cudaMemsetAsync"}
)
COMMUNICATION, MEMORY = re.compile(r"nccl.*Kernel"), re.compile(r"Memcpy|Memset|dma")
NEITHER = re.compile(r".*Memcpy|Memset|.*Sync")
GPU = frozenset({"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"})
NS_PER_US = 1000


class Compared(NamedTuple):
    """A quantity: as HTA says it, as flame reports it, as flame's columns make of HTA's rule.

    None where it is not told.
    """

    name: str
    hta: float | None
    flame: float | None
    same_rule: float | None

    @property
    def agrees(self) -> bool:
        """Whether HTA's rule gives HTA's number; of times to 1 ns in 1,000 activities."""
        if self.hta is None or self.same_rule is None:
            return self.hta is self.same_rule
        return abs(self.hta - self.same_rule) <= max(0.5, 1e-6 * abs(self.hta))


def ask_hta(path: Path) -> dict[str, Any]:
    """HTA's tables; None for one that it cannot make."""
    python = HTA.found()
    assert python is not None, f"HTA is not there: {HTA.how}"
    command = [str(python), "-W", "ignore", "-c", ASKED, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


class Oddities(NamedTuple):
    """What HTA takes of a file besides, in ns on flame's clock.

    ``strays`` are operators that it takes for kernels, (start, end); ``first`` is when the first
    event began.
    """

    strays: list[tuple[int, int]]
    first: int


def oddities(path: Path, profile: Profile) -> Oddities:
    """Find them in the JSON itself."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
        events = json.load(file, parse_float=Decimal)["traceEvents"]
    whole = [one for one in events if one.get("ph") == "X" and one.get("cat") != "Trace"]
    ran = [int(one["ts"] * NS_PER_US) for one in whole if one["cat"].lower() in GPU]
    shift = min(ran) - int(profile.activities.start.min()) if ran else 0
    strays = [
        (int(one["ts"] * NS_PER_US) - shift, int((one["ts"] + one["dur"]) * NS_PER_US) - shift)
        for one in whole
        if one["cat"].lower() not in GPU and isinstance(one.get("args", {}).get("stream"), int)
    ]
    return Oddities(strays, int(whole[0]["ts"] * NS_PER_US) - shift if whole else 0)


class Ruled:
    """The activities of a trace by HTA's rules: which count, and of which class they are."""

    def __init__(self, profile: Profile, besides: Oddities) -> None:
        self.profile, self.table, self.besides = profile, profile.activities, besides
        self.rows = np.flatnonzero(has_times(self.table) & self._counts())
        self.start = self.table.start[self.rows]
        self.end = self.start + self.table.duration[self.rows]
        names = [self._name(at) for at in range(len(profile.frames))]
        frame = self.table.frame[self.rows]
        self.talks = np.array([bool(COMMUNICATION.match(one)) for one in names])[frame]
        self.computes = np.array(
            [not (COMMUNICATION.match(one) or NEITHER.match(one)) for one in names]
        )[frame]
        self.computes &= ~np.isin(self.table.kind[self.rows], COPIES)
        strays = np.array(besides.strays, np.int64).reshape(-1, 2)
        self.stray = int((strays[:, 1] - strays[:, 0]).sum())
        self.starts = np.append(self.start, strays[:, 0])
        self.ends = np.append(self.end, strays[:, 1])

    def _counts(self) -> Bool:
        steps = self.profile.steps
        if steps is None or len(set(steps.number.tolist())) < 2:
            return np.ones(len(self.table), bool)
        until: Bool = self.table.launch_start <= int(steps.end.max())
        return self.table.launched & until

    def _name(self, at: int) -> str:
        frame = self.profile.frames[at]
        if frame.kind == Kind.KERNEL:
            return frame.get("mangled") or frame.get("demangled") or frame.name
        return {Kind.MEMCPY: "Memcpy", Kind.MEMSET: "Memset"}.get(frame.kind, frame.name)

    def union(self, mask: Bool, strays: bool = True) -> BusyTime:
        """When any of the activities in ``mask`` ran, or of the ``strays``."""
        chosen = np.append(mask, np.full(len(self.besides.strays), strays))
        return BusyTime.union(self.starts[chosen], self.ends[chosen])

    def host_waits(self) -> int:
        """Idle time of streams that ended with work launched in it, ns."""
        stream = self.table.stream[self.rows]
        order = np.lexsort((self.start, stream))
        before, after = order[:-1], order[1:]
        gap = self.start[after] - self.end[before]
        rows = self.rows[after]
        launched = self.table.launched[rows]
        launch = np.where(launched, self.table.launch_start[rows], self.besides.first)
        late = (launch > self.end[before]) & (stream[before] == stream[after])
        return int(gap[late].sum())

    def launches(self) -> tuple[int, int, int, int]:
        """(number, ns of calls, ns on the GPU, ns between) of what HTA joins."""
        calls = self.table.launch[self.rows]
        names = [frame.name for frame in self.profile.frames.frames]
        known = np.array([name in LAUNCHING for name in names])[calls]
        rows = self.rows[known & self.table.launched[self.rows]]
        begin, end = self.table.launch_start[rows], self.table.launch_end[rows]
        between: I8 = np.maximum(self.table.start[rows] - end, 0)
        lengths = (end - begin, self.table.duration[rows], between)
        calling, running, waiting = (int(one.sum()) for one in lengths)
        return len(rows), calling, running, waiting


def compare(path: Path) -> list[Compared]:
    """Compare all that HTA says of the trace at ``path``."""
    asked, profile = ask_hta(path), load(path)
    scope = Scope(profile)
    ruled = Ruled(profile, oddities(path, profile))
    return [
        *_temporal(asked, scope, ruled),
        *_kernels(asked, profile, ruled),
        *_launches(asked, profile, ruled),
    ]


def _us(ns: int) -> float:
    return ns / NS_PER_US


def _temporal(asked: dict[str, Any], scope: Scope, ruled: Ruled) -> Iterator[Compared]:
    if not asked["temporal"] or not len(ruled.rows):
        return
    [told] = asked["temporal"]
    every = np.ones(len(ruled.rows), bool)
    busy, compute = ruled.union(every), ruled.union(ruled.computes)
    talk = ruled.union(ruled.talks, strays=False)
    window = int(ruled.ends.max() - ruled.starts.min())
    found = budgets(scope)
    idle = sum(int(one.idle.sum()) for one in found)
    computed = sum(one.compute for one in found)
    rest = sum(one.exposed_communication + one.copies_alone for one in found)
    whole = sum(one.window for one in found)
    yield Compared("window", told["kernel_time(us)"], _us(whole), _us(window))
    yield Compared("idle", told["idle_time(us)"], _us(idle), _us(window - busy.total))
    yield Compared("compute", told["compute_time(us)"], _us(computed), _us(compute.total))
    others = busy.total - compute.total
    yield Compared("non-compute", told["non_compute_time(us)"], _us(rest), _us(others))
    [hidden] = asked["overlap"]
    share = hidden["comp_comm_overlap_pctg"]
    devices = device_communication(scope)
    overlap, talking = sum(one.overlap for one in devices), sum(one.busy for one in devices)
    yield Compared(
        "overlap, %",
        None if share is None or np.isnan(share) else share,
        100 * overlap / talking if talking else None,
        100 * compute.within_all(talk) / talk.total if talk.total else None,
    )
    if asked["idle"]:
        waits = [one for one in asked["idle"] if one["idle_category"] == "host_wait"]
        told_waits = sum(one["idle_time"] for one in waits)
        host = sum(int(one.idle[IdleCause.IN_LAUNCH :].sum()) for one in found)
        yield Compared("host wait", told_waits, _us(host), _us(ruled.host_waits()))


def _kernels(asked: dict[str, Any], profile: Profile, ruled: Ruled) -> Iterator[Compared]:
    if not asked["kernels"] or not len(ruled.rows):
        return
    table = profile.activities
    told = dict.fromkeys(("COMMUNICATION", "COMPUTATION", "MEMORY"), 0.0)
    for one in asked["kernels"]:
        told[one["kernel_type"]] += one["sum (us)"]
    copies = np.isin(table.kind[ruled.rows], COPIES)
    length = table.duration[ruled.rows]
    masks = {"COMMUNICATION": ruled.talks, "COMPUTATION": ruled.computes, "MEMORY": copies}
    of = {"COMMUNICATION": 0, "COMPUTATION": 0, "MEMORY": 0}
    for one in device_communication(Scope(profile)):
        of["COMMUNICATION"] += one.total
    of["MEMORY"] = int(table.duration[np.isin(table.kind, COPIES)].sum())
    of["COMPUTATION"] = int(table.duration.sum()) - of["COMMUNICATION"] - of["MEMORY"]
    for kind, mask in masks.items():
        same = _us(int(length[mask].sum()) + (ruled.stray if kind == "COMPUTATION" else 0))
        yield Compared(f"kernels, {kind.lower()}", told[kind], _us(of[kind]), same)


def _launches(asked: dict[str, Any], profile: Profile, ruled: Ruled) -> Iterator[Compared]:
    told = asked["launches"]
    if told is None or not len(ruled.rows):
        return
    number, calling, running, waiting = ruled.launches()
    table = profile.activities
    rows = np.flatnonzero(table.launched & has_times(table))
    queued = np.maximum(table.start[rows] - table.launch_end[rows], 0)
    called = table.launch_end[rows] - table.launch_start[rows]
    yield Compared("launches", len(told), len(rows), number)
    for name, key, own, same in (
        ("launches, call", "cpu_duration", called, calling),
        ("launches, GPU", "gpu_duration", table.duration[rows], running),
        ("launches, delay", "launch_delay", queued, waiting),
    ):
        yield Compared(name, sum(one[key] for one in told), _us(int(own.sum())), _us(same))


def _cell(value: float | None) -> str:
    return f"{'–':>16}" if value is None else f"{value:16,.3f}"


def main() -> int:
    """Print what both say of each trace; the exit code is 1 where a rule gives another number."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("traces", nargs="+", type=Path)
    args = parser.parse_args()
    failed = 0
    for path in args.traces:
        print(f"{path.name}\n{'':24}{'HTA':>16}{'flame':>16}{'by HTA rules':>16}")
        for one in compare(path):
            failed |= not one.agrees
            cells = "".join(map(_cell, (one.hta, one.flame, one.same_rule)))
            print(f"  {one.name:22}{cells}{'' if one.agrees else '  !'}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
