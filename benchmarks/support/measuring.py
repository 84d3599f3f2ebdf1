"""Measures whole processes: wall time, processor time, peak memory.

What is compared runs in turn, round by round, so that other work on the machine meets all alike.
numpy stays out of the scripts that import this: a child's peak memory begins at that of the process
it is spawned from.
"""

from __future__ import annotations

import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

ROOT = Path(__file__).resolve().parents[2]


class Run(NamedTuple):
    """Wall and processor time of a process, s, its peak memory, bytes, and what it printed."""

    wall: float
    cpu: float
    memory: float
    output: str = ""


class Way(NamedTuple):
    """A command, and the variables it is run with beside those of this process."""

    command: Sequence[str]
    environment: Mapping[str, str] = {}


def run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Run:
    """Runs ``command`` to its end; SystemExit with what it said where its exit code is not 0."""
    env = {**os.environ, **(environment or {})}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # or every start would compile flame anew
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        begin = time.perf_counter()
        process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=errors, env=env)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        printed, said = map(_written, (output, errors))
    if process.returncode:
        raise SystemExit(f"{shlex.join(command)}: exit code {process.returncode}\n{said}")
    unit = 1 if sys.platform == "darwin" else 2**10
    return Run(wall, used.ru_utime + used.ru_stime, used.ru_maxrss * unit, printed)


def _written(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def in_turn(ways: Mapping[str, Way], rounds: int) -> dict[str, list[Run]]:
    """Runs all ways one after the other, so many times."""
    runs: dict[str, list[Run]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            runs[name].append(run(*way))
    return runs


def medians(runs: Sequence[Run]) -> Run:
    """The medians of both times, the largest memory, and what the first printed."""
    wall, cpu = (statistics.median(times) for times in zip(*(one[:2] for one in runs), strict=True))
    return Run(wall, cpu, max(one.memory for one in runs), runs[0].output)


def generated(folder: Path, kernels: str, *options: str) -> Path:
    """An nsys export that `generate.py` writes into ``folder``."""
    path = folder / f"{kernels}.sqlite"
    script = str(ROOT / "benchmarks" / "generate.py")
    command = [sys.executable, script, str(path), "--kernels", kernels, *options]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return path
