#!/usr/bin/env python3
"""Measures opening a memory snapshot of PyTorch against `pickle.load` of the same file.

The snapshot is generated, in the shape that real ones of a training run have: an allocation is
three events, the two of giving back share one list of frames, lists have 36 frames on average, and
frames are shared by all. Whole processes with a warm cache, in turn, medians: ratios can be
compared between machines, seconds cannot. In the same rounds: the check of the pickle alone.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.support.measuring import ROOT, Run, Way, in_turn, medians
from benchmarks.support.rows import Row, add_option, tell

# Nothing big is imported here: a child's peak memory begins at that of the process it is spawned
# from.
GENERATE = """
import pickle, random, sys

draw, size = random.Random(1), int(float(sys.argv[2]) * 1e6)
frames = [
    {
        "name": f"at::_ops::operator_{number}::call(at::Tensor const&, c10::SymInt)" + "x" * 60,
        "filename": "??" if number % 3 else f"/home/user/model/module_{number % 50}.py",
        "line": number % 3 == 0 and number + 1,
    }
    for number in range(650)
]
for one in frames:
    one["line"] = int(one["line"])
stacks = [draw.choices(frames, k=draw.randint(14, 58)) for _ in range(250)]
stream, context, note, pool = 0, "N/A", "", (0, 0)
BLOCK = 1 << 21


def entry(action, address, size, time, frames):
    return {
        "action": action,
        "addr": address,
        "size": size,
        "stream": stream,
        "time_us": time,
        "compile_context": context,
        "user_metadata": note,
        "frames": frames,
    }


def history(cycles):
    alive, free, end, time = {}, [], 0x7F0000000000, 1_780_000_000_000_000
    trace = []
    for _ in range(cycles):
        time += draw.randint(0, 3)
        if free:
            address = free.pop()
        else:
            address, end = end, end + BLOCK
        stack = draw.choice(stacks)
        requested = draw.randint(1, BLOCK)
        trace.append(entry("alloc", address, requested, time, list(stack)))
        alive[address] = requested, stack
        if len(alive) > 500:
            address = next(iter(alive)) if draw.random() < 0.5 else address
            requested, stack = alive.pop(address)
            back = list(draw.choice(stacks))
            trace.append(entry("free_requested", address, requested, time, back))
            trace.append(entry("free_completed", address, requested, time, back))
            free.append(address)
    return trace, alive, free


def block(address, requested, state, frames):
    return {
        "address": address,
        "size": BLOCK,
        "requested_size": requested,
        "state": state,
        "frames": frames,
    }


trace, alive, free = history(size // 520)
blocks = [block(at, one, "active_allocated", list(of)) for at, (one, of) in alive.items()]
blocks += [block(at, 0, "inactive", []) for at in free]
segments = [
    {
        "device": 0,
        "address": one["address"],
        "total_size": BLOCK,
        "allocated_size": BLOCK,
        "requested_size": one["requested_size"],
        "stream": stream,
        "segment_type": "large",
        "segment_pool_id": pool,
        "is_expandable": False,
        "frames": [],
        "blocks": [one],
    }
    for one in blocks
]
whole = {
    "segments": segments,
    "device_traces": [trace],
    "allocator_settings": {},
    "external_annotations": [],
}
with open(sys.argv[1], "wb") as file:
    pickle.dump(whole, file, 4)
"""
UNPICKLE = """
import pickle, sys
with open(sys.argv[1], "rb") as file:
    pickle.load(file)
"""
CHECK = """
import sys
from flame.core.readers.snapshot.pickle_check import check_pickle
with open(sys.argv[1], "rb") as file:
    check_pickle(file.read())
"""
FLAME = (sys.executable, "-m", "flame")
WAYS = {
    "pickle.load": (sys.executable, "-c", UNPICKLE),
    "check": (sys.executable, "-c", CHECK),
    "flame info": (*FLAME, "info"),
    "flame view --print": (*FLAME, "view", "--print"),
}


def rows(path: Path, size: str, rounds: int) -> Iterator[Row]:
    """What opening ``path``, a snapshot of so many MB, takes."""
    found = in_turn({name: Way((*way, str(path))) for name, way in WAYS.items()}, rounds)
    runs = {name: medians(each) for name, each in found.items()}
    alone = runs.pop("pickle.load")
    for name, one in runs.items():
        yield from compared(f"snapshot of {size} MB, {name}", one, alone, path.stat().st_size)


def compared(name: str, one: Run, alone: Run, size: int) -> Iterator[Row]:
    """Time and memory, and both against unpickling alone."""
    yield Row(f"{name}: CPU", one.cpu, "s", f"wall {one.wall:.2f} s")
    yield Row(name, one.cpu / alone.cpu, "x pickle.load", f"{alone.cpu:.2f} s, CPU")
    of = f"{one.memory / 1e6:.0f} MB, {one.memory / size:.2f} x file"
    yield Row(f"{name}: peak memory", one.memory / alone.memory, "x pickle.load", of)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", default="100", help="size of the snapshot (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3)
    add_option(parser)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snapshot.pickle"
        command = [sys.executable, "-c", GENERATE, str(path), args.megabytes]
        subprocess.run(command, cwd=ROOT, check=True)
        tell(rows(path, args.megabytes, args.rounds), args.json)


if __name__ == "__main__":
    main()
