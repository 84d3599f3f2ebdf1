"""A program with a kernel that gives samples, PC sampling of which a test begins and ends."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from flame.attach.library.control import SamplingReply
from tests.cli.programs import KERNELS
from tests.inject.recorded_program import Program
from tests.support.writers.fdumprecords import meta, records

IMAGE = """
import os

PER_RUN = 265
IMAGE = b'''flame-fake 1
kernel gemm 3000
sample gemm 0 selected 11
sample gemm 16 long_scoreboard 201
sample gemm 16 short_scoreboard 3
sample gemm 48 long_scoreboard_not_issued 50
'''

def loaded(more=b""):
    module = ctypes.c_void_p()
    call("cuModuleLoadData", ctypes.byref(module), IMAGE + more)
    return module

def work(count):
    for _ in range(count):
        launch(gemm)
    call("cuCtxSynchronize")
    return count

def in_a_context(count):
    other = ctypes.c_void_p()
    call("cuCtxCreate_v2", ctypes.byref(other), 0, 0)
    global module
    module = loaded()
    function = function_of(b"gemm")
    for _ in range(count):
        launch(function)
    call("cuCtxSynchronize")
    call("cuCtxDestroy_v2", other)
    call("cuCtxSetCurrent", context)
    return count
"""
SCRIPT = KERNELS + IMAGE + "module = loaded(); gemm = function_of(b'gemm')"
PER_RUN = 265
Start = Callable[..., Program]


@pytest.fixture
def start(injected_env: Callable[..., dict[str, str]], tmp_path: Path) -> Iterator[Start]:
    """Starts a program whose kernel gives 265 samples at each run."""
    with ExitStack() as stack:

        def run(script: str = SCRIPT, **more: str) -> Program:
            env = injected_env(tmp_path / "dumps", FAKE_TRUTH=str(tmp_path / "truth"), **more)
            return stack.enter_context(Program(script, env))

        yield run


def switch(program: Program, mode: str) -> SamplingReply:
    with closing(program.control()) as control:
        reply = control.sample(mode)
    assert reply is not None
    return reply


def begin(program: Program, mode: str = "continuous") -> None:
    assert switch(program, mode) == SamplingReply(ok=True, contexts=1)


def found(program: Program) -> Counter[tuple[int, ...]]:
    """Samples in the dump by offset, reason and correlation."""
    counts: Counter[tuple[int, ...]] = Counter()
    for row in records(program.dump())["sample"]:
        key = (int(row["offset"]), int(row["reason"]), int(row["correlation"]))
        counts[key] += int(row["samples"])
    return counts


def told(program: Program, folder: Path) -> Counter[tuple[int, ...]]:
    """Those that the GPU gave, likewise."""
    counts: Counter[tuple[int, ...]] = Counter()
    for line in (folder / f"truth.{program.pid}").read_text().splitlines():
        row = json.loads(line)
        if row["what"] == "sample":
            counts[row["offset"], row["reason"], row["correlation"]] += row["samples"]
    return counts


def notes(program: Program) -> list[str]:
    return meta(program.dump()).get("note", [])
