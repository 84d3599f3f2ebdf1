#!/usr/bin/env python3
"""Measures opening several traces at once against reading the same ones one after another.

Also what it costs that each is read by a process of its own: bytes that cross, and the time for
it. Whole processes with a warm cache, medians of three, in one run: ratios can be compared between
machines, seconds cannot.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.support.measuring import generated
from benchmarks.support.rows import Row, add_option, tell

HERE = Path(__file__).resolve().parent
ROUNDS = 3
ONE_BY_ONE = """
import json, sys, time
from pathlib import Path
from flame.core.loading.many import load
from flame.core.loading.merge.profiles import merge_profiles
from flame.core.loading.source_labels import label_sources
profiles = [load(path) for path in sys.argv[1:]]
begin = time.perf_counter()
whole = merge_profiles(profiles, label_sources([one.meta for one in profiles]))
print(json.dumps({"merge": time.perf_counter() - begin, "time": whole.gpu_time}))
"""
TOGETHER = """
import json, sys
from flame.core.loading.many import load_all
print(json.dumps({"time": load_all(sys.argv[1:]).gpu_time}))
"""
TRANSFER = """
import json, os, pickle, sys, threading, time
from flame.core.loading.many import load
profile = load(sys.argv[1])
begin = time.perf_counter()
buffers = []
data = pickle.dumps(profile, protocol=5, buffer_callback=buffers.append)
parts = [data, *(buffer.raw() for buffer in buffers)]
pickled = time.perf_counter()
end, other = os.pipe()
def send():
    with os.fdopen(other, "wb") as file:
        file.writelines(parts)
sender = threading.Thread(target=send)
sender.start()
with os.fdopen(end, "rb") as file:
    received = [bytearray(len(part) if part is data else part.nbytes) for part in parts]
    for part in received:
        file.readinto(part)
sender.join()
piped = time.perf_counter()
pickle.loads(received[0], buffers=received[1:])
print(json.dumps({
    "bytes": sum(map(len, received)),
    "pickle": pickled - begin,
    "pipe": piped - pickled,
    "unpickle": time.perf_counter() - piped,
}))
"""


def measured(program: str, paths: list[Path]) -> tuple[float, dict[str, float]]:
    """Median wall time in s of a process that runs ``program``, and medians of what it prints."""
    walls, told = [], []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        command = [sys.executable, "-c", program, *map(str, paths)]
        done = subprocess.run(command, cwd=HERE.parent, check=True, stdout=subprocess.PIPE)
        walls.append(time.perf_counter() - begin)
        told.append(json.loads(done.stdout))
    medians = {key: statistics.median(one[key] for one in told) for key in told[0]}
    return statistics.median(walls), medians


def rows(paths: list[Path]) -> list[Row]:
    """Measures `paths`."""
    for path in paths:
        path.read_bytes()  # warms the cache
    alone, before = measured(ONE_BY_ONE, paths)
    together, after = measured(TOGETHER, paths)
    assert before["time"] == after["time"]
    _, way = measured(TRANSFER, paths[:1])
    size = sum(path.stat().st_size for path in paths) / 2**20
    seconds = way["pickle"] + way["pipe"] + way["unpickle"]
    parts = f"pickle {way['pickle']:.2f}, pipe {way['pipe']:.2f}, unpickle {way['unpickle']:.2f} s"
    name = f"{len(paths)} files of {size / len(paths):.0f} MiB"
    walls = f"wall {together:.2f} of {alone:.2f} s on {os.cpu_count()} processors"
    merging = f"merging {before['merge']:.2f} s"
    return [
        Row(f"{name} in processes", together / alone, "x one by one", f"{walls}; {merging}"),
        Row(
            f"{name}, each between processes",
            seconds,
            "s",
            f"{way['bytes'] / 2**20:.0f} MiB: {parts}",
        ),
    ]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--kernels", choices=("100k", "1M"), default="100k", help="in each file")
    parser.add_argument("--count", type=int, default=4, help="how many files to generate")
    add_option(parser)
    args = parser.parse_args()
    if args.files:
        tell(rows([path.resolve() for path in args.files]), args.json)
        return
    with tempfile.TemporaryDirectory() as folder:
        trace = generated(Path(folder), args.kernels)
        paths = [Path(folder) / f"rank{number}.sqlite" for number in range(args.count)]
        for path in paths:
            shutil.copyfile(trace, path)
        tell(rows(paths), args.json)


if __name__ == "__main__":
    main()
