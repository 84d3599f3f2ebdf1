"""A recorded program on the test double: what its script begins with, and what its dump says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.writers.fdumprecords import meta, records, stack, text

KINDS = {"thread": 3, "device": 4, "api": 5}  # of Name records
SIZE_LIMIT, CUPTI_DROPPED, UNTIMED = 2, 3, 7
KERNEL, CALL, FAILED = 6, 16, 1

HELPERS = ("make", "launch")
PRELUDE = """
import ctypes, json, os, sys, threading, time
cuda = ctypes.CDLL("libcuda.so.1")
pointer = ctypes.c_void_p

def check(error):
    assert error == 0, error

def make(function, *arguments):
    made = pointer()
    check(function(ctypes.byref(made), *arguments))
    return made

def context(device=0):
    return make(cuda.cuCtxCreate_v4, None, 0, device)

def module(*lines):
    return make(cuda.cuModuleLoadData, "\\n".join(["flame-fake 1", *lines]).encode())

def kernel(name, duration=1000, more=""):
    return make(cuda.cuModuleGetFunction, module(f"kernel {name} {duration} {more}"), name.encode())

def launch(function, stream=None, grid=(1, 1, 1), block=(1, 1, 1), shared=0):
    return cuda.cuLaunchKernel(function, *grid, *block, shared, stream, None, None)

def stream():
    return make(cuda.cuStreamCreate, 1)

def synchronize():
    check(cuda.cuCtxSynchronize())

def say(**facts):
    print(json.dumps(facts), flush=True)

check(cuda.cuInit(0))
"""


@dataclass(frozen=True)
class Recorded:
    """A program that has been recorded: its dump, and what it said itself."""

    path: Path
    said: dict[str, Any]

    @property
    def of(self) -> dict[str, Any]:
        return records(self.path)

    @property
    def meta(self) -> dict[str, list[str]]:
        return meta(self.path)

    def top(self, node: int) -> str:
        """The innermost Python function of a stack that is the script's."""
        functions = [function for function, _, _ in stack(self.of, int(node))]
        return next(name for name in reversed(functions) if name not in HELPERS)

    def names(self, kind: str) -> dict[tuple[int, int], str]:
        """Names of one kind by scope and id."""
        of = self.of
        rows = of["name"][of["name"]["kind"] == KINDS[kind]]
        return {(int(row["scope"]), int(row["id"])): text(of, int(row["text"])) for row in rows}

    def apis(self, key: str = "launch") -> list[str]:
        """The names of the calls of a kind, by time."""
        names = self.names("api")
        rows = np.sort(self.of[key], order="start")
        return [names[0, int(number)] for number in rows["api"]]

    def dropped(self) -> dict[tuple[int, int], int]:
        """How many records have been dropped, by cause and type."""
        counts: Counter[tuple[int, int]] = Counter()
        for row in self.of["drop"]:
            counts[int(row["cause"]), int(row["type"])] += int(row["count"])
        return dict(counts)


Record = Callable[..., Recorded]


def by(rows: np.ndarray, field: str) -> dict[int, Any]:
    """The rows by a field that tells them apart."""
    found = {int(row[field]): row for row in rows}
    assert len(found) == len(rows)
    return found


GRAPH = """
context()
first, second = kernel("first"), kernel("second")
on = stream()

def layer_one(): check(launch(first, on))
def layer_two():
    check(launch(second, on))
    check(cuda.cuMemsetD32Async(memory, 0, ctypes.c_size_t(10), on))
memory = make(cuda.cuMemAlloc_v2, ctypes.c_size_t(4096))
def capture():
    check(cuda.cuStreamBeginCapture_v2(on, 0))
    layer_one()
    layer_two()
    return make(lambda graph: cuda.cuStreamEndCapture(on, graph))
def instantiate(graph):
    return make(cuda.cuGraphInstantiateWithFlags, graph, ctypes.c_ulonglong(0))
def replay(graph):
    check(cuda.cuGraphLaunch(graph, on))
"""
