"""Each call of the library to the system fails in turn: the recorded program never notices.

Its dump can be read or is not there, and whoever reads it is told that something is missing.
"""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

from flame.core.loading.many import load
from inject import build
from tests.inject.conftest import NATIVE, built
from tests.support.waiting import PATIENCE
from tests.support.writers.fdumprecords import header, records

SHIM = NATIVE / "failing_calls.cpp"
CALLS = re.findall(r"^  C\((\w+),", SHIM.read_text("utf-8"), re.MULTILINE)
FILE_ERRORS = (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS)
ERRORS = {"fcntl": (errno.EMFILE,), "socket": (errno.EMFILE,), "socketpair": (errno.EMFILE,)}
MEMORY = ("mmap", "madvise", "malloc", "aligned_alloc", "calloc", "realloc", "strdup")
ERRORS |= dict.fromkeys(MEMORY, (errno.ENOMEM,))
# Of these there is one for each range, or one now and then.
MANY = {"malloc", "fstat", "accept4"}
QUICK = (
    *("openat", "fcntl", "fstatat", "fallocate", "mmap", "malloc", "aligned_alloc"),
    "pthread_setspecific",
)
RANGES = 20_000  # with which a dump grows several times
FEW_RANGES = 40
SAID = "300 launches, child 9\n"
LAUNCHES, KERNELS = 302, 301
# What the reader of a dump is told where records are missing.
TOLD = re.compile(r"could not be written|recording stopped|still being written")


@dataclass(frozen=True)
class Fault:
    """The ``at``-th call of ``name`` fails, and with ``goes_on`` all after it."""

    name: str
    at: int
    goes_on: bool

    @property
    def ranges(self) -> int:
        return FEW_RANGES if self.name in MANY else RANGES

    @property
    def env(self) -> dict[str, str]:
        errors = ERRORS.get(self.name, FILE_ERRORS)
        error = errors[self.at % len(errors)]
        on = {"FAIL_ON": "1"} if self.goes_on else {}
        return on | {"FAIL_CALL": self.name, "FAIL_AT": str(self.at), "FAIL_ERRNO": str(error)}


NONE = Fault("", 0, False)


@dataclass(frozen=True)
class Bench:
    """Runs the program with a fault, and finds out what went wrong beyond it."""

    program: Path
    env: Callable[..., dict[str, str]]
    place: Path

    def environment(self, fault: Fault, folder: Path) -> dict[str, str]:
        more = {"FLAME_PC": "continuous", "FLAME_PYTHON": "0", "FLAME_FLUSH_MS": "10"}
        return self.env(folder / "dumps", **more, **fault.env)

    def run(self, fault: Fault, folder: Path, ranges: int) -> subprocess.CompletedProcess[str]:
        folder.mkdir()
        env = self.environment(fault, folder) | {"FAIL_COUNTS": str(folder / "counts")}
        command = [str(self.program), str(ranges)]
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE)

    def count(self, name: str, fault: Fault = NONE) -> int:
        """How many calls there are of it."""
        folder = self.place / f"count-{name}"
        done = self.run(fault, folder, Fault(name, 0, False).ranges)
        assert (done.returncode, done.stdout, done.stderr) == (7, SAID, "")
        rows = (line.split() for line in (folder / "counts").read_text().splitlines())
        return {call: int(number) for call, number in rows}[name]

    def faults(self, fault: Fault) -> list[Any]:
        """What is not as it should be."""
        folder = self.place / f"{fault.name}-{fault.at}-{fault.goes_on}"
        try:
            done = self.run(fault, folder, fault.ranges)
        except subprocess.TimeoutExpired:
            return [fault, "hangs"]
        if (done.returncode, done.stdout, done.stderr) != (7, SAID, ""):
            return [fault, done.returncode, done.stdout, done.stderr]
        found = list(wrong_in(folder / "dumps", fault.ranges))
        rmtree(folder)
        return [fault, *found] if found else []


