"""PC samples as flame takes them, with hidden switches, and begun later."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

from benchmarks.gpu.bench import (
    FLAME,
    NOTHING,
    ROOT,
    TRANSFORMER,
    Bench,
    Env,
    running,
    skip_unless_permitted,
    until,
)
from benchmarks.gpu.check import Check, CheckSkippedError, Finding
from benchmarks.gpu.criteria import hold_launches, hold_samples
from benchmarks.gpu.recording import Recording
from flame.core.lazy_regex import lazy_regex

MODES, KINDS = ("continuous", "serialized"), ("concurrent", "kernel")
FUNCTION = lazy_regex(r"Function : (\S+)")
INSTRUCTION = lazy_regex(r"\s*/\*([0-9a-f]{4,})\*/\s+(\S+)")
APART = 0.1
"""How far the share of a stall reason may be from Nsight Compute's."""
READABLE = 0.5
"""Share of GPU time of kernels that have samples."""


def sampled(bench: Bench, mode: str, env: Env = NOTHING) -> Finding:
    """Samples come while kernels are recorded, and know their launches in serialized mode."""
    found = Finding()
    command = [*TRANSFORMER, str(bench.size(10, 100))]
    recording = bench.record(command, "--pc", mode, env=env)
    skip_if_refused(recording)
    hold_samples(found, recording, exact=mode == "serialized")
    hold_launches(found, recording)
    hold_text(found, recording)
    found.tell(seconds=recording.done.seconds, counters=recording.counters())
    return found


def skip_if_refused(recording: Recording) -> None:
    """Raise CheckSkippedError where CUPTI does not let us sample."""
    for text in (*recording.profile.warnings, recording.done.errors):
        skip_unless_permitted(text)


def hold_text(found: Finding, recording: Recording) -> None:
    """Hold that most kernels have samples, and their instructions text, where nvdisasm is there."""
    profile = recording.profile
    if profile.sampling is None:
        found.hold("samples in the profile", False, "; ".join(profile.warnings))
        return
    texts = [text for code in profile.sampling.codes for text in code.text]
    share = profile.coverage["sass"].ns / max(profile.gpu_time, 1)
    found.hold("sampled GPU time", share > READABLE, f"{share:.1%}")
    found.tell(
        kernels=len(profile.sampling.codes), texts=f"{sum(map(bool, texts))} of {len(texts)}"
    )


def later(bench: Bench) -> Finding:
    """PC sampling is switched on and off while the program runs, and the program ends well."""
    found, folder = Finding(), bench.folder / "later.flame"
    program = bench.workload("steady.py", 10**6)
    words = [*FLAME, "record", "-q", "-o", str(folder), "--", *program]
    with running(bench, words) as process:
        until(lambda: list(folder.glob("*.sock")), process)
        for mode in ("continuous", "serialized", "off"):
            said = bench.run([*FLAME, "attach", str(folder), "--pc", mode], code=None)
            skip_unless_permitted(said.errors)
            found.hold(mode, said.code == 0, said.errors.strip().replace("\n", "; ")[:200])
            time.sleep(bench.size(1, 3))
        stopped = bench.run([*FLAME, "attach", str(folder), "--stop"], code=None)
        found.hold("--stop", stopped.code == 0, stopped.errors.strip()[:200])
        found.hold("goes on", process.poll() is None)
    recording = Recording(folder, stopped)
    rows = recording.rows("sample")
    found.hold("samples", len(rows) > 0, int(rows["samples"].sum()))
    found.tell(counters=recording.counters(), dropped=recording.dropped())
    return found


def constants(bench: Bench) -> Finding:
    """Triton kernels of one name and other constants each show their own instructions."""
    found = Finding()
    recording = bench.record(bench.workload("triton_constants.py"), "--pc", "serialized")
    skip_if_refused(recording)
    sampling = recording.profile.sampling
    if sampling is None:
        raise CheckSkippedError("PC samples")
    alike = [one for one in sampling.codes if "scaled" in one.name]
    hashes = {int(row["hash"]) for row in recording.rows("module")}
    texts = {tuple(one.text) for one in alike if any(one.text)}
    wanted = recording.done.json()["kernels"]
    found.hold("cubins kept apart", len(hashes) >= wanted, f"{len(hashes)} of {wanted}")
    found.hold("texts", len(texts) >= 1, len(texts))
    found.tell(codes=len(alike))
    return found


