#!/usr/bin/env python3
"""Measures projection with instructions and stall reasons against the same without, in one process.

The trace is that of `generate.py`; its PC samples are made up in memory, in every kernel the same
number of instructions and reasons. Each case is a process of its own, with a warm cache, and times
are medians of five: ratios can be compared between machines, seconds cannot. The first projection
sums up the samples by name, and all later ones use that.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

ROUNDS = 5
SIZES = ("100k", "1M")
CASES = {"small": (10, 50), "medium": (50, 500), "large": (200, 2_000)}
"""Kernels, and instructions of each."""
REASONS = ("long_scoreboard", "wait", "selected", "not_selected", "barrier", "mio_throttle")
ORDERS = (
    "python,native,launch,nvtx,kernel,sass,stall",
    "kernel,sass,stall",
    "stall,nvtx,kernel",
    "sass",
)


def sampled(profile: Any, kernels: int, instructions: int) -> Any:
    """``profile`` with samples in so many kernels, whichever its groups are of."""
    import numpy as np

    from flame.core.model.frames import FrameBuilder
    from flame.core.model.pc_samples import Code, CodeSamples, SamplingBuilder
    from flame.core.sampling.attach import attach_sampling

    random = np.random.default_rng(1)
    frames = FrameBuilder.from_table(profile.frames)
    builder = SamplingBuilder(frames)
    key = np.arange(instructions * len(REASONS))
    place, reason = (key // len(REASONS)).astype(np.int32), (key % len(REASONS)).astype(np.int32)
    text = tuple(f"LDG.E R{at % 255}, [R4+0x{at:x}]" for at in range(instructions))
    nowhere = np.full(instructions, -1, np.int32)
    for kernel in range(kernels):
        code = Code(f"kernel {kernel}", np.arange(instructions) * 16, text, nowhere, nowhere)
        samples = random.zipf(1.5, len(key)).clip(1, 10**6)
        builder.add([CodeSamples(code, place, reason, samples, REASONS)], exact=False)
    groups = profile.activities.groups
    # Ranges and kernels of the trace repeat: the same of both are always one kernel here.
    of_group = ((groups.nvtx.astype(np.int64) * 7 + groups.frame) % kernels).astype(np.int32)
    return attach_sampling(profile, frames, builder.build(of_group))


def median(work: Callable[[], object]) -> float:
    """Seconds that ``work`` takes."""
    taken = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


def peak_mib() -> float:
    """The most memory this process has had."""
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def measure(path: str, case: str) -> str:
    """What one case takes, as JSON."""
    import flame
    from flame.core.projection.labels import Naming, exact_labels

    trace = flame.load(path)
    trace.tree()
    before = peak_mib()
    begin = time.perf_counter()
    ours = flame.Trace(sampled(trace.profile, *CASES[case]))
    made = time.perf_counter()
    exact_labels(ours.profile.frames, Naming())
    named = time.perf_counter()
    orders = {}
    for levels in ORDERS:
        plain = ",".join(one for one in levels.split(",") if one not in ("sass", "stall"))
        begin_first = time.perf_counter()
        tree = ours.tree(levels)
        first = time.perf_counter() - begin_first
        again = median(partial(ours.tree, levels))
        without = median(partial(ours.tree, plain)) if plain else 0.0
        nodes = len(ours.tree(plain)) if plain else 1
        orders[levels] = (first, again, without, len(tree), nodes)
    found = {"made": made - begin, "named": named - made, "orders": orders}
    return json.dumps(found | {"mib": peak_mib() - before, "kernels": len(ours.profile.activities)})


def report(path: Path, case: str) -> str:
    """What `measure` has found in a process of its own."""
    command = [sys.executable, __file__, "--measure", str(path), case]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found = json.loads(done.stdout)
    kernels, instructions = CASES[case]
    lines = [
        f"{case}: {found['kernels']:,} launches, samples in {kernels} kernels of {instructions:,}"
        f" instructions and {len(REASONS)} reasons",
        f"  made {found['made']:.2f} s, named {found['named']:.2f} s, {found['mib']:.0f} MiB more",
        f"  {'levels':45}{'first':>9}{'again':>9}{'without':>9}{'ratio':>8}{'nodes':>10}"
        f"{'without':>9}",
    ]
    for levels, (first, again, without, nodes, plain) in found["orders"].items():
        seconds = "".join(f"{one * 1e3:>6.0f} ms" for one in (first, again, without))
        ratio = f"{again / without:.1f}" if without else ""
        lines.append(f"  {levels:45}{seconds}{ratio:>8}{nodes:>10,}{plain:>9,}")
    return "\n".join(lines)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", choices=SIZES, default="100k", help="size of the trace")
    parser.add_argument("--cases", default=",".join(CASES), help="default: %(default)s")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        print(measure(*args.measure))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{args.kernels}.sqlite"
        generate = [sys.executable, str(HERE / "generate.py"), str(path), "--kernels", args.kernels]
        subprocess.run(generate, check=True)
        for case in args.cases.split(","):
            print(report(path, case), flush=True)


if __name__ == "__main__":
    main()
