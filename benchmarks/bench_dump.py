#!/usr/bin/env python3
"""Measures loading a dump of many PC samples against a plain loop in Python that counts them.

Samples are told of kernels (few differ in more than time) or of launches (most do). All are whole
processes with a warm cache, in turn, medians of three: ratios can be compared between machines,
seconds cannot. Processor time (user and system) hardly depends on what else the machine does. Exit
status 1 where the sums differ.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from benchmarks.support.measuring import Run, medians, run  # noqa: E402
from tests.support.writers.fdumpfile import STALL_REASON, DumpFile, layouts  # noqa: E402

# numpy stays out of this process: a child's peak memory begins at that of the process it is
# spawned from.
ROUNDS = 3
SAMPLES, LARGE = 500_000, 2_000_000
LAUNCHES, KERNELS, INSTRUCTIONS = 20_000, 50, 2_000
REASONS = ("long_scoreboard", "wait", "selected", "barrier", "mio_throttle", "branch_resolve")
PLAIN = """
import json, operator, struct, sys
from collections import Counter
from pathlib import Path
from tests.support.writers import fdumprecords
path, counts = Path(sys.argv[1]), Counter()
of = fdumprecords.schema(path)["sample"]
row = struct.Struct("<" + "".join({"u4": "I", "u8": "Q"}[kind] for _, kind in of["fields"]))
names = [name for name, _ in of["fields"]]
key = [names.index(name) for name in ("crc", "function", "offset", "reason", "correlation")]
told, samples = operator.itemgetter(*key), names.index("samples")
for kind, _, data in fdumprecords.chunks(path):
    if kind == of["type"]:
        for one in row.iter_unpack(data):
            counts[told(one)] += one[samples]
print(json.dumps({"total": sum(counts.values()), "rows": len(counts)}))
"""
LOAD = """
import json, sys
import flame
sampling = flame.load(sys.argv[1]).profile.sampling
print(json.dumps({"total": int(sampling.samples.sum()), "rows": len(sampling.samples)}))
"""
NOTHING = "import numpy, flame.core.loading.many, flame.core.projection.project"


def write(path: Path, samples: int, of_launches: bool) -> None:
    """Writes a dump of so many records of samples."""
    import numpy as np

    random = np.random.default_rng(1)
    dump = DumpFile()
    for number, reason in enumerate(REASONS):
        dump.name(STALL_REASON, number, f"smsp__pcsamp_warps_issue_stalled_{reason}")
    functions = np.array([dump.text(f"kernel_{number}") for number in range(KERNELS)])
    for number in range(LAUNCHES):
        start, correlation = 1_000 * number, number + 1
        python = dump.python(("step", "model.py", number % 97))
        dump.launch(start, start + 50, correlation, python=python)
        dump.kernel(f"kernel_{number % KERNELS}", start + 100, start + 900, correlation)
    wide = np.dtype([(name, f"<{kind}") for name, kind in layouts()["sample"][1]])
    rows = np.zeros(samples, wide)
    launch = np.sort(random.integers(0, LAUNCHES, samples))
    rows["correlation"] = launch + 1 if of_launches else 0
    rows["function"] = functions[launch % KERNELS]
    rows["crc"] = 1
    rows["offset"] = random.integers(0, INSTRUCTIONS, samples) * 16
    rows["reason"] = random.integers(0, len(REASONS), samples)
    rows["samples"] = random.integers(1, 20, samples)
    dump.put_many("sample", rows.tobytes())
    dump.end = 1_000 * LAUNCHES
    dump.write(path)


def report(path: Path) -> bool:
    """Measures ``path`` and says what came out; whether the sums agree."""
    codes = {"plain loop": PLAIN, "flame": LOAD}
    runs: dict[str, list[Run]] = {name: [] for name in codes}
    for _ in range(ROUNDS):
        for name, code in codes.items():
            runs[name].append(run([sys.executable, "-c", code, str(path)]))
    base, size = run([sys.executable, "-c", NOTHING]).memory, path.stat().st_size
    median = {name: medians(each) for name, each in runs.items()}
    plain, flame = (json.loads(one.output) for one in median.values())
    print(f"{path.stem}: {size / 2**20:.0f} MiB, {plain['rows']:,} different samples")
    print("                CPU s  x loop  peak MiB  x file  less base")
    for name, one in median.items():
        print(
            f"  {name:12}{one.cpu:7.2f}{one.cpu / median['plain loop'].cpu:8.2f}"
            f"{one.memory / 2**20:10.0f}{one.memory / size:8.2f}{(one.memory - base) / size:11.2f}",
            flush=True,
        )
    return bool(plain["total"] == flame["total"])


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=SAMPLES, help="records (%(default)s)")
    parser.add_argument("--large", action="store_true", help=f"as --samples {LARGE}")
    args = parser.parse_args()
    samples, fine = LARGE if args.large else args.samples, True
    with tempfile.TemporaryDirectory() as folder:
        for name, of_launches in (("kernels", False), ("launches", True)):
            path = Path(folder) / f"{name}.fdump"
            writer = multiprocessing.get_context("spawn").Process(
                target=write, args=(path, samples, of_launches)
            )
            writer.start()
            writer.join()
            fine &= report(path)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
