"""Steps without end, or so many: steady.py STEPS [LIBRARY FOLDER | --seconds N].

With a LIBRARY it loads that in the middle, as `flame attach` has it done, to record into FOLDER;
what it launched since then is said at the end. With --seconds it says how it fared in each tenth.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.gpu.workloads.simple_driver import LAUNCHES, NODES, Program

PARTS = 10
WARM = 5
MIB = 2**20


def rss() -> int:
    """MiB of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // MIB


def steps(program: Program, count: int, seconds: float = float("inf")) -> list[float]:
    """Take ``count`` steps, or as many as end in ``seconds``; return how long each took, s."""
    times: list[float] = []
    end = time.monotonic() + seconds
    while len(times) < count and time.monotonic() < end:
        begin = time.monotonic()
        program.step()
        times.append(time.monotonic() - begin)
    return times


def attached(program: Program, count: int, library: str, folder: str) -> dict[str, Any]:
    """Half of the steps, the library, the other half."""
    first = steps(program, count // 2)
    begin = time.monotonic()
    answer = ctypes.CDLL(library).flame_attach(folder.encode())
    took = time.monotonic() - begin
    second = steps(program, count // 2)
    launched = len(second) * (LAUNCHES + NODES)
    longest = max([took, *first, *second])
    return {
        "attached": answer,
        "attach_s": took,
        "longest_s": longest,
        "kernels_after": launched,
    }


def soaked(program: Program, seconds: float) -> dict[str, Any]:
    """How each tenth of the time went: the usual step, memory, open files."""
    told: dict[str, list[float]] = {"step_ms": [], "rss_mib": [], "descriptors": []}
    for _ in range(PARTS):
        times = sorted(steps(program, 10**9, seconds / PARTS))
        told["step_ms"].append(round(times[len(times) // 2] * 1e3, 3))
        told["rss_mib"].append(rss())
        told["descriptors"].append(len(list(Path("/proc/self/fd").iterdir())))
    return told


def timed(program: Program, count: int) -> dict[str, Any]:
    """How long the steps take after those that warm up."""
    warm = sum(steps(program, WARM))
    loop = sum(steps(program, count))
    return {"warm_s": warm, "loop_s": loop, "launches": count * (LAUNCHES + 1)}


def main(count: int, *more: str) -> None:
    """The command line."""
    program = Program()
    if more[:1] == ("--seconds",):
        said = soaked(program, float(more[1]))
    elif more:
        said = attached(program, count, *more)
    else:
        said = timed(program, count)
    print(json.dumps(said))


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
