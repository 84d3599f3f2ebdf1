#!/usr/bin/env python3
"""Measures what recording costs: time per launch and per NVTX range, memory, bytes, and reading.

There is no GPU in it: the test double stands for the driver, and what counts is how much more CPU
time a call takes with flame than with an injection library that keeps nothing. Ratios of one run
can be compared between machines, nanoseconds cannot. What a launch takes on a real driver, and what
CUPTI itself adds there, is not measured.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import flame  # noqa: E402
from benchmarks.support.rows import Row, add_option, tell  # noqa: E402
from inject import build  # noqa: E402
from tests.support.writers import fdumprecords  # noqa: E402

MIB = 2**20
SHARED = ("-O2", "-shared", "-fvisibility=hidden")
ROUNDS = 5

Way = tuple[Path | None, dict[str, str]]
"""A library to load, and variables to set."""


@dataclass(frozen=True)
class Native:
    """What is compiled for the measurements."""

    library: Path
    empty: Path
    loop: Path
    fake: Path

    @classmethod
    def built(cls, folder: Path) -> Native:
        """Compiles all of it into ``folder``."""
        native = cls(
            folder / "libflameinject.so", folder / "empty.so", folder / "loop.so", folder / "fake"
        )
        build.build(native.library)
        build.compile_to(native.empty, [HERE / "empty_injection.cpp"], *SHARED)
        build.compile_to(native.loop, [HERE / "launch_loop.cpp"], *SHARED)
        sources = sorted(build.DOUBLE.glob("*.cpp"))
        build.compile_to(native.fake / "libcuda.so.1", sources, *SHARED)
        (native.fake / "libcupti.so.13").symlink_to("libcuda.so.1")
        return native


@dataclass(frozen=True)
class Bench:
    """Runs cases of launch_stacks.py in processes of their own."""

    native: Native
    folder: Path

    def run(self, case: str, count: int, injected: Path | None, **env: str) -> float:
        """What ``case`` measures, with that library in it."""
        script, loop = str(HERE / "launch_stacks.py"), str(self.native.loop)
        command = [sys.executable, script, loop, case, str(count)]
        environment = {**os.environ, "LD_LIBRARY_PATH": str(self.native.fake)}
        if injected is not None:
            environment |= {"CUDA_INJECTION64_PATH": str(injected)}
            environment |= {"NVTX_INJECTION64_PATH": str(injected), "FLAME_DIR": str(self.folder)}
        done = subprocess.run(command, env=environment | env, check=True, stdout=subprocess.PIPE)
        return float(json.loads(done.stdout))

    def best(self, case: str, count: int, *ways: Way) -> list[float]:
        """What ``case`` takes each way at least, ns: other work on the machine only adds to it."""
        rounds = []
        for _ in range(ROUNDS):
            rounds.append([self.run(case, count, library, **env) for library, env in ways])
            self.clear()
        return [min(times) for times in zip(*rounds, strict=True)]

    def compared(self, case: str, count: int, what: str, **env: str) -> Row:
        """What one of ``count`` takes with flame, more than with the empty library."""
        ways = ((None, env), (self.native.empty, env), (self.native.library, env))
        alone, empty, recorded = self.best(case, count, *ways)
        of = f"{alone:.0f} ns alone, {empty:.0f} with an empty library, {recorded:.0f} recorded"
        return Row(what, recorded - empty, "ns more", f"{of}: × {recorded / empty:.2f}")

    def dump(self) -> Path:
        """The dump of the last run."""
        (found,) = self.folder.glob("*.fdump")
        return found

    def clear(self) -> None:
        """Removes dumps."""
        for path in self.folder.glob("*.fdump"):
            path.unlink()


def stacks(bench: Bench, count: int) -> Iterator[Row]:
    """The cost of a launch by its Python stack."""
    yield bench.compared("same_stack", count, "launch below 30 Python frames")
    yield bench.compared("same_stack", count, "launch, FLAME_PYTHON=0", FLAME_PYTHON="0")
    yield bench.compared("leaves", count // 5, "launch from Python, another function each time")
    yield bench.compared("new_code", count // 50, "launch from Python, code never seen before")


def calls(bench: Bench, count: int) -> Iterator[Row]:
    """The cost of a call that waits, allocates or frees: this one has nothing to do."""
    yield bench.compared("frees", count, "other call below 30 Python frames")
    yield bench.compared("frees", count, "other call, FLAME_PYTHON=0", FLAME_PYTHON="0")
    yield bench.compared("frees", count, "other call, FLAME_CALLS=0", FLAME_CALLS="0")
    recorded = bench.run("memory_of_frees", 5 * count, bench.native.library) / MIB
    size = bench.dump().stat().st_size
    yield Row(f"memory after {5 * count:,} other calls", recorded, "MiB")
    yield Row("dump", size / (5 * count), "bytes another call")
    bench.clear()


def memory_events(bench: Bench, count: int) -> Iterator[Row]:
    """The cost of ``--memory`` for an allocation or a free, more than for the call that it is.

    On all threads the work of the double is in it, which makes the records then.
    """
    library, wanted = bench.native.library, {"FLAME_MEMORY_EVENTS": "1"}
    for case, where in (("allocations", "its thread"), ("allocations_everywhere", "all threads")):
        without, recorded = bench.best(case, count, (library, {}), (library, wanted))
        of = f"{without:.0f} ns a call without --memory, {recorded:.0f} with it"
        yield Row(f"event of memory, on {where}", recorded - without, "ns more", of)
    bench.run("allocations_everywhere", count, library, **wanted)
    events = len(fdumprecords.records(bench.dump())["memory"])
    yield Row("dump", bench.dump().stat().st_size / events, "bytes an event, with its call")
    bench.clear()


def ranges(bench: Bench, count: int) -> Row:
    """The cost of a range."""
    alone, recorded = bench.best("ranges", count, (None, {}), (bench.native.library, {}))
    return Row("NVTX push and pop", recorded - alone, "ns more", f"{alone:.0f} ns alone")


def memory(bench: Bench, count: int) -> Iterator[Row]:
    """Memory while recording, and the dump that comes of it."""
    alone = bench.run("memory", count, None) / MIB
    empty = bench.run("memory", count, bench.native.empty) / MIB
    recorded = bench.run("memory", count, bench.native.library) / MIB
    size = bench.dump().stat().st_size
    of = f"{alone:.1f} alone, {empty:.1f} with an empty library"
    yield Row(f"memory after {count:,} launches", recorded, "MiB", of)
    yield Row("dump", size / count, "bytes a launch")


def naive(path: Path) -> int:
    """GPU time by stack, with numpy alone."""
    kernels = fdumprecords.records(path)["kernel"]
    _, group = np.unique(kernels[["python", "nvtx", "symbol"]], return_inverse=True)
    time_by_stack = np.bincount(group, weights=kernels["end"] - kernels["start"])
    return int(time_by_stack.sum())


def reading(bench: Bench) -> Row:
    """Reading the dump of `memory`, which must come to the same GPU time."""
    path = bench.dump()
    begin = time.perf_counter()
    total = naive(path)
    plain = time.perf_counter() - begin
    begin = time.perf_counter()
    tree = flame.load(path).tree()
    took = time.perf_counter() - begin
    assert tree.root.total == total
    seconds = f"{took:.2f} of {plain:.2f} s"
    return Row("reading the dump, load + tree", took / plain, "x numpy's sum by stack", seconds)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--launches", type=int, default=1_000_000, help="of the longest run")
    parser.add_argument(
        "--memory", action="store_true", help="of what is allocated and freed alone, --memory"
    )
    add_option(parser)
    args = parser.parse_args()
    count = args.launches
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Native.built(Path(folder)), Path(folder) / "dumps")
        if args.memory:
            tell(memory_events(bench, count // 5), args.json)
            return
        rows = [
            *stacks(bench, count // 5),
            *calls(bench, count // 5),
            ranges(bench, count // 5),
            *memory(bench, count),
            reading(bench),
        ]
        tell(rows, args.json)


if __name__ == "__main__":
    main()
