#!/usr/bin/env python3
"""Measures opening a speedscope file against `json.load` of the same file alone.

Both are whole processes with a warm cache, in turn, medians of three: ratios can be compared
between machines, seconds cannot. Processor time (user and system) hardly depends on what else the
machine does. Memory is told without what Python and numpy take of themselves.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from benchmarks.support.measuring import Run, medians, run  # noqa: E402

ROUNDS = 3
FRAMES = 2_000
DEEPEST = 20
NEARBY = 5_000

SAMPLES, LARGE = 300_000, 8_000_000

# A child's peak memory begins at that of the process it is spawned from: nothing large may be in
# this one, which is why files are written in another.
ALONE = "import json, sys; document = json.load(open(sys.argv[1], 'rb'))"
OPEN = "import sys, flame; tree = flame.load(sys.argv[1]).tree()"
NOTHING = "import numpy, flame.core.loading.many, flame.core.projection.project"


def stacks(different: int) -> list[list[int]]:
    """That many stacks of up to `DEEPEST` frames, most of them one frame longer than another."""
    draw = random.Random(1)
    found = [[0]]
    while len(found) < different:
        base = found[draw.randrange(max(0, len(found) - NEARBY), len(found))]
        if len(base) >= DEEPEST:
            base = base[: draw.randrange(1, DEEPEST)]
        found.append([*base, draw.randrange(FRAMES)])
    return found


def sampled(samples: int, different: int) -> Iterator[str]:
    """A file as py-spy writes it, of that many samples."""
    draw, known = random.Random(2), [json.dumps(stack) for stack in stacks(different)]
    # As many samples as stacks: each stack once.
    chosen = known if different == samples else draw.choices(known, k=samples)
    yield '"type":"sampled","unit":"seconds","samples":[' + ",".join(chosen)
    yield '],"weights":[' + ",".join(["0.01"] * samples) + "]"


def evented(events: int, different: int) -> Iterator[str]:
    """The same stacks as they are opened and closed, of about that many events."""
    draw, known, open_now = random.Random(2), stacks(different), list[int]()
    yield '"type":"evented","unit":"microseconds","events":['
    told: list[str] = []
    while len(told) < events:
        stack, at = draw.choice(known), len(told) / 8
        pairs = zip(stack, open_now, strict=False)
        common = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
        changes = [("C", frame) for frame in reversed(open_now[common:])]
        changes += [("O", frame) for frame in stack[common:]]
        told += [f'{{"type":"{kind}","frame":{frame},"at":{at}}}' for kind, frame in changes]
        open_now = stack
    told += [f'{{"type":"C","frame":{frame},"at":{events}}}' for frame in reversed(open_now)]
    yield ",".join(told) + "]"


KINDS: dict[str, Callable[[int], Iterator[str]]] = {
    "repeated": lambda samples: sampled(samples, max(samples // 50, 1)),
    "different": lambda samples: sampled(samples, samples),
    "evented": lambda events: evented(events, max(events // 50, 1)),
}
"""Parts of a profile, the inside of a JSON object, by how stacks are told in it."""


def write(path: Path, kind: str, samples: int) -> None:
    """Writes a file of one profile."""
    frames = [{"name": f"f{i}", "file": f"m{i % 50}.py", "line": i} for i in range(FRAMES)]
    with path.open("w") as file:
        file.write('{"$schema":"https://www.speedscope.app/file-format-schema.json",')
        file.write(f'"shared":{json.dumps({"frames": frames})},"profiles":[{{"name":"main",')
        file.writelines(KINDS[kind](samples))
        file.write(',"startValue":0,"endValue":0}]}')


def report(path: Path) -> str:
    """Measures ``path`` and says what came out."""
    codes = {"json.load": ALONE, "flame": OPEN}
    runs: dict[str, list[Run]] = {name: [] for name in codes}
    for _ in range(ROUNDS):
        for name, code in codes.items():
            runs[name].append(run([sys.executable, "-c", code, str(path)]))
    base, size = run([sys.executable, "-c", NOTHING]).memory, path.stat().st_size
    median = {name: medians(each) for name, each in runs.items()}
    alone = median["json.load"]
    lines = [
        f"{path.name}: {size / 2**20:.0f} MiB",
        "               CPU s  x json  peak MiB  x json  less base x file",
    ]
    lines += [
        f"  {name:11}{one.cpu:7.2f}{one.cpu / alone.cpu:8.2f}{one.memory / 2**20:10.0f}"
        f"{one.memory / alone.memory:8.2f}{(one.memory - base) / size:18.2f}"
        for name, one in median.items()
    ]
    return "\n".join(lines)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, help="else three generated ones")
    parser.add_argument("--samples", type=int, default=SAMPLES, help="of a generated file")
    parser.add_argument("--large", action="store_true", help=f"as --samples {LARGE}")
    parser.add_argument("--kinds", default=",".join(KINDS), help="default: %(default)s")
    args = parser.parse_args()
    if args.file:
        print(report(args.file.resolve()))
        return
    with tempfile.TemporaryDirectory() as folder:
        for kind in args.kinds.split(","):
            path = Path(folder) / f"{kind}.speedscope.json"
            writer = multiprocessing.get_context("spawn").Process(
                target=write, args=(path, kind, LARGE if args.large else args.samples)
            )
            writer.start()
            writer.join()
            print(report(path), flush=True)
            path.unlink()


if __name__ == "__main__":
    main()
