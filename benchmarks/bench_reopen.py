#!/usr/bin/env python3
"""Measures opening a trace again against its first opening, and both against the SQL limit.

Rounds are interleaved, each of: the sqlite3 command that sums the needed columns, the first opening
(the cache is empty; what is kept for the next time is part of it), opening again, and the same
without the cache. All are whole processes of `flame view --print`, `flame export` and, for what
comes after, `flame info`. CPU time is user and system; medians.

    python benchmarks/bench_reopen.py [TRACE…] [--kernels SIZE] [--rounds N]
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.bench_load import sql_command
from benchmarks.support.measuring import Run, Way, generated, in_turn, medians, run
from benchmarks.support.rows import Row, add_option, tell

FLAME = (sys.executable, "-m", "flame")
COMMANDS = {
    "view": ("view", "--print"),
    "export": ("export", "-f", "folded", "-o", os.devnull),
    "info": ("info",),
}
LIMIT, FIRST, AGAIN, WITHOUT = "SQL limit", "first opening", "opening again", "without the cache"


def measure(path: Path, words: tuple[str, ...], rounds: int) -> dict[str, Run]:
    """Measures one command on `path`."""
    command = [*FLAME, *words, str(path)]
    run(sql_command(path))  # warms the page cache
    run([*FLAME, "--version"])
    found: dict[str, list[Run]] = {name: [] for name in (LIMIT, FIRST, AGAIN, WITHOUT)}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            own = {"XDG_CACHE_HOME": cache}
            ways = {
                LIMIT: Way(sql_command(path)),
                FIRST: Way(command, own),
                AGAIN: Way(command, own),
                WITHOUT: Way([*command, "--no-cache"]),
            }
            for name, runs in in_turn(ways, 1).items():
                found[name] += runs
    return {name: medians(runs) for name, runs in found.items()}


def report(path: Path, name: str, found: dict[str, Run]) -> str:
    """Says what came out, as ratios to the SQL limit and to opening without the cache."""
    size, limit, without = path.stat().st_size / 2**20, found[LIMIT], found[WITHOUT]
    lines = [f"{path.name}, flame {name}: {size:.0f} MiB"]
    for what, (wall, cpu, memory, _) in found.items():
        ratios = f"{cpu / limit.cpu:5.2f} x SQL, {cpu / without.cpu:5.2f} x without"
        peak = memory / 2**20
        taken = f"peak {peak:5.0f} MiB = {peak / size:.2f} x file"
        lines.append(f"  {what:<18} wall {wall:6.2f} s  CPU {cpu:6.2f} s = {ratios}  {taken}")
    return "\n".join(lines)


def rows(path: Path, name: str, found: dict[str, Run]) -> Iterator[Row]:
    """The ratios; those of `view` are the ones that there are goals for."""
    command = "" if name == "view" else f" by {name}"
    limit, without = found[LIMIT], found[WITHOUT]
    for what, title in ((AGAIN, "open again"), (FIRST, "first opening")):
        one, whole = found[what], f"{title}{command}, {path.stem} kernels"
        walls = f"wall {one.wall:.2f} of {limit.wall:.2f} s: {one.wall / limit.wall:.2f}"
        memory = f"{one.memory / 2**20:.0f} MiB"
        yield Row(whole, one.cpu / limit.cpu, "x SQL limit", walls)
        yield Row(f"{whole}: CPU", one.cpu, "s", f"without the cache {without.cpu:.2f} s")
        yield Row(f"{whole}: peak memory", one.memory / path.stat().st_size, "x file", memory)


def main() -> None:
    """Measures the traces named on the command line, or a generated one."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("traces", nargs="*", type=Path)
    parser.add_argument("--kernels", choices=("1M", "10M"), default="1M", help="to generate")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--commands", nargs="+", choices=COMMANDS, default=["view", "export"])
    add_option(parser)
    args = parser.parse_args()
    _check_room()
    told: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for path in args.traces or [generated(Path(folder), args.kernels)]:
            for name in args.commands:
                found = measure(path.resolve(), COMMANDS[name], args.rounds)
                print(report(path, name, found), flush=True)
                told += rows(path, name, found)
    tell(told, args.json)


def _check_room() -> None:
    """Ends where nothing would be kept."""
    disk = shutil.disk_usage(tempfile.gettempdir())
    if disk.free < min(disk.total // 10, 5 * 10**9) + 10**9:
        raise SystemExit("the disk is nearly full: flame would keep nothing")


if __name__ == "__main__":
    main()
