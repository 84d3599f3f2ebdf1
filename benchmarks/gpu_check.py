#!/usr/bin/env python3
"""Looks whether the library does on a real GPU what it does on the double of the driver.

    python benchmarks/gpu_check.py

Records the workload of samples/ in several ways and prints PASS or FAIL for each, with what was
found. PC sampling needs the right to profile: root, or what the failure says.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import flame  # noqa: E402
from flame.core.model.calls import CallClass, call_class  # noqa: E402
from flame.core.model.profile import Profile  # noqa: E402
from samples import workload_transformer as transformer  # noqa: E402
from tests.support.writers import fdumprecords  # noqa: E402

WORKLOAD = [sys.executable, str(ROOT / "samples" / "workload_transformer.py")]
FLAME = [sys.executable, "-m", "flame"]
STEPS, LONG, FOREVER = 50, 1000, 10**6
ROUNDS, SPARE = 100, 30
CLOCK_ERROR = 10_000
"""Clocks of the GPU and of the host may differ by so much, ns."""
CLASSES = (CallClass.SYNC, CallClass.ALLOC)
PATIENCE = 600.0
MODES = ("continuous", "serialized")
KERNELS_PER_STEP = 2 * transformer.LAYERS * (8 + 2 + 2) + 2 * transformer.LAYERS * 6
"""Launched by one step of training and one of decoding, where PyTorch is not there."""

Finding = tuple[bool, str]


def recorded(folder: Path, *options: str, steps: int = STEPS) -> Profile:
    """What `flame record` makes of the workload; CalledProcessError where that fails."""
    words = [*FLAME, "record", "-q", "-o", str(folder), *options, "--", *WORKLOAD, str(steps)]
    subprocess.run(words, check=True, cwd=ROOT, timeout=PATIENCE, capture_output=True)
    return flame.load(folder).profile


# Checks


def launches(profile: Profile) -> Finding:
    """Calls of the driver are all that is listened to: kernels of the runtime have theirs, too."""
    shares = {key: profile.coverage[key].ns for key in ("launch", "python", "nvtx")}
    lines = ", ".join(f"{key} {ns / profile.gpu_time:.1%}" for key, ns in shares.items())
    return shares["launch"] == shares["python"] == profile.gpu_time > 0, lines


def kernels(profile: Profile) -> Finding:
    """No kernel is missing, and none is there twice."""
    found = profile.counts["kernel"]
    ours = any(frame.name == "gemm_kernel" for frame in profile.frames.frames)
    expected = STEPS * KERNELS_PER_STEP
    return found == expected if ours else found > 0, f"{found:,} of {expected:,} without PyTorch"


def blocking(folder: Path) -> Finding:
    """Calls of the runtime that wait, allocate or free are seen as the driver's: all, and once."""
    script = str(ROOT / "benchmarks" / "blocking_calls.py")
    words = [*FLAME, "record", "-q", "-o", str(folder), "--", sys.executable, script, str(ROUNDS)]
    done = subprocess.run(
        words, check=True, cwd=ROOT, timeout=PATIENCE, stdout=subprocess.PIPE, text=True
    )
    wanted, profile = json.loads(done.stdout), flame.load(folder).profile
    calls = outermost(profile)
    found = {one: count_of(calls, one) for one in CLASSES}
    # The runtime may make calls of its own: one context, one pool, one module.
    lines = ", ".join(f"{count} {name}" for name, count in sorted(calls.items()))
    expected = {CallClass.SYNC: wanted["waits"], CallClass.ALLOC: wanted["allocations"]}
    ok = all(0 <= found[one] - expected[one] <= SPARE for one in CLASSES)
    told = ", ".join(f"{found[one]} of {expected[one]} {one.name.lower()}" for one in CLASSES)
    return ok, f"through the {wanted['way']}: {told} ({lines})"


def outermost(profile: Profile) -> Counter[str]:
    """How often each call of the driver was made, in no other."""
    calls = profile.calls
    frames = [] if calls is None else calls.frame.tolist()
    return Counter(profile.frames[frame].name for frame in frames)


def count_of(calls: Counter[str], one: CallClass) -> int:
    """How often calls of a class were made."""
    return sum(count for name, count in calls.items() if call_class(name) == one)


def waits(folder: Path) -> Finding:
    """What was launched before has ended when a call has waited for all of it.

    Clocks that differ show here first.
    """
    profile = flame.load(folder).profile
    calls, table = profile.calls, profile.activities
    if calls is None:
        return False, "no calls"
    names = [profile.frames[frame].name for frame in calls.frame.tolist()]
    rows = [row for row, name in enumerate(names) if name.startswith("cuCtxSynchronize")]
    until = table.start + table.duration - CLOCK_ERROR
    running = [
        table.launched & (table.launch_end <= calls.start[row]) & (until > calls.end[row])
        for row in rows
    ]
    late = sum(bool(one.any()) for one in running)
    return bool(rows) and not late, f"{late} of {len(rows)} were over before the work they wait for"


def loads(profile: Profile) -> Finding:
    """Loading code is seen, which lazy loading may do in launches instead."""
    calls = outermost(profile)
    found = {name: calls[name] for name in calls if name.startswith(("cuModule", "cuLibrary"))}
    return bool(found), ", ".join(f"{count} {name}" for name, count in found.items())


