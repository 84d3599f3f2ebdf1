#!/usr/bin/env python3
"""Measures opening a PyTorch profiler trace against `json.load` of the same file, nothing more.

Both are whole processes with a warm cache, in turn, medians of three: ratios can be compared
between machines, seconds cannot. Processor time (user and system) hardly depends on what else the
machine does.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from benchmarks.support.measuring import Run, medians, run  # noqa: E402

# Nothing big is imported here: a child's peak memory begins at that of the process it is spawned
# from.
MIB, LARGE = 50, 1_000
JSON = """
import gzip, json, sys
with open(sys.argv[1], "rb") as file:
    packed = file.read(2) == b"\\x1f\\x8b"
with (gzip.open if packed else open)(sys.argv[1], "rb") as file:
    print(len(json.load(file)["traceEvents"]))
"""
LOAD = """
import sys
from flame.core.loading.many import load
print(len(load(sys.argv[1]).activities))
"""


def report(path: Path, rounds: int) -> str:
    """Measures `path` and says what came out."""
    codes = {"json.load": JSON, "flame": LOAD}
    runs: dict[str, list[Run]] = {name: [] for name in codes}
    for _ in range(rounds):
        for name, code in codes.items():
            runs[name].append(run([sys.executable, "-c", code, str(path)]))
    median, size = {name: medians(each) for name, each in runs.items()}, path.stat().st_size
    alone, flame = median.values()
    lines = [
        f"{path.name}: {size / 2**20:.0f} MiB, {int(alone.output):,} events,"
        f" {int(flame.output):,} activities",
        "               CPU s  x json  peak MiB  x json  x file",
    ]
    lines += [
        f"  {name:11}{one.cpu:7.2f}{one.cpu / alone.cpu:8.2f}{one.memory / 2**20:10.0f}"
        f"{one.memory / alone.memory:8.3f}{one.memory / size:8.2f}"
        for name, one in median.items()
    ]
    return "\n".join(lines)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="else a generated one")
    parser.add_argument("--mib", type=int, default=MIB, help="size of that (%(default)s)")
    parser.add_argument("--large", action="store_true", help=f"as --mib {LARGE}")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    for path in args.files:
        print(report(path.resolve(), args.rounds))
    if not args.files:
        size = LARGE if args.large else args.mib
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{size}MiB.json"
            generate = [sys.executable, str(HERE / "generate_kineto.py"), str(path)]
            subprocess.run([*generate, "--mib", str(size)], check=True)
            print(report(path, args.rounds))


if __name__ == "__main__":
    main()
