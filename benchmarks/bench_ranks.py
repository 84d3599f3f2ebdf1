#!/usr/bin/env python3
"""Measures how the summary of many ranks grows, and what it spares against all files at once.

Clones of a generated rank, all with other numbers, are summed up, written and read in one process,
and their summaries are opened and reported on by others. Of fewer ranks, which are files, summing
up is compared with loading all of them as one trace, in the same rounds.

    python benchmarks/bench_ranks.py [--ranks 64 256 1024 4096] [--files 64] [--trace FILE]
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.bench_peers import measured
from benchmarks.bench_start import COLUMNS, ENVIRONMENT, PATIENCE, ROWS
from benchmarks.support.measuring import ROOT, Run, Way, run
from benchmarks.support.rows import Row, add_option, tell

FLAME = (sys.executable, "-m", "flame")
CLONE = (sys.executable, str(ROOT / "benchmarks" / "clone_ranks.py"))
GENERATE = """
import sys
from pathlib import Path
from tests.support.ranks.rank_traces import write_ranks
write_ranks(Path(sys.argv[1]), int(sys.argv[2]), steps=12, layers=24)
"""
AT_ONCE = """
import sys
from flame.core.loading.many import load_all
from flame.core.projection.project import project
from flame.core.projection.selection import select
project(load_all(sys.argv[1:]), select("rank,nvtx,kernel"))
"""
QUIET = 1.0
"""Seconds without output, after which the app has done what a key asked for."""
KEYS = b"\tj\t\t\t"
"""Through all views."""


def cloned(folder: Path, ranks: Sequence[int], trace: Path | None) -> dict[int, dict[str, float]]:
    """What `clone_ranks.py` has measured of each size; the summaries are in ``folder``."""
    words = ["--trace", str(trace)] if trace else []
    output = run([*CLONE, str(folder), *words, "--ranks", *map(str, ranks)]).output
    return {int(size): times for size, times in json.loads(output).items()}


def growth(found: Mapping[int, Mapping[str, float]]) -> Iterator[Row]:
    """What a rank takes in each size, and how its share grows."""
    for size, times in found.items():
        of = f"{times['merge']:.2f} s; {times['groups']} groups, {times['collectives']} collectives"
        yield Row(f"merge, {size:,} ranks: CPU", 1e3 * times["merge"] / size, "ms a rank", of)
        kilobytes = times["bytes"] / size / 1e3
        yield Row(f"summary, {size:,} ranks", kilobytes, "kB a rank", f"{times['bytes']:,.0f} B")
    sizes = sorted(found)
    for less, more in pairwise(sizes):
        ratio, of = found[more]["merge"] / found[less]["merge"], f"{more / less:g} x the ranks"
        yield Row(f"merge, {more:,} of {less:,} ranks", ratio, "x", of)
    for what in ("waits", "with waits", "pack", "unpack"):
        seconds, name = found[sizes[-1]][what], f"{what}, {sizes[-1]:,} ranks: CPU"
        yield Row(name, 1e3 * seconds / sizes[-1], "ms a rank", f"{seconds:.2f} s")


def opened(path: Path, ranks: int) -> Iterator[Row]:
    """What opening a summary takes, and reporting on it."""
    of = f"of {ranks:,} ranks"
    for what, words in {
        "flame view --print": ("view", "--print"),
        "flame report": ("report",),
        "flame ranks": ("ranks",),
    }.items():
        one = run([*FLAME, *words, str(path)])
        memory = f"peak memory {one.memory / 1e6:.0f} MB"
        yield Row(f"{what} {of}: CPU", one.cpu, "s", f"wall {one.wall:.2f} s, {memory}")
    yield Row(f"flame view {of}: peak memory", app_memory(path) / 1e6, "MB", "through all views")


def app_memory(path: Path) -> int:
    """The most memory that the app takes, in bytes, when it has shown all views."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    environment = os.environ | ENVIRONMENT
    command = [*FLAME, "view", str(path)]
    child = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=slave, stdout=slave, stderr=slave
    )
    os.close(slave)
    try:
        read_until_quiet(master, b"heaviest")
        for key in KEYS:
            os.write(master, bytes([key]))
            read_until_quiet(master)
    finally:
        child.send_signal(signal.SIGKILL)
        _, _, used = os.wait4(child.pid, 0)
        child.returncode = -signal.SIGKILL
        os.close(master)
    return int(used.ru_maxrss) * (1 if sys.platform == "darwin" else 2**10)


def read_until_quiet(terminal: int, text: bytes = b"") -> None:
    """Read what is drawn, up to ``text`` and until nothing comes any more."""
    drawn, end = b"", time.perf_counter() + PATIENCE
    while True:
        if select.select([terminal], [], [], QUIET)[0]:
            drawn += os.read(terminal, 1 << 16)
        elif text in drawn:
            return
        elif time.perf_counter() > end:
            raise SystemExit(f"the app has not drawn {text!r} in {PATIENCE:.0f} s")


def against_all_at_once(folder: Path, ranks: int, rounds: int) -> Iterator[Row]:
    """Compare summing up so many files, and opening that, with loading them as one trace."""
    generate = [sys.executable, "-c", GENERATE, str(folder / "files"), str(ranks)]
    subprocess.run(generate, cwd=ROOT, check=True)
    paths, summary = sorted(map(str, (folder / "files").iterdir())), str(folder / "run.flamesum")
    once, summed, again = "all at once", "summed up", "the summary"
    ranks_of = (*FLAME, "ranks", *paths, "-o", summary, "--force")
    ways = {
        once: Way((sys.executable, "-c", AT_ONCE, *paths)),
        summed: Way(ranks_of),
        again: Way((*FLAME, "view", "--print", "--levels", "rank,nvtx,kernel", summary)),
    }
    found = measured(ways, rounds)
    for what, way in (("flame ranks of", summed), ("flame view of the summary of", again)):
        yield from ratios(f"{what} {ranks} files", found[way], found[once])


def ratios(name: str, one: Run, whole: Run) -> Iterator[Row]:
    """Processor time and peak memory against loading all."""
    unit = "x all at once"
    of = f"{one.cpu:.2f} of {whole.cpu:.2f} s"
    yield Row(f"{name}: CPU", one.cpu / whole.cpu, unit, of)
    of = f"{one.memory / 1e6:.0f} of {whole.memory / 1e6:.0f} MB, of the largest process"
    yield Row(f"{name}: peak memory", one.memory / whole.memory, unit, of)


def rows(args: argparse.Namespace, folder: Path) -> Iterator[Row]:
    """Measure all that is asked for."""
    yield from growth(cloned(folder, args.ranks, args.trace))
    yield from opened(folder / f"{max(args.ranks)}.flamesum", max(args.ranks))
    if args.files:
        yield from against_all_at_once(folder, args.files, args.rounds)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    sizes = [64, 256, 1_024, 4_096]
    parser.add_argument("--ranks", type=int, nargs="+", default=sizes, help="how many clones")
    parser.add_argument("--files", type=int, default=64, help="ranks that are files; 0: none")
    parser.add_argument("--trace", type=Path, help="of the rank to clone; else one is generated")
    parser.add_argument("--rounds", type=int, default=3)
    add_option(parser)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tell(rows(args, Path(folder)), args.json)


if __name__ == "__main__":
    main()
