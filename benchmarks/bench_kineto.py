#!/usr/bin/env python3
"""Measures opening a PyTorch profiler trace against `json.load` of the same file, nothing more.

Both are whole processes with a warm cache, medians of three, in one run: ratios can be compared
between machines, seconds cannot. Memory is the peak of the process and of any that it starts.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# Nothing big is imported here: a child's peak memory begins at that of the process it is spawned
# from.
HERE = Path(__file__).resolve().parent
PEAK = """
def peak():
    import resource
    return sum(resource.getrusage(who).ru_maxrss
               for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
"""
JSON = (
    PEAK
    + """
import gzip, json, sys
with open(sys.argv[1], "rb") as file:
    packed = file.read(2) == b"\\x1f\\x8b"
with (gzip.open if packed else open)(sys.argv[1], "rb") as file:
    events = json.load(file)["traceEvents"]
print(json.dumps({"events": len(events), "rss": peak()}))
"""
)
LOAD = (
    PEAK
    + """
import json, sys
from flame.core.loading.many import load
profile = load(sys.argv[1])
print(json.dumps({"activities": len(profile.activities), "rss": peak()}))
"""
)


def run(script: str, path: Path) -> dict[str, float]:
    """What the script printed, and its wall time in s."""
    begin = time.perf_counter()
    command = [sys.executable, "-c", script, str(path)]
    done = subprocess.run(command, cwd=HERE.parent, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return {**found, "wall": time.perf_counter() - begin}


def report(path: Path, rounds: int) -> str:
    """Measures `path` and says what came out."""
    file_mib = path.stat().st_size / 2**20
    plain, flame = [], []
    for _ in range(rounds):
        plain.append(run(JSON, path))
        flame.append(run(LOAD, path))
    unit = 2**20 if sys.platform == "darwin" else 2**10
    walls = [statistics.median(one["wall"] for one in runs) for runs in (plain, flame)]
    peaks = [max(one["rss"] for one in runs) / unit for runs in (plain, flame)]
    return (
        f"{path.name}: {file_mib:.0f} MiB, {plain[0]['events']:,.0f} events,"
        f" {flame[0]['activities']:,.0f} activities\n"
        f"  json.load: {walls[0]:.2f} s, {peaks[0]:.0f} MiB\n"
        f"  flame.core.loading.many.load: {walls[1]:.2f} s, {peaks[1]:.0f} MiB\n"
        f"  ratio of times: {walls[1] / walls[0]:.2f}\n"
        f"  ratio of peak memory: {peaks[1] / peaks[0]:.3f}"
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("files", nargs="*", type=Path, default=[])
    source.add_argument("--mib", type=int, help="generate a trace of that size first")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    for path in args.files:
        print(report(path.resolve(), args.rounds))
    if args.mib:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{args.mib}MiB.json"
            generate = [sys.executable, str(HERE / "generate_kineto.py"), str(path)]
            subprocess.run([*generate, "--mib", str(args.mib)], check=True)
            print(report(path, args.rounds))


if __name__ == "__main__":
    main()
