#!/usr/bin/env python3
"""Measures `flame diff` of two traces against `flame info` on both, in the same rounds.

All sections, and those of the picture alone; whole processes without the cache, medians. CPU time
is user and system.

    python benchmarks/bench_diff.py [BASE NEW] [--kernels SIZE] [--rounds N]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from shutil import copyfile

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.bench_peers import measured
from benchmarks.support.measuring import Run, Way, generated, run
from benchmarks.support.rows import Row, add_option, tell

FLAME = (sys.executable, "-m", "flame")
BASE, NEW = "info of base", "info of new"
WAYS = {
    "all sections": (),
    "frames and kernels": ("--section", "summary,frames,kernels"),
    "folded": ("-f", "folded"),
}


def measure(base: Path, new: Path, rounds: int) -> dict[str, Run]:
    """Measures `info` on either trace, and ways to compare them."""
    ways = {
        name: Way((*FLAME, "info", "--json", "--no-cache", str(path)))
        for name, path in ((BASE, base), (NEW, new))
    }
    diff = (*FLAME, "diff", "--no-cache", str(base), str(new))
    ways |= {name: Way((*diff, *words)) for name, words in WAYS.items()}
    for name in (BASE, NEW):
        run(ways[name].command)  # warms the page cache
    return measured(ways, rounds)


def rows(name: str, found: Mapping[str, Run]) -> Iterator[Row]:
    """The ratios to both loads together."""
    base, new = found[BASE], found[NEW]
    cpu, wall, memory = base.cpu + new.cpu, base.wall + new.wall, base.memory + new.memory
    for way in WAYS:
        one, title = found[way], f"diff, {way}, {name} kernels a side"
        words = f"wall {one.wall:.2f} of {wall:.2f} s: {one.wall / wall:.2f}"
        yield Row(title, one.cpu / cpu, "x two flame info", words)
        words = f"{one.memory / 2**20:.0f} of {memory / 2**20:.0f} MiB"
        yield Row(f"{title}: peak memory", one.memory / memory, "x two flame info", words)


def kept_base(name: str, trace: Path, folder: Path) -> Row:
    """The size of what is kept of a trace, to compare with it later."""
    kept = folder / "kept.flame-base.json.gz"
    run((*FLAME, "diff", "--no-cache", str(trace), "--keep-base", str(kept)))
    sizes = kept.stat().st_size, trace.stat().st_size
    words = f"of a trace of {sizes[1] / 1e6:.0f} MB"
    return Row(f"kept base, {name} kernels: size", sizes[0] / 1e6, "MB", words)


def main() -> None:
    """Measures the traces named on the command line, or a generated one and its copy."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("traces", nargs="*", type=Path, metavar="TRACE")
    parser.add_argument("--kernels", choices=("100k", "1M"), default="100k", help="to generate")
    parser.add_argument("--rounds", type=int, default=3)
    add_option(parser)
    args = parser.parse_args()
    if len(args.traces) not in (0, 2):
        parser.error("name two traces, or none")
    with tempfile.TemporaryDirectory() as folder:
        base, new = args.traces or (generated(Path(folder), args.kernels), Path(folder) / "new")
        if not args.traces:
            copyfile(base, new)
        found = [*rows(base.stem, measure(base.resolve(), new.resolve(), args.rounds))]
        found.append(kept_base(base.stem, base.resolve(), Path(folder)))
        tell(found, args.json)


if __name__ == "__main__":
    main()
