#!/usr/bin/env python3
"""Measures loading a source page of Nsight Compute against Python's csv module reading its cells.

Both are whole processes with a warm cache, in turn, medians of three: ratios can be compared
between machines, seconds cannot. Processor time (user and system) hardly depends on what else the
machine does. Exit status 1 where the samples of a page made here are not found.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from benchmarks.support.measuring import Run, medians, run  # noqa: E402
from tests.support.writers.ncufile import Row, sass_page  # noqa: E402

# numpy stays out of this process: a child's peak memory begins at that of the process it is
# spawned from.
ROUNDS = 3
INSTRUCTIONS, LARGE = 100_000, 1_000_000
KERNEL = 2_000
"""Instructions of a kernel."""
REASONS = (
    *("stall_barrier", "stall_branch_resolve", "stall_dispatch", "stall_drain", "stall_imc"),
    *("stall_lg", "stall_long_sb", "stall_math", "stall_membar", "stall_mio", "stall_misc"),
    *("stall_no_inst", "stall_not_selected", "stall_selected", "stall_short_sb", "stall_wait"),
)
METRICS = tuple(f"metric_{number}" for number in range(9))
CELLS = """
import csv, sys
with open(sys.argv[1], newline="") as file:
    print(sum(map(len, csv.reader(file))))
"""
LOAD = """
import sys
import flame
print(flame.load(sys.argv[1]).profile.sampling.samples.sum())
"""


def write(path: Path, instructions: int) -> int:
    """Writes a page of kernels, most of whose cells are 0; returns the sum of their samples."""
    draw, total = random.Random(1), 0
    with path.open("w") as file:
        for first in range(0, instructions, KERNEL):
            rows = [
                Row(
                    f"LDG.E.{at % 64} R{at % 255}, [R4+0x{at:x}] ",
                    {draw.choice(REASONS): draw.randrange(1, 900) for _ in range(at % 4)},
                )
                for at in range(min(KERNEL, instructions - first))
            ]
            total += sum(int(one) for row in rows for one in row.samples.values())
            file.write(sass_page(f"kernel_{first}", rows, names=(*REASONS, *METRICS)))
    return total


def report(path: Path) -> int:
    """Measures ``path`` and says what came out; the samples that flame found."""
    codes = {"csv module": CELLS, "flame": LOAD}
    runs: dict[str, list[Run]] = {name: [] for name in codes}
    for _ in range(ROUNDS):
        for name, code in codes.items():
            runs[name].append(run([sys.executable, "-c", code, str(path)]))
    median, size = {name: medians(each) for name, each in runs.items()}, path.stat().st_size
    print(f"{path.name}: {size / 2**20:.0f} MiB")
    print("                CPU s   x csv  peak MiB  x file")
    for name, one in median.items():
        print(
            f"  {name:12}{one.cpu:7.2f}{one.cpu / median['csv module'].cpu:8.2f}"
            f"{one.memory / 2**20:10.0f}{one.memory / size:8.2f}"
        )
    return int(median["flame"].output)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, help="a source page; else one is made")
    parser.add_argument(
        "--instructions", type=int, default=INSTRUCTIONS, help="in that page (%(default)s)"
    )
    parser.add_argument("--large", action="store_true", help=f"as --instructions {LARGE}")
    args = parser.parse_args()
    if args.file:
        report(args.file.resolve())
        return 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.csv"
        total = write(path, LARGE if args.large else args.instructions)
        return 0 if report(path) == total else 1


if __name__ == "__main__":
    sys.exit(main())
