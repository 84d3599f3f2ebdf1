#!/usr/bin/env python3
"""Measures what the shapes of operators cost: opening a PyTorch trace, and its work.

    python benchmarks/bench_efficiency.py [--base CHECKOUT] [--steps 40000] [--rounds 5]

The trace has shapes, strides, types and values with five of seven events, which is the worst case.
With ``--base``, a checkout from before, opening is measured in turn in both, in CPU time, and the
ratio of the fastest told: it is to be at most 1.15. Exit status 1 where it is more.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MOST = 1.15
BF16 = "c10::BFloat16"

_OPEN = """
import sys, time
from flame.core.loading.many import load
begin = time.process_time()
profile = load(sys.argv[1])
print(time.process_time() - begin)
"""
_WORK = (
    _OPEN
    + """
from flame.core.efficiency.sums import count_frames
from flame.core.projection.project import project
begin = time.process_time()
work = profile.work
print(time.process_time() - begin)
tree = project(profile)
begin = time.process_time()
counts = count_frames(profile, tree)
print(time.process_time() - begin, int(work.flops.sum()))
"""
)


def _event(category: str, name: str, start: int, length: int, args: dict[str, Any]) -> str:
    place = {"pid": 0, "tid": 7} if category == "kernel" else {"pid": 1, "tid": 1}
    event = {"ph": "X", "cat": category, "name": name, **place, "ts": start, "dur": length}
    return json.dumps({**event, "args": args})


def _inputs(*shapes: list[int]) -> dict[str, Any]:
    return {
        "Concrete Inputs": [""] * len(shapes),
        "Input type": [BF16] * len(shapes),
        "Input Strides": [[*shape[1:], 1] for shape in shapes],
        "Input Dims": list(shapes),
    }


def events(steps: int) -> Iterator[str]:
    """A linear layer and three elementwise operators per step; one kernel."""
    draw = random.Random(1)
    for step in range(steps):
        m, k, n = draw.choice([16, 32, 64]), draw.choice([512, 2880]), draw.choice([640, 2048])
        at, linked = 60 * step, {"External id": step, "correlation": step + 1}
        inputs = {"External id": step, **_inputs([n], [m, k], [k, n]), "Ev Idx": step}
        yield _event("cpu_op", "aten::linear", at, 40, inputs)
        yield _event("cpu_op", "aten::addmm", at + 2, 36, inputs)
        yield _event("cuda_runtime", "cudaLaunchKernel", at + 10, 5, linked)
        geometry = {"grid": [8, 1, 1], "block": [128, 1, 1], "registers per thread": 168}
        yield _event(
            "kernel", "gemm", at + 20, 20, {**linked, "device": 0, "stream": 7, **geometry}
        )
        plain = {"External id": step, **_inputs([m, k], [m, k]), "Ev Idx": step}
        for place in range(3):
            yield _event("cpu_op", "aten::mul", at + 41 + 3 * place, 2, plain)


def write(path: Path, steps: int) -> None:
    """Write the trace."""
    devices = json.dumps([{"id": 0, "name": "NVIDIA H100 80GB HBM3"}])
    with path.open("w") as file:
        file.write(f'{{"schemaVersion": 1, "deviceProperties": {devices}, "traceEvents": [\n')
        file.write(",\n".join(events(steps)))
        file.write("\n]}\n")


def measured(checkout: Path, code: str, path: Path) -> list[float]:
    """The numbers that ``code`` prints, run by the Python of a checkout."""
    python = checkout / ".venv" / "bin" / "python"
    command = [str(python) if python.exists() else sys.executable, "-c", code, str(path)]
    environment = {**os.environ, "PYTHONPATH": str(checkout), "XDG_CACHE_HOME": os.devnull}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()]


def main() -> int:
    """Measure, print, and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--base", type=Path, help="a checkout from before")
    parser.add_argument("--steps", type=int, default=40_000, help="steps of the trace")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is opened")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "dense.json")
        write(path, args.steps)
        print(f"{path.stat().st_size / 1e6:.0f} MB, {args.steps:,} products")
        own, base = list[float](), list[float]()
        for _ in range(args.rounds):
            own += measured(ROOT, _OPEN, path)
            base += measured(args.base, _OPEN, path) if args.base else []
        print(f"opening: {min(own):.3f} s of a processor")
        _, work, frames, flops = measured(ROOT, _WORK, path)
        print(f"work of {flops:,.0f} FLOPs: {work:.3f} s; sums of all frames: {frames:.3f} s")
    if not base:
        return 0
    ratio = min(own) / min(base)
    print(f"before: {min(base):.3f} s; {ratio:.3f} times as long, at most {MOST}")
    return int(ratio > MOST)


if __name__ == "__main__":
    sys.exit(main())
