"""How recorded programs end, and how flame comes to one that runs."""

from __future__ import annotations

import json
import signal
import time
from functools import partial
from pathlib import Path

from benchmarks.gpu.bench import FLAME, Bench, running, until
from benchmarks.gpu.check import Check, Finding
from benchmarks.gpu.criteria import hold_count
from benchmarks.gpu.recording import Recording
from flame.record.environment import library_path
from tests.support.writers import fdumprecords

LONGEST_END_S = 3.0
LONGEST_STALL_S = 1.0
LAUNCHES = 50
CODES = {
    "exit": 7,
    "os-exit": 7,
    "exception": 1,
    "sigterm": 128 + signal.SIGTERM,
    "sigint": 128 + signal.SIGINT,
    "sigkill": 128 + signal.SIGKILL,
    "running": 7,
    "thread": 7,
}
"""Ways of `workloads/ends.py` and the exit codes that `flame record` must hand on."""
ABRUPT = {"os-exit", "sigterm", "sigint", "sigkill"}
"""What the library has not been told of: kernels that CUPTI had not handed over yet are missing."""
UNKNOWN = {"running", "thread"}
"""It is chance how many kernels were launched by then."""
QUICK = {"exit", "os-exit", "sigterm", "sigint", "running", "thread"}


def ends(bench: Bench, way: str) -> Finding:
    """A program that ends like this ends as it would alone, soon; what it launched is readable."""
    found = Finding()
    program = bench.workload("ends.py", way, LAUNCHES)
    recording = bench.record(program, code=None)
    found.hold("exit code", recording.done.code == CODES[way], recording.done.code)
    took = time.time() - json.loads(recording.done.out.strip().splitlines()[-1])["ending"]
    hold_time(found, recording, "soon", took, LONGEST_END_S)
    launched, kernels = kernel_launches(recording), len(recording.rows("kernel"))
    if way in UNKNOWN:
        found.hold("launches", launched >= LAUNCHES, launched)
    else:
        hold_count(found, "launches", launched, LAUNCHES)
    if way not in ABRUPT | UNKNOWN:
        hold_count(found, "kernels", kernels, launched)
    missing = launched - kernels
    found.tell(kernels=kernels, missing=missing, dropped=recording.dropped())
    found.tell(notes=recording.notes(), counters=recording.counters())
    return found


def kernel_launches(recording: Recording) -> int:
    """Count the calls that launched a kernel of their own: no copies, sets or graphs."""
    return int((recording.rows("launch")["symbol"] != 0).sum())


def hold_time(found: Finding, recording: Recording, what: str, took: float, most: float) -> None:
    """Hold that something took at most so many seconds; the double says nothing of that."""
    ok = took <= most or recording.profile.meta.synthetic
    found.hold(what, ok, f"{took:.3f} s")


def attached(bench: Bench) -> Finding:
    """The library loaded in the middle, by the program itself, as `flame attach` has it done.

    A graph is there by then and replayed before and after: nothing crashes, nothing stalls long.
    """
    found, folder = Finding(), bench.folder / "late"
    count = bench.size(60, 400)
    late = [str(library_path()), str(folder)]
    done = bench.run(bench.workload("steady.py", count, *late), 0, {"FLAME_DEBUG": "1"})
    said, recording = done.json(), Recording(folder, done)
    found.hold("attached", said["attached"] == 1, said["attached"])
    hold_time(found, recording, "longest step", said["longest_s"], LONGEST_STALL_S)
    hold_count(found, "kernels", len(recording.rows("kernel")), said["kernels_after"])
    replayed = recording.rows("kernel")
    found.tell(of_graphs=int((replayed["graph"] != 0).sum()), attach_s=said["attach_s"])
    found.tell(notes=recording.notes(), counters=recording.counters())
    return found


def stopped(bench: Bench) -> Finding:
    """A recording that ends while the program is busy does not hang, and its dump is whole."""
    found, folder = Finding(), bench.folder / "stopped.flame"
    words = ["record", "-q", "--duration", "1s", "-o", str(folder), "--"]
    program = bench.workload("steady.py", 10**6)
    with running(bench, [*FLAME, *words, *program]) as process:
        until(lambda: list(folder.glob("*.fdump")), process)
        until(lambda: any(is_stopped(path) for path in folder.glob("*.fdump")), process)
        found.hold("goes on", process.poll() is None)
    recording = Recording(folder, bench.run(["true"]))
    kernels = recording.rows("kernel")
    seen = float((kernels["tid"] != 0).mean()) if len(kernels) else 0.0
    found.hold("kernels", len(kernels) > 0, len(kernels))
    found.tell(launched=seen, dropped=recording.dropped(), counters=recording.counters())
    return found


def is_stopped(path: Path) -> bool:
    """Whether a dump says that it has ended; one that has no header yet has not."""
    begun = path.stat().st_size >= fdumprecords.HEADER.size
    return begun and bool(fdumprecords.header(path)["state"])


NEEDS = ("gpu", "library")
CHECKS = (
    *(
        Check(f"end-{way}", "ends", 2, partial(ends, way=way), NEEDS, 30, quick=way in QUICK)
        for way in CODES
    ),
    Check("attached-late", "attaching", 2, attached, NEEDS, 60, quick=True),
    Check("stopped-while-busy", "ends", 2, stopped, NEEDS, 40, quick=True),
)
