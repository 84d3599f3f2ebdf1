"""Checks that do what a check must not do: a table for the runner, and a command that runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.gpu.bench import Bench
from benchmarks.gpu.check import Check, CheckSkippedError, Finding
from benchmarks.gpu.command import main

FOREVER = 10_000
STUBBORN = (
    "import os, signal, sys, time\n"
    "os.setsid()\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "open(sys.argv[1], 'w').write(str(os.getpid()))\n"
    "time.sleep(10000)"
)


def passes(bench: Bench) -> Finding:
    found = Finding()
    found.hold("two and two", True, 4)
    found.tell(home=str(Path.home()))
    return found


def fails(bench: Bench) -> Finding:
    found = Finding()
    found.hold("kernels", False, "3 of 4")
    return found


def hangs(bench: Bench) -> Finding:
    (bench.folder / "begun").touch()
    time.sleep(FOREVER)
    return Finding()


def waits(bench: Bench) -> Finding:
    return hangs(bench)


def raises(bench: Bench) -> Finding:
    raise ValueError("meant")


def dies(bench: Bench) -> Finding:
    os.kill(os.getpid(), signal.SIGSEGV)
    return Finding()


def ends_early(bench: Bench) -> Finding:
    os._exit(3)


def leaves_a_child(bench: Bench) -> Finding:
    """It has a session of its own, and does not end when it is asked to."""
    told = bench.folder / "child"
    subprocess.Popen([sys.executable, "-c", STUBBORN, str(told)])
    while not told.exists() or not told.read_text("ascii"):
        time.sleep(0.01)
    return passes(bench)


def lacks(bench: Bench) -> Finding:
    raise CheckSkippedError("a thing")


def fills_the_disk(bench: Bench) -> Finding:
    (bench.folder / "data").write_bytes(bytes(1 << 24))
    return passes(bench)


CHECKS = tuple(
    Check(look.__name__, "misbehaving", 1, look, needs=(), seconds=seconds, quick=True)
    for look, seconds in (
        (fails, 60.0),
        (hangs, 1.0),
        (waits, FOREVER),
        (raises, 60.0),
        (dies, 60.0),
        (ends_early, 60.0),
        (leaves_a_child, 60.0),
        (lacks, 60.0),
        (fills_the_disk, 60.0),
        (passes, 60.0),
    )
)

if __name__ == "__main__":
    sys.exit(main(table="tests.benchmarks.misbehaving_checks"))
