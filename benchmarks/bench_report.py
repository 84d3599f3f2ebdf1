#!/usr/bin/env python3
"""Measures `flame report` against `flame info` on the same trace, in the same rounds.

All of it, and single sections; whole processes without the cache, medians. CPU time is user and
system.

    python benchmarks/bench_report.py [TRACE] [--kernels SIZE] [--rounds N] [--sections S …]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.support.measuring import Run, Way, generated, in_turn, medians, run
from benchmarks.support.rows import Row, add_option, tell

FLAME = (sys.executable, "-m", "flame")
INFO, ALL = "info", "all"
SECTIONS = ("findings", "budget", "idle", "kernels", "launches", "api", "ranges", "iterations")


def measure(path: Path, sections: list[str], rounds: int) -> dict[str, Run]:
    """Measures `info`, the whole report, and each section by itself."""
    report = (*FLAME, "report", "--json", "--no-cache", str(path))
    ways = {INFO: Way((*FLAME, "info", "--json", "--no-cache", str(path))), ALL: Way(report)}
    ways |= {name: Way((*report, "--section", name)) for name in sections}
    run(ways[INFO].command)  # warms the page cache
    return {name: medians(runs) for name, runs in in_turn(ways, rounds).items()}


def rows(name: str, found: Mapping[str, Run]) -> Iterator[Row]:
    """The ratios to `info`: what a report costs beside the load."""
    info = found[INFO]
    for what, one in found.items():
        if what != INFO:
            title = f"report, {'all sections' if what == ALL else what}, {name} kernels"
            walls = f"wall {one.wall:.2f} of {info.wall:.2f} s: {one.wall / info.wall:.2f}"
            memory = f"{one.memory / 2**20:.0f} of {info.memory / 2**20:.0f} MiB"
            yield Row(title, one.cpu / info.cpu, "x flame info", walls)
            yield Row(f"{title}: peak memory", one.memory / info.memory, "x flame info", memory)


def main() -> None:
    """Measures the trace named on the command line, or a generated one."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("trace", nargs="?", type=Path)
    parser.add_argument("--kernels", choices=("100k", "1M"), default="100k", help="to generate")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sections", nargs="*", default=list(SECTIONS))
    add_option(parser)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = args.trace or generated(Path(folder), args.kernels)
        found = measure(path.resolve(), args.sections, args.rounds)
        tell(rows(path.stem, found), args.json)


if __name__ == "__main__":
    main()
