"""PC sampling that CUPTI gives no more samples of begins anew, and what was lost is told."""

from __future__ import annotations

import json
import time
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

import flame
from tests.inject.recorded_program import Program, until
from tests.inject.sampling.sampled_program import PER_RUN, Start, begin, found, notes, switch, told
from tests.inject.sampling.sampled_program import start as start
from tests.support.writers.fdumprecords import header, meta, records

SAMPLES_LOST = 6
"""DropCause in dump.h"""
RESET_S = 1.5
"""A context is reset at most once a second, and collected every half."""
SCRATCH = "CUPTI ran out of memory for PC samples: samples are missing"
FAILED = "CUPTI failed to give PC samples (cuptiPCSamplingGetData: CUPTI_ERROR_HARDWARE_BUSY)"
HARDWARE = "the GPU's buffer of PC samples was full: samples are missing"


def losses(program: Program) -> int:
    """How often samples were lost for want of memory."""
    drops = records(program.dump())["drop"]
    return int(drops["count"][drops["cause"] == SAMPLES_LOST].sum())


def lost_so_often(program: Program, count: int) -> bool:
    return losses(program) >= count


def sampled_again(program: Program) -> bool:
    """Whether another kernel leaves samples by the time that a context must have been reset.

    One at a time: between two collections many would fill the memory again.
    """
    before = found(program).total()
    program.do("work(1)")
    end = time.monotonic() + RESET_S
    while found(program).total() == before and time.monotonic() < end:
        time.sleep(0.05)
    return found(program).total() > before


@pytest.mark.deep
@pytest.mark.parametrize(
    ("mode", "fault", "what"),
    [
        ("continuous", "pc_oom", SCRATCH),
        ("serialized", "pc_full", HARDWARE),
        ("continuous", "pc_error:26,pc_oom", FAILED),
    ],
    ids=["scratch buffer", "hardware buffer", "other error"],
)
def test_sampling_goes_on_after_memory_ran_out(
    start: Start, tmp_path: Path, mode: str, fault: str, what: str
) -> None:
    program = start(FLAME_PC=mode, FAKE_CUPTI=f"{fault}:5")
    for lost in (1, 2):
        program.do("work(5)")
        until(partial(lost_so_often, program, lost))
        until(partial(sampled_again, program))
    assert program.end() == 0
    assert not found(program) - told(program, tmp_path)
    (note,) = notes(program)
    assert note.startswith(what)
    assert header(program.dump())["dropped"] == losses(program)
    [counted] = map(json.loads, meta(program.dump())["counters"])
    assert counted["sampling_errors"] == losses(program)
    assert 2 <= counted["sampling_resets"] <= losses(program)
    warnings = flame.load(program.dump()).profile.warnings
    assert f"PC samples are missing: {losses(program)} times CUPTI could give no more" in " ".join(
        warnings
    )


@pytest.mark.deep
def test_a_context_that_never_gives_samples_is_given_up(start: Start, tmp_path: Path) -> None:
    program = start(FLAME_PC="continuous", FAKE_CUPTI="pc_oom:0")
    until(lambda: len(notes(program)) > 1)
    first, last = notes(program)
    assert first.startswith(SCRATCH) and last.startswith("PC sampling of a context was given up")
    assert not sampled_again(program)
    assert losses(program) == 6  # at first, and after each of five resets
    begin(program)
    until(lambda: losses(program) > 6)
    assert switch(program, "off").ok
    assert program.end() == 0
    assert not found(program) and len(records(program.dump())["kernel"]) == 21


@pytest.mark.parametrize("when", ["", "pc_lazy,"])
def test_a_gpu_with_little_memory_left_gets_a_smaller_buffer(
    start: Start, tmp_path: Path, when: str
) -> None:
    program = start(FAKE_CUPTI=f"{when}pc_memory:200")
    begin(program)
    program.do("work(3)")
    assert switch(program, "off").ok
    assert found(program) == told(program, tmp_path) and found(program).total() == 3 * PER_RUN
    (note,) = notes(program)
    assert note.startswith("the GPU has too little free memory") and "128 MB" in note


