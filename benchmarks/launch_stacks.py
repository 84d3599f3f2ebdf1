#!/usr/bin/env python3
"""Launches kernels from different Python stacks: the process that bench_inject.py records.

    launch_stacks.py LOOP CASE COUNT

prints as JSON the CPU time of CASE, in ns of the launching thread for each of COUNT, or the memory
it left behind, in bytes.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import psutil

DEPTH = 30
ROUNDS = 5
LEAVES = 100


def deep(depth: int, work: Callable[[], Any]) -> Any:
    """Does ``work`` below that many frames."""
    return deep(depth - 1, work) if depth else work()


def same_stack(loop: ctypes.CDLL, count: int) -> float:
    """The loop is in C: one stack, and nothing of Python's own time."""
    loop.launches(count)  # what happens at first is not of interest
    took: float = min(loop.launches(count) for _ in range(ROUNDS))
    return took / count


def frees(loop: ctypes.CDLL, count: int) -> float:
    """The same for a call that launches nothing: it frees no memory."""
    loop.frees(count)
    took: float = min(loop.frees(count) for _ in range(ROUNDS))
    return took / count


def allocations(loop: ctypes.CDLL, count: int) -> float:
    """The same for an event of memory: half of them allocate, half free."""
    loop.allocations(count)
    took: float = min(loop.allocations(count) for _ in range(ROUNDS))
    return took / count


def allocations_everywhere(loop: ctypes.CDLL, count: int) -> float:
    """The same on all threads: what CUPTI reports is written by another one."""
    loop.allocations(count)
    resident()
    begin = time.process_time_ns()
    loop.allocations(ROUNDS * count)
    resident()
    return (time.process_time_ns() - begin) / (ROUNDS * count)


def ranges(loop: ctypes.CDLL, count: int) -> float:
    """The same for a push and its pop."""
    loop.ranges(count)
    took: float = min(loop.ranges(count) for _ in range(ROUNDS))
    return took / count


def leaves(loop: ctypes.CDLL, count: int) -> float:
    """Every launch has another leaf than the one before."""
    functions = [made(f"leaf_{i}", loop) for i in range(LEAVES)]
    return min(called(functions, count) for _ in range(ROUNDS)) / count


def new_code(loop: ctypes.CDLL, count: int) -> float:
    """Every launch has a leaf that has never been seen."""
    rounds = [[made(f"new_{r}_{i}", loop) for i in range(count)] for r in range(ROUNDS)]
    return min(called(functions, count) for functions in rounds) / count


def made(name: str, loop: ctypes.CDLL) -> Callable[[], None]:
    """A function of that name with code of its own, which launches once."""

    def function() -> None:
        loop.launches(1)

    function.__code__ = function.__code__.replace(co_name=name, co_qualname=name)
    return function


def called(functions: list[Callable[[], None]], count: int) -> int:
    """Calls them in turn; the ns of CPU time that took."""
    begin = time.thread_time_ns()
    for i in range(count):
        functions[i % len(functions)]()
    return time.thread_time_ns() - begin


def memory(loop: ctypes.CDLL, count: int) -> int:
    """How much more memory is in use after ``count`` launches than after a tenth of that."""
    return growth(loop.launches, count)


def memory_of_frees(loop: ctypes.CDLL, count: int) -> int:
    """The same for calls that launch nothing."""
    return growth(loop.frees, count)


def growth(calls: Callable[[int], float], count: int) -> int:
    """How much more memory is in use after ``count`` of ``calls`` than after a tenth of that."""
    calls(count // 10)
    before = resident()
    for _ in range(9):
        calls(count // 10)
    return resident() - before


def resident() -> int:
    """Bytes in memory, when the helper threads have had time to give some back."""
    time.sleep(1)
    return int(psutil.Process().memory_info().rss)


CASES: dict[str, Callable[[ctypes.CDLL, int], float]] = {
    "same_stack": same_stack,
    "leaves": leaves,
    "new_code": new_code,
    "frees": frees,
    "allocations": allocations,
    "allocations_everywhere": allocations_everywhere,
    "ranges": ranges,
    "memory": memory,
    "memory_of_frees": memory_of_frees,
}


def main() -> None:
    """The command line."""
    path, case, count = sys.argv[1:]
    loop = ctypes.CDLL(path)
    for function in (loop.launches, loop.frees, loop.allocations, loop.ranges):
        function.restype, function.argtypes = ctypes.c_double, [ctypes.c_int64]
    loop.set_up()
    print(json.dumps(deep(DEPTH - 4, lambda: CASES[case](loop, int(count)))))


if __name__ == "__main__":
    main()