def disassembled(bench: Bench) -> Finding:
    """Instructions have the text and the offsets that cuobjdump gives."""
    found = Finding()
    source = str(ROOT / "benchmarks" / "gpu" / "workloads" / "stalls.cu")
    program = str(bench.folder / "stalls")
    bench.run(["nvcc", "-lineinfo", "-arch=native", source, "-o", program])
    recording = bench.record([program, "200"], "--pc", "serialized")
    skip_if_refused(recording)
    hold_samples(found, recording, exact=True)
    listed = opcodes(bench.run(["cuobjdump", "-sass", program]).out)
    sampling = recording.profile.sampling
    shown = {
        (code.name, offset): text.split()[0].rstrip(";")
        for code in (sampling.codes if sampling else ())
        for offset, text in zip(code.offset.tolist(), code.text, strict=True)
        if text
    }
    alike = sum(listed.get(place) == opcode for place, opcode in shown.items())
    found.hold("opcodes as cuobjdump's", 0 < len(shown) == alike, f"{alike} of {len(shown)}")
    return found


def opcodes(listing: str) -> dict[tuple[str, int], str]:
    """The first word of each instruction that cuobjdump lists, by function and offset in bytes."""
    function, found = "", {}
    for line in listing.splitlines():
        if head := FUNCTION.search(line):
            function = head[1]
        elif instruction := INSTRUCTION.match(line):
            found[function, int(instruction[1], 16)] = instruction[2].rstrip(";")
    return found


def against_ncu(bench: Bench) -> Finding:
    """The shares of stall reasons beside those of Nsight Compute, kernel by kernel."""
    found = Finding()
    source = str(ROOT / "benchmarks" / "gpu" / "workloads" / "stalls.cu")
    program, report = str(bench.folder / "stalls"), str(bench.folder / "stalls.ncu-rep")
    bench.run(["nvcc", "-lineinfo", "-arch=native", source, "-o", program])
    sections = ["--section", "WarpStateStats", "--section", "SourceCounters"]
    bench.run(["ncu", "--clock-control", "none", *sections, "-o", report, program, "3"])
    recording = bench.record([program, "200"], "--pc", "serialized")
    skip_if_refused(recording)
    hold_samples(found, recording, exact=True)
    ours, theirs = (shares(bench, path) for path in (recording.folder, Path(report)))
    found.tell(flame=ours, ncu=theirs)
    for kernel, own in ours.items():
        other = theirs.get(kernel, {})
        tops = [max(one, key=lambda reason: one[reason], default="") for one in (own, other)]
        found.hold(f"top reason of {kernel}", tops[0] == tops[1], " and ".join(tops))
        apart = max(abs(own.get(key, 0) - other.get(key, 0)) for key in {*own, *other})
        found.hold(f"shares of {kernel}", apart <= APART, f"{apart:.1%} apart")
    return found


def shares(bench: Bench, path: Path) -> dict[str, dict[str, float]]:
    """The share of each stall reason in the samples of each kernel, as flame reads ``path``."""
    options = ["-f", "folded", "--levels", "kernel,stall", "--metric", "stalls", "--no-cache"]
    counts: dict[str, dict[str, int]] = {}
    for line in bench.run([*FLAME, "export", str(path), *options, "-o", "-"]).out.splitlines():
        stack, _, count = line.rpartition(" ")
        kernel, _, reason = stack.partition(";")
        counts.setdefault(kernel, {})[reason] = int(count)
    return {
        kernel: {reason: count / sum(of.values()) for reason, count in of.items()}
        for kernel, of in counts.items()
    }


NEEDS = ("gpu", "library", "nvtx")
MATRIX = [(mode, kind, scratch) for mode in MODES for kind in KINDS for scratch in ("0", "16")]
CHECKS = (
    *(
        Check(
            f"samples-{mode}", "PC sampling", 2, partial(sampled, mode=mode), NEEDS, 60, quick=True
        )
        for mode in MODES
    ),
    *(
        Check(
            f"samples-{mode}-{kind}-{scratch}",
            "PC sampling",
            2,
            partial(
                sampled,
                mode=mode,
                env={"FLAME_KERNEL_KIND": kind, "FLAME_PC_SCRATCH": scratch},
            ),
            NEEDS,
            40,
        )
        for mode, kind, scratch in MATRIX
    ),
    Check(
        "samples-hw-128",
        "PC sampling",
        2,
        partial(sampled, mode="continuous", env={"FLAME_PC_HW": "128"}),
        NEEDS,
        40,
    ),
    Check("samples-later", "PC sampling", 2, later, NEEDS, 60, quick=True),
    Check(
        "instructions",
        "instructions",
        3,
        disassembled,
        (*NEEDS, "hardware", "nvcc", "cuobjdump"),
        90,
    ),
    Check(
        "stalls-against-ncu",
        "instructions",
        3,
        against_ncu,
        (*NEEDS, "hardware", "nvcc", "ncu", "root"),
        120,
    ),
    Check("triton-constants", "instructions", 3, constants, (*NEEDS, "torch", "triton"), 90),
)