@pytest.mark.parametrize("size", ["", "256"])
def test_without_memory_on_the_gpu_it_does_not_begin(start: Start, size: str) -> None:
    program = start(FAKE_CUPTI="pc_memory:100", FLAME_PC_HW=size)
    reply = switch(program, "continuous")
    assert not reply.ok and "CUPTI_ERROR_OUT_OF_MEMORY" in reply.error
    assert "too little memory for samples, most likely on the GPU" in reply.error
    assert notes(program) == [reply.error]


def test_a_size_that_was_asked_for_is_taken(start: Start) -> None:
    program = start(FAKE_CUPTI="pc_memory:64", FLAME_PC_HW="64")
    begin(program)
    program.do("work(1)")
    assert switch(program, "off").ok
    assert found(program).total() == PER_RUN and not notes(program)


REFUSALS = {
    26: ("CUPTI_ERROR_HARDWARE_BUSY", "another profiler, or DCGM, uses the GPU's counters"),
    27: ("CUPTI_ERROR_NOT_SUPPORTED", "this GPU or its driver cannot do it"),
    35: ("not allowed for this user", "NVreg_RestrictProfilingToAdminUsers=0"),
    40: ("not allowed on this virtual GPU", "its host can allow it"),
    43: ("cuptiPCSamplingEnable", "it is not possible on a part of a GPU (MIG)"),
    999: ("CUPTI_ERROR", "Perhaps another profiler, or DCGM, uses the GPU's counters"),
}


@pytest.mark.parametrize("code", REFUSALS)
def test_each_reason_for_a_refusal_is_told(start: Start, code: int) -> None:
    program = start(FAKE_CUPTI=f"pc_refused:{code}")
    reply = switch(program, "continuous")
    assert not reply.ok and all(text in reply.error for text in REFUSALS[code])
    assert reply.error.endswith("Recorded without PC samples")
    assert notes(program) == [reply.error]


LONG = """
def long(count):
    for number in range(count):
        call("cuLaunchKernel", slow, 1, 1, 1, 32, 1, 1, 0, streams[number % 2], None, None)
    call("cuCtxSynchronize")
    return count

def copy():
    call("cuMemcpyHtoD_v2", buffer, b"12345678", 8)

module = loaded(b"kernel slow 50000000\\n")
slow = function_of(b"slow")
streams = [ctypes.c_void_p() for _ in range(2)]
for stream in streams:
    call("cuStreamCreate", ctypes.byref(stream), 1)
buffer = ctypes.c_void_p()
call("cuMemAlloc_v2", ctypes.byref(buffer), 8)
"""
"""Kernels of 50 ms in two streams, and a copy."""


def test_samples_are_collected_after_launches_and_not_after_copies(start: Start) -> None:
    program = start(FLAME_PC="serialized", FLAME_FLUSH_MS="60000")
    program.run(LONG)
    program.do("long(1)")
    before = found(program)
    program.do("copy()")
    assert found(program) == before
    program.do("long(1)")
    assert found(program) - before


def overlaps(program: Program) -> list[bool]:
    """Of each kernel of 50 ms but the first, whether it began before the one before had ended."""
    kernels = records(program.dump())["kernel"]
    spans = sorted(zip(kernels["start"].tolist(), kernels["end"].tolist(), strict=True))
    spans = [(start, end) for start, end in spans if end - start == 50_000_000]
    return [start < end for (_, end), (start, _) in pairwise(spans)]


def test_kernels_overlap_again_once_serialized_sampling_has_ended(start: Start) -> None:
    program = start(FLAME_PC="serialized")
    program.run(LONG)
    program.do("long(2)")
    assert switch(program, "off").ok
    program.do("long(2)")
    assert program.end() == 0
    assert overlaps(program) == [False, False, True] and not notes(program)


@pytest.mark.parametrize(
    ("kind", "overlap", "said"),
    [
        ("concurrent", True, None),
        ("kernel", False, "kernels were run one by one"),
        ("serial", True, "FLAME_KERNEL_KIND is not understood"),
    ],
)
def test_how_cupti_reports_kernels_can_be_chosen(
    start: Start, kind: str, overlap: bool, said: str | None
) -> None:
    program = start(FLAME_PC="continuous", FLAME_KERNEL_KIND=kind)
    program.run(LONG)
    program.do("long(2)")
    assert program.end() == 0
    assert overlaps(program) == [overlap]
    assert [note.startswith(said or "?") for note in notes(program)] == [True] * bool(said)
