#!/usr/bin/env python3
"""Measures files of very many different stacks: peak memory by the size of the file, and time.

Time is that of a plain loop in Python that sums the numbers of the same lines, in the same run:
ratios can be compared between machines, seconds cannot. All are whole processes. Exit status 1
where an answer is wrong, or memory is more than ``--most`` times the file, without what Python and
numpy take of themselves.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

STACKS = 1_000_000
MOST = 12.0
PLAIN = """
import sys
total = 0
with open(sys.argv[1], "rb") as file:
    for line in file:
        stack, _, number = line.rpartition(b" ")
        total += int(number)
print(total)
"""
NOTHING = "import numpy, flame.core.loading.many, flame.core.projection.project, flame.cli.info"


class Run(NamedTuple):
    """What a process took: seconds, MB at its peak; and what it printed."""

    seconds: float
    megabytes: float
    printed: str


def shared_frames(count: int) -> Iterator[str]:
    """Different stacks of the same thousand frames."""
    draw, known = random.Random(1), set[str]()
    while len(known) < count:
        stack = ";".join(f"f{draw.randrange(1000)}" for _ in range(draw.choice((3, 4, 4, 5))))
        if stack not in known:
            known.add(stack)
            yield stack


def own_frames(count: int) -> Iterator[str]:
    """Stacks that have two frames each that no other has."""
    return (f"main;f{number};g{number}" for number in range(count))


KINDS: dict[str, Callable[[int], Iterator[str]]] = {"shared": shared_frames, "own": own_frames}


def write(path: Path, stacks: Iterator[str]) -> int:
    """Write the stacks with small values; return the sum of these."""
    draw, total = random.Random(2), 0
    with path.open("w") as file:
        for stack in stacks:
            value = draw.randint(1, 99)
            total += value
            file.write(f"{stack} {value}\n")
    return total


def run(*command: str) -> Run:
    """Run a command to its end."""
    begin = time.perf_counter()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begin
        out.seek(0)
        printed = out.read().decode()
    if status:
        raise SystemExit(f"{' '.join(command)}: exit {os.waitstatus_to_exitcode(status)}")
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return Run(seconds, usage.ru_maxrss / unit, printed)


def measure(path: Path, total: int, base: float, most: float) -> bool:
    """Print a row per command on ``path``; whether all are right and small enough."""
    flame, size = (sys.executable, "-m", "flame"), path.stat().st_size / 1e6
    plain = run(sys.executable, "-c", PLAIN, str(path))
    outs = {name: path.with_suffix(f".{name}.out") for name in ("folded", "speedscope")}
    runs = {"info": run(*flame, "info", "--json", str(path))}
    for name, out in outs.items():
        runs[name] = run(*flame, "export", "-f", name, "-o", str(out), str(path))
    fine: bool = int(plain.printed) == total
    fine &= json.loads(runs["info"].printed)["measures"][0]["total"] == total
    fine &= outs["folded"].read_bytes().splitlines() == sorted(path.read_bytes().splitlines())
    fine &= json.loads(outs["speedscope"].read_bytes())["profiles"][0]["endValue"] == float(total)
    for name, done in runs.items():
        ratio = (done.megabytes - base) / size
        print(
            f"| {path.stem} | {name} | {size:.0f} | {done.megabytes:.0f} | {ratio:.1f} "
            f"| {done.megabytes / size:.1f} | {done.seconds:.1f} "
            f"| {done.seconds / plain.seconds:.1f} |"
        )
        fine &= ratio <= most
    return fine


def main() -> int:
    """Write the files, run the commands, print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stacks", type=int, default=STACKS, help="in each file (1,000,000)")
    parser.add_argument("--most", type=float, default=MOST, help="times the file's size (12)")
    arguments = parser.parse_args()
    base = run(sys.executable, "-c", NOTHING).megabytes
    print(f"Python and numpy: {base:.0f} MB\n")
    print(
        "| stacks | command | file MB | peak MB | less base / file | peak / file | s | s / loop |"
    )
    print("|---|---|---|---|---|---|---|---|")
    fine = True
    for name, stacks in KINDS.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{name}.folded"
            total = write(path, stacks(arguments.stacks))
            fine &= measure(path, total, base, arguments.most)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
