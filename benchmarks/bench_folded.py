#!/usr/bin/env python3
"""Measures reading folded stacks against the plain way in Python: split each line, count in a dict.

All are whole processes with a warm cache, medians of three, in one run: ratios can be compared
between machines, seconds cannot. All but the reader alone (`read`) end with the value of every node
of the tree.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

# numpy stays out of this process: a child's peak memory begins at that of the process it is
# spawned from.
ROUNDS = 3
FUNCTIONS = 5_000
DEEPEST = 26
REPORT = """
import json, resource
print(json.dumps({
    "time": time.perf_counter() - begin,
    "nodes": nodes,
    "total": total,
    "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
}))
"""
FLAME = """
import sys, time
begin = time.perf_counter()
import flame
tree = flame.load(sys.argv[1]).tree()
nodes, total = len(tree) - 1, int(tree.total[0])
"""
READ = """
import sys, time
begin = time.perf_counter()
from pathlib import Path
from flame.core.options import LoadOptions, silent
from flame.core.readers.stacks import folded
raw = folded.read_folded(Path(sys.argv[1]), LoadOptions(), silent)
nodes, total = len(raw.stacks.build()) - 1, int(raw.measures[0].values.sum())
"""
PLAIN = """
import sys, time
begin = time.perf_counter()
values, total = {}, 0
with open(sys.argv[1]) as file:
    for line in file:
        stack, _, number = line.rpartition(" ")
        value = int(number)
        total += value
        path = ()
        for frame in stack.split(";"):
            path = (path, frame)
            values[path] = values.get(path, 0) + value
nodes = len(values)
"""
# The same with a node per frame: hashing a path of tuples looks at all of it.
LINKED = """
import sys, time
begin = time.perf_counter()
class Node:
    __slots__ = ("value", "children")
    def __init__(self):
        self.value, self.children = 0, {}
root, nodes = Node(), 0
with open(sys.argv[1]) as file:
    for line in file:
        stack, _, number = line.rpartition(" ")
        value, node = int(number), root
        root.value += value
        for frame in stack.split(";"):
            below = node.children.get(frame)
            if below is None:
                below = node.children[frame] = Node()
                nodes += 1
            below.value += value
            node = below
total = root.value
"""


def write(path: Path, megabytes: float) -> int:
    """Write stacks that share their outer frames as those of a program do; how many."""
    draw = random.Random(1)
    names = [_name(number) for number in range(FUNCTIONS)]
    stack: list[str] = []
    count = size = 0
    with path.open("w") as file:
        while size < megabytes * 1e6:
            del stack[draw.randint(0, len(stack)) if draw.random() < 0.3 else -draw.randint(1, 6) :]
            stack += draw.choices(names, k=draw.randint(1, 6))
            del stack[DEEPEST:]
            size += file.write(f"{';'.join(stack)} {draw.randint(1, 999)}\n")
            count += 1
    return count


def _name(number: int) -> str:
    if number % 3:
        return f"package{number % 97}.function_{number}"
    return f"function_{number} (package/module_{number % 50}.py:{number})"


def measure(program: str, path: Path) -> dict[str, float]:
    """What the program reports of its median run."""
    command = [sys.executable, "-c", program + REPORT, str(path)]
    runs: list[dict[str, float]] = [
        json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        for _ in range(ROUNDS)
    ]
    time = statistics.median(run["time"] for run in runs)
    return runs[0] | {"time": time, "rss": max(run["rss"] for run in runs)}


def main() -> None:
    """Write a file, read it in all ways, print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=30, help="size of the file (30)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stacks.folded"
        stacks = write(path, arguments.megabytes)
        print(f"{path.stat().st_size / 1e6:.0f} MB, {stacks:,} stacks")
        ways = {"read": READ, "flame": FLAME, "plain": PLAIN, "linked": LINKED}
        found = {name: measure(program, path) for name, program in ways.items()}
    print("| reader | time s | peak MB | nodes |\n|---|---|---|---|")
    for name, run in found.items():
        rss = run["rss"] / (1e6 if sys.platform == "darwin" else 1e3)
        print(f"| {name} | {run['time']:.2f} | {rss:.0f} | {run['nodes']:,} |")
    for name in ("plain", "linked"):
        for ours in ("read", "flame"):
            print(f"{ours} / {name}: {found[ours]['time'] / found[name]['time']:.2f}")
    if len({(run["nodes"], run["total"]) for run in found.values()}) > 1:
        raise SystemExit("the readers do not agree")


if __name__ == "__main__":
    main()