def wrong_in(folder: Path, ranges: int) -> Iterator[object]:
    """What is left behind, or missing without a word, in a recording."""
    for path in folder.glob("*") if folder.exists() else ():
        if path.name == "cubins":
            yield from (one.name for one in path.iterdir() if one.suffix != ".cubin")
        elif path.suffix != ".fdump":
            yield path.name
        elif not is_whole(path, ranges):
            told = load(path).warnings
            if not any(map(TOLD.search, told)):
                yield path.name, header(path), told


def is_whole(path: Path, ranges: int) -> bool:
    of = records(path)
    if len(of["range"]) != 2 * ranges:
        return False
    has_gpu = len(of["launch"]) or len(of["kernel"])
    return not has_gpu or (len(of["launch"]), len(of["kernel"])) == (LAUNCHES, KERNELS)


def failing_library() -> Path:
    """The library, whose calls of the system can be told to fail."""
    names = (*CALLS, "__cxa_allocate_exception")
    wrapped = "-Wl," + ",".join(f"--wrap={name}" for name in names)
    sources = [*build.sources(), SHIM]
    return built("libflameinject.so", sources, "-shared", *build.RELEASE, wrapped)


@pytest.fixture
def bench(injected_env: Callable[..., dict[str, str]], buildable: None, tmp_path: Path) -> Bench:
    library = failing_library()
    program = built("failing_workload", [NATIVE / "failing_workload.cpp"])

    def env(folder: Path, **more: str) -> dict[str, str]:
        return injected_env(folder, library=library, **more)

    return Bench(program, env, tmp_path)


@pytest.mark.parametrize(
    "name", ["openat", "fallocate", "mmap", "ftruncate", "malloc", "aligned_alloc"]
)
def test_the_first_and_the_second_of_a_call(bench: Bench, name: str) -> None:
    assert [bench.faults(Fault(name, at, False)) for at in (1, 2)] == [[], []]
    assert bench.faults(Fault(name, 2, True)) == []


@pytest.mark.deep
@pytest.mark.parametrize("name", CALLS)
def test_every_call_in_turn(bench: Bench, name: str) -> None:
    numbers = range(1, bench.count(name) + 2)
    faults = [Fault(name, at, goes_on) for goes_on in (False, True) for at in numbers]
    # The C++ library keeps what it needs to throw at all from the first one.
    faults = [fault for fault in faults if fault != Fault("malloc", 1, True)]
    with ThreadPoolExecutor(2) as pool:
        assert [found for found in pool.map(bench.faults, faults) if found] == []


def test_the_helper_thread_throws_nothing(bench: Bench) -> None:
    assert bench.count("thrown_by_helper", Fault("malloc", 14, True)) == 0


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (Fault("openat", 1, True), r"nothing was recorded: .* or make its file \(FLAME_DEBUG=1"),
        (Fault("mmap", 2, True), r"nothing was recorded: .* or make its file \(FLAME_DEBUG=1"),
        (Fault("fallocate", 3, True), r"recorded run: .*dropped, no room for more"),
        (
            Fault("fallocate", 1, False),
            r"no GPU activity in this trace \(recording could not begin",
        ),
        (Fault("pwrite", 1, True), r"recorded run: 2 processes, 301 kernels"),
    ],
    ids=lambda value: f"{value.name}-{value.at}" if isinstance(value, Fault) else "",
)
def test_flame_record_says_what_is_missing(bench: Bench, fault: Fault, told: str) -> None:
    env = bench.environment(fault, bench.place)
    env["FLAME_LIBRARY"] = env.pop("CUDA_INJECTION64_PATH")
    del env["NVTX_INJECTION64_PATH"]
    command = [sys.executable, "-m", "flame", "record", "--pc", "continuous", "--no-python"]
    # That many make it grow.
    ranges = RANGES if fault.name == "fallocate" and fault.goes_on else FEW_RANGES
    command += ["-o", "run", "--", str(bench.program), str(ranges)]
    env["PYTHONPATH"] = os.pathsep.join(sys.path)
    done = subprocess.run(
        command, env=env, cwd=bench.place, capture_output=True, text=True, timeout=PATIENCE
    )
    assert (done.returncode, done.stdout) == (7, SAID)
    assert re.search(told, done.stderr)
    assert "Traceback" not in done.stderr