def nested(folder: Path) -> Finding:
    """How many launches lie in other calls; whatever it is, they are the same without these."""
    within = [flags >> 16 > 0 for flags in launch_flags(folder)]
    without = folder.with_name("no-calls")
    recorded(without, "--no-calls")
    others = len(launch_flags(without))
    said = f"{sum(within)} of {len(within)} launches in other calls; {others} without these"
    return len(within) == others, said


def launch_flags(folder: Path) -> list[int]:
    """The flags of all launches of a recording."""
    parts = (fdumprecords.records(dump)["launch"]["flags"] for dump in folder.glob("*.fdump"))
    return [flags for part in parts for flags in part.tolist()]


def graphs(profile: Profile) -> Finding:
    """One launch of a graph leads to many kernels, and each to where it was captured."""
    nodes = profile.graph_nodes
    return nodes.captured == nodes.activities > 0, f"{nodes.captured:,} of {nodes.activities:,}"


def samples(profile: Profile, exact: bool) -> Finding:
    """PC samples come while kernels are recorded, and know their launches in serialized mode.

    A launch of a graph is one for many kernels: samples of these stay of all call sites.
    """
    sampling = profile.sampling
    if sampling is None:
        return False, "; ".join(profile.warnings) or "no PC samples"
    total = int(sampling.totals.sum())
    texts = [text for code in sampling.codes for text in code.text]
    named = sum(map(bool, texts))
    said = f"{total:,} samples, {len(sampling.codes)} kernels, "
    said += f"{named} of {len(texts)} instructions with text"
    share = profile.coverage["sass"].ns / profile.gpu_time
    # The double takes PTX for machine code.
    readable = named > 0 or profile.meta.synthetic
    ok = total > 0 and share > 0.5 and readable and bool(np.any(sampling.exact)) == exact
    return ok, f"{said}, {share:.1%} of GPU time"


def later(folder: Path) -> Finding:
    """PC sampling begins in a program that runs, and the cubins from before are there."""
    words = [*FLAME, "record", "-q", "-o", str(folder), "--", *WORKLOAD, str(FOREVER)]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL) as process:
        try:
            until(lambda: list(folder.glob("*.sock")))
            time.sleep(2)
            said = [switched(folder, mode) for mode in ("continuous", "off")]
            subprocess.run([*FLAME, "attach", str(folder), "--stop"], check=False, cwd=ROOT)
        finally:
            process.terminate()
            process.wait(PATIENCE)
    ok, found = samples(flame.load(folder).profile, exact=False)
    return ok, f"{'; '.join(said)}: {found}"


def switched(folder: Path, mode: str) -> str:
    """What `flame attach --pc` says; it is given 2 s to bring samples."""
    words = [*FLAME, "attach", str(folder), "--pc", mode]
    done = subprocess.run(words, cwd=ROOT, check=False, capture_output=True, text=True)
    time.sleep(2)
    return done.stderr.strip().replace("\n", "; ")


def until(look: Callable[[], object]) -> None:
    """Returns as soon as ``look`` finds something; TimeoutError after a minute."""
    end = time.monotonic() + 60
    while not look():
        if time.monotonic() > end:
            raise TimeoutError("no recording begins")
        time.sleep(0.05)


def overhead(folder: Path) -> Finding:
    """How much longer many small kernels take; there is no right answer."""
    folder.mkdir()
    alone = seconds([*WORKLOAD, str(LONG)])
    said = [f"alone {alone:.2f} s"]
    ways = (("--no-calls",), *(("--pc", mode) for mode in ("off", *MODES)))
    for number, way in enumerate(ways):
        words = [*FLAME, "record", "-q", *way, "-o", str(folder / str(number)), "--", *WORKLOAD]
        said.append(f"{' '.join(way)} {seconds([*words, str(LONG)]) / alone:.2f}×")
    return True, ", ".join(said)


def seconds(words: list[str]) -> float:
    """How long it runs."""
    begin = time.monotonic()
    subprocess.run(words, check=True, cwd=ROOT, timeout=PATIENCE, capture_output=True)
    return time.monotonic() - begin


def findings(folder: Path) -> Iterator[tuple[str, Callable[[], Finding]]]:
    """All checks, in their order."""
    plain = recorded(folder / "plain")
    machine = "the double of the driver" if plain.meta.synthetic else plain.meta.producer
    yield "recorded", lambda: (True, machine)
    yield "launches", lambda: launches(plain)
    yield "kernels", lambda: kernels(plain)
    yield "graphs", lambda: graphs(plain)
    yield "calls that may block", lambda: blocking(folder / "blocking")
    yield "waits for all work", lambda: waits(folder / "blocking")
    yield "loading of code", lambda: loads(plain)
    yield "launches in other calls", lambda: nested(folder / "plain")
    for mode in MODES:
        sampled = recorded(folder / mode, "--pc", mode)
        exact = mode == "serialized"
        yield f"samples, {mode}", lambda of=sampled, exact=exact: samples(of, exact)  # type: ignore[misc]
        yield f"kernels, {mode}", lambda of=sampled: kernels(of)  # type: ignore[misc]
    yield "samples, begun later", lambda: later(folder / "later")
    yield "overhead", lambda: overhead(folder / "overhead")


def main() -> int:
    """A line for each check; the exit code is 1 where one fails."""
    failed = 0
    os.environ.pop("FLAME_PC", None)
    with tempfile.TemporaryDirectory() as folder:
        for name, check in findings(Path(folder)):
            ok, said = check()
            failed += not ok
            print(f"{'PASS' if ok else 'FAIL'}  {name}: {said}", flush=True)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
