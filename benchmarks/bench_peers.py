#!/usr/bin/env python3
"""Measures other programs on the traces that flame reads, in turn with flame.

What each does is the nearest it has to a tree of GPU time by range and kernel: NVIDIA's reports
`cuda_gpu_kern_sum` and `nvtx_kern_sum`, nsys2json's conversion, nsys-ai's preparation of a trace
and the map of kernels that it then answers from its cache; on a PyTorch trace `json.load` and the
breakdown of kernels by HTA. flame exports folded stacks, and opens the trace again from its cache.
Processor time of whole processes; how many times that of flame. Peers that are not installed are
left out and named.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.bench_load import sql_command
from benchmarks.support.measuring import ROOT, Run, Way, generated, medians, run
from benchmarks.support.peers import HTA, NSYS, NSYS2JSON, NSYS_AI, PEERS
from benchmarks.support.rows import Row, add_option, tell

FLAME, AGAIN = "flame", "flame again"
PYTHON = "import sys, json; json.load(open(sys.argv[1], 'rb'))"
BY_HTA = """
import sys
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_files={0: sys.argv[1]})
analysis.get_gpu_kernel_breakdown(visualize=False)
"""
JSON_LOAD = "json.load"


def export(path: Path, *options: str) -> list[str]:
    """Flame's own command."""
    flame = [sys.executable, "-m", "flame", "export", "-f", "folded", "-o", os.devnull]
    return [*flame, *options, str(path)]


def of_nsys(path: Path) -> dict[str, Way]:
    """All that reads an export of Nsight Systems, flame first."""
    ways = {FLAME: Way(export(path, "--no-cache")), "SQL limit": Way(sql_command(path))}
    if reports := NSYS.found():
        for name in ("cuda_gpu_kern_sum", "nvtx_kern_sum"):
            ways[f"NVIDIA {name}"] = nvidia_report(reports, name, path)
    if script := NSYS2JSON.found():
        output = str(path.with_suffix(".json"))
        ways[NSYS2JSON.name] = Way([sys.executable, str(script), "-f", str(path), "-o", output])
    return ways


def nvidia_report(reports: Path, name: str, path: Path) -> Way:
    """How the script ``name`` in the folder ``reports`` of Nsight Systems is run on an export."""
    # They call functions that only the SQLite of Nsight Systems has.
    sqlite = str(reports.parent / "libsqlite3.so.0")
    library = {"PYTHONPATH": str(reports.parent / "python" / "lib"), "LD_PRELOAD": sqlite}
    return Way([sys.executable, str(reports / f"{name}.py"), str(path)], library)


def of_torch(path: Path) -> dict[str, Way]:
    """All that reads a trace of the PyTorch profiler."""
    ways = {
        FLAME: Way(export(path, "--no-cache")),
        JSON_LOAD: Way([sys.executable, "-c", PYTHON, str(path)]),
    }
    if python := HTA.found():
        ways["HTA"] = Way([str(python), "-c", BY_HTA, str(path)])
    return ways


def measured(ways: dict[str, Way], rounds: int) -> dict[str, Run]:
    """The medians of all that work here; the others are told."""
    found: dict[str, list[Run]] = {}
    for number in range(rounds):
        for name, way in ways.items():
            if not number or name in found:
                try:
                    found.setdefault(name, []).append(run(*way))
                except SystemExit as failure:
                    found.pop(name, None)
                    print(f"without {name}: {failure}", flush=True)
    return {name: medians(runs) for name, runs in found.items()}


def on_nsys(path: Path, rounds: int) -> Iterator[Row]:
    """How many times flame's processor time the others take."""
    run(sql_command(path))  # warms the cache
    found = measured(of_nsys(path), rounds)
    title = f"{path.stem} kernels"
    for name, one in found.items():
        if name != FLAME:
            yield times(f"{name}, {title}", one, found[FLAME])
    yield from by_nsys_ai(path, found[FLAME], title)


def by_nsys_ai(path: Path, ours: Run, title: str) -> Iterator[Row]:
    """nsys-ai, which writes its cache beside the trace; and both from what they have kept."""
    program = NSYS_AI.found()
    if not program:
        return
    prepare = {"nsys-ai": Way([str(program), "warm", str(path)])}
    if not (prepared := measured(prepare, 1)):
        return
    yield times(f"nsys-ai from nothing, {title}", prepared["nsys-ai"], ours)
    with tempfile.TemporaryDirectory() as cache:
        own = {"XDG_CACHE_HOME": cache}
        run(export(path), own)
        ways = {
            AGAIN: Way(export(path), own),
            "nsys-ai": Way([str(program), "skill", "run", "nvtx_kernel_map", str(path)]),
        }
        found = measured(ways, 3)
    if "nsys-ai" in found:
        yield times(f"nsys-ai from its cache, {title}", found["nsys-ai"], found[AGAIN], AGAIN)


def on_torch(path: Path, rounds: int, mib: int) -> Iterator[Row]:
    """The same on a trace of the PyTorch profiler, and flame by `json.load`."""
    found = measured(of_torch(path), rounds)
    title = f"PyTorch trace of {mib} MiB"
    cpu, plain = found[FLAME].cpu, found[JSON_LOAD].cpu
    yield Row(f"{title}, flame", cpu / plain, "x json.load", f"{cpu:.2f} of {plain:.2f} s")
    if "HTA" in found:
        yield times(f"HTA, {title}", found["HTA"], found[FLAME])


def times(name: str, one: Run, ours: Run, unit: str = FLAME) -> Row:
    """How many times ``ours`` it took."""
    cpu = f"{one.cpu:.2f} of {ours.cpu:.2f} s"
    memory = f"{one.memory / 2**20:,.0f} of {ours.memory / 2**20:,.0f} MiB"
    return Row(name, one.cpu / ours.cpu, f"x {unit}", f"{cpu}, {memory}")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", choices=("100k", "1M"), default="100k", help="to generate")
    parser.add_argument("--mib", type=int, default=100, help="of the PyTorch trace")
    parser.add_argument("--rounds", type=int, default=1, help="default: %(default)s")
    add_option(parser)
    args = parser.parse_args()
    for peer in PEERS:
        if not peer.found():
            print(f"without {peer.name}: it comes from {peer.how}")
    with tempfile.TemporaryDirectory() as folder:
        rows = list(on_nsys(generated(Path(folder), args.kernels), args.rounds))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "torch.json"
        script = str(ROOT / "benchmarks" / "generate_kineto.py")
        subprocess.run([sys.executable, script, str(path), "--mib", str(args.mib)], check=True)
        rows += on_torch(path, args.rounds, args.mib)
    tell(rows, args.json)


if __name__ == "__main__":
    main()
