#!/usr/bin/env python3
"""Measures opening a trace again against its first opening, and both against the SQL limit.

Rounds are interleaved, each of: the sqlite3 command that sums the needed columns, the first opening
(the cache is empty; what is kept for the next time is part of it), opening again, and the same
without the cache. All are whole processes of `flame view --print`, `flame export` and, for what
comes after, `flame info`. CPU time is user and system; medians.

    python benchmarks/bench_reopen.py TRACE… [--rounds N]
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.bench_load import sql_command

HERE = Path(__file__).resolve().parent
BYTECODE = tempfile.TemporaryDirectory()
FLAME = (sys.executable, "-m", "flame")
COMMANDS = {
    "view": ("view", "--print"),
    "export": ("export", "-f", "folded", "-o", os.devnull),
    "info": ("info",),
}
LIMIT, FIRST, AGAIN, WITHOUT = "SQL limit", "first opening", "opening again", "without the cache"


class Cost(NamedTuple):
    """What a process has taken: seconds, and MiB at its peak."""

    wall: float
    cpu: float
    peak: float


def run(command: list[str], cache: str) -> Cost:
    """Runs a process to its end."""
    environment = os.environ | {"XDG_CACHE_HOME": cache, "PYTHONPYCACHEPREFIX": BYTECODE.name}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # or every start would compile flame
    begin = time.perf_counter()
    process = subprocess.Popen(
        command,
        cwd=HERE.parent,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"exit {process.returncode}: {' '.join(command)}")
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return Cost(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / unit)


def measure(path: Path, words: tuple[str, ...], rounds: int) -> dict[str, Cost]:
    """Measures one command on `path`."""
    found: dict[str, list[Cost]] = {name: [] for name in (LIMIT, FIRST, AGAIN, WITHOUT)}
    command = [*FLAME, words[0], *words[1:], str(path)]
    run(sql_command(path), os.devnull)  # warms the page cache
    run([*FLAME, "--version"], os.devnull)
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            found[LIMIT].append(run(sql_command(path), cache))
            found[FIRST].append(run(command, cache))
            found[AGAIN].append(run(command, cache))
            found[WITHOUT].append(run([*command, "--no-cache"], cache))
    return {
        name: Cost(*map(statistics.median, zip(*costs, strict=True)))
        for name, costs in found.items()
    }


def report(path: Path, name: str, found: dict[str, Cost]) -> str:
    """Says what came out, as ratios to the SQL limit and to opening without the cache."""
    size, limit, without = path.stat().st_size / 2**20, found[LIMIT], found[WITHOUT]
    lines = [f"{path.name}, flame {name}: {size:.0f} MiB"]
    for what, (wall, cpu, peak) in found.items():
        ratios = f"{cpu / limit.cpu:5.2f} x SQL, {cpu / without.cpu:5.2f} x without"
        memory = f"peak {peak:5.0f} MiB = {peak / size:.2f} x file"
        lines.append(f"  {what:<18} wall {wall:6.2f} s  CPU {cpu:6.2f} s = {ratios}  {memory}")
    return "\n".join(lines)


def main() -> None:
    """Measures the traces named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("traces", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--commands", nargs="+", choices=COMMANDS, default=["view", "export"])
    args = parser.parse_args()
    _check_room()
    for path in args.traces:
        for name in args.commands:
            found = measure(path.resolve(), COMMANDS[name], args.rounds)
            print(report(path, name, found), flush=True)


def _check_room() -> None:
    """Ends where nothing would be kept."""
    disk = shutil.disk_usage(tempfile.gettempdir())
    if disk.free < min(disk.total // 10, 5 * 10**9) + 10**9:
        raise SystemExit("the disk is nearly full: flame would keep nothing")


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
