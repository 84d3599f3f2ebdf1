#!/usr/bin/env python3
"""Measures `flame report` against `flame info` on the same trace, in the same rounds.

All of it, and single sections; whole processes without the cache, medians. CPU time is user and
system. Where Nsight Systems is there, NVIDIA's reports that tell what a section does take part: how
many times that of flame they take. Its rule of GPU gaps is no script that runs by itself, and its
reports of copies have nothing to do on a generated trace.

    python benchmarks/bench_report.py [TRACE] [--kernels SIZE] [--rounds N] [--sections S …]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.bench_peers import measured, nvidia_report, times
from benchmarks.support.measuring import Run, Way, generated, run
from benchmarks.support.peers import NSYS
from benchmarks.support.rows import Row, add_option, tell

FLAME = (sys.executable, "-m", "flame")
INFO, ALL = "info", "all"
SECTIONS = ("findings", "budget", "idle", "kernels", "launches", "api", "ranges", "iterations")
NVIDIA = {
    "cuda_gpu_kern_sum": "kernels",
    "cuda_kern_exec_sum": "launches",
    "cuda_api_sum": "api",
    "nvtx_sum": "ranges",
    "nvtx_gpu_proj_sum": "ranges",
}
"""Reports of Nsight Systems, and the sections that tell the same, and more."""


def measure(path: Path, sections: list[str], rounds: int) -> dict[str, Run]:
    """Measures `info`, the whole report, each section by itself, and NVIDIA's reports on them."""
    report = (*FLAME, "report", "--json", "--no-cache", str(path))
    ways = {INFO: Way((*FLAME, "info", "--json", "--no-cache", str(path))), ALL: Way(report)}
    ways |= {name: Way((*report, "--section", name)) for name in sections}
    if reports := NSYS.found():
        wanted = [name for name, section in NVIDIA.items() if section in sections]
        ways |= {name: nvidia_report(reports, name, path) for name in wanted}
    else:
        print(f"without {NSYS.name}: it comes from {NSYS.how}")
    run(ways[INFO].command)  # warms the page cache
    return measured(ways, rounds)


def rows(name: str, found: Mapping[str, Run]) -> Iterator[Row]:
    """The ratios to `info`: what a report costs beside the load; then those of NVIDIA's reports."""
    info, title = found[INFO], f"{name} kernels"
    for what, one in found.items():
        if what != INFO and what not in NVIDIA:
            yield from _beside(
                f"report, {'all sections' if what == ALL else what}, {title}", one, info
            )
    peers = {what: one for what, one in found.items() if what in NVIDIA}
    for what, one in peers.items():
        section = NVIDIA[what]
        told = f"NVIDIA {what} to section {section}, {title}"
        yield times(told, one, found[section], "flame report")
    if peers:
        told = f"NVIDIA's {len(peers)} reports one by one, {title}"
        yield times(told, _together(peers.values()), found[ALL], "flame report")


def _beside(title: str, one: Run, info: Run) -> Iterator[Row]:
    walls = f"wall {one.wall:.2f} of {info.wall:.2f} s: {one.wall / info.wall:.2f}"
    memory = f"{one.memory / 2**20:.0f} of {info.memory / 2**20:.0f} MiB"
    yield Row(title, one.cpu / info.cpu, "x flame info", walls)
    yield Row(f"{title}: peak memory", one.memory / info.memory, "x flame info", memory)


def _together(runs: Iterable[Run]) -> Run:
    """One run after the other."""
    every = list(runs)
    wall, cpu = sum(one.wall for one in every), sum(one.cpu for one in every)
    return Run(wall, cpu, max(one.memory for one in every))


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
