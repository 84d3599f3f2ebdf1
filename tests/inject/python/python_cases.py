"""Captures Python stacks in many situations; says on standard output what each should have been.

Runs in any Python from 3.9 on, without other packages: ``python_cases.py PROBE CASE...``. Prints
one JSON object, ``{case: [{"expected": [[function, file, line], ...], "held": node, "released":
node}, ...]}``. Frames are outermost first, nodes are those of the dump.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import functools
import gc
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.inject.python import capturing, stack_cases
from tests.inject.python.capturing import HELD, RELEASED, found, here, name_of, said, stack_of
from tests.inject.python.stack_cases import deeper, nested

at_start = 0

CHURN = """
def f():
    def g(x=[]):
        return [h() for _ in range(1)]
    def h(): return %s
    return g()
f()
"""


def stress() -> None:
    """Threads capture without the GIL while others make, run and collect code."""
    end = time.monotonic() + float(os.environ.get("PROBE_SECONDS", "2"))

    def capture(number: int) -> None:
        def inner() -> None:
            RELEASED.probe_many(200)
            exec("\n" * (number % 11) + "here()\n", {"here": here})

        while time.monotonic() < end:
            deeper(number % 17, inner)
            number += 1

    def churn(number: int, module: str) -> None:
        while time.monotonic() < end:
            number += 1
            exec("\n" * (number % 9) + CHURN % number, {})
            if number % 50 == 0:
                gc.collect()
                sys._current_frames()
                sys.modules.pop(module, None)
                __import__(module)

    jobs: list[tuple[Any, ...]] = [(capture, each * 3) for each in range(4)]
    jobs += [(churn, 0, "wave"), (churn, 7, "colorsys")]
    threads = [threading.Thread(target=job, args=rest) for job, *rest in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


INSIDE = """
import ctypes, json, os, sys
def stack_of(frame):
    outer = stack_of(frame.f_back) if frame.f_back else []
    return [*outer, (frame.f_code.co_qualname, frame.f_code.co_filename, frame.f_lineno)]
def inside():
    said = ctypes.CDLL({probe!r}).probe_stack(), stack_of(sys._getframe())
    os.write({write}, json.dumps(said).encode())
inside()
"""


def subinterpreter() -> None:
    """Since 3.12 a thread's state is that of the interpreter that runs; before, it is its first."""
    HELD.probe_stack()  # so that the walk has been checked
    read, write = os.pipe()
    script = INSIDE.format(probe=sys.argv[1], write=write)
    if sys.version_info >= (3, 13):
        interpreters = __import__("_interpreters")
        made = interpreters.create("legacy")
    else:
        interpreters = __import__("_xxsubinterpreters")
        made = interpreters.create(isolated=False)
    outer, _ = stack_of(sys._getframe()), interpreters.run_string(made, script)
    interpreters.destroy(made)
    node, inner = json.loads(os.read(read, 1 << 16))
    expected = inner if sys.version_info >= (3, 12) else outer
    said().append({"expected": expected, "whole": node})


def before_any_check() -> None:
    """Nothing is read before the walk was compared, which the interpreter is asked to do soon."""
    end = time.monotonic() + 10
    while not RELEASED.probe_stack() and time.monotonic() < end:
        pass
    said().append({"expected": [], "whole": at_start})
    nested()


def unknown_thread() -> None:
    said().append({"expected": [], "whole": HELD.probe_elsewhere()})


def lines() -> None:
    """Every instruction of some modules."""
    modules = (argparse, asyncio.base_events, json.decoder, capturing, stack_cases)
    for module in (*modules, sys.modules[__name__]):
        source = Path(str(module.__file__)).read_text(encoding="utf-8")
        compare_lines(compile(source, "module.py", "exec"))


def compare_lines(code: CodeType) -> None:
    expected = {at: line for start, end, line in code.co_lines() for at in range(start, end, 2)}
    told = {at: RELEASED.probe_line(ctypes.py_object(code), at) for at in expected}
    wrong = {at: line for at, line in expected.items() if (line or 0) != told[at]}
    said().append({"code": name_of(code), "instructions": len(expected), "wrong": wrong})
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            compare_lines(constant)


def texts() -> None:
    room = ctypes.create_string_buffer(4096)
    for text in (
        "",
        "plain",
        "größe",
        "Ω变",
        "𝔵" * 2000,
        "ä" * 3000,
        "\udc80-\ud800",
        "x" * 4096,
        "\0é",
    ):
        size = RELEASED.probe_text(ctypes.py_object(text), room)
        said().append({"text": text, "told": room.raw[:size].decode()})


def offsets() -> None:
    values = (ctypes.c_uint16 * 32)()
    count = RELEASED.probe_offsets(values)
    said().append({"offsets": list(values[:count])})


def cost(measure: Callable[[], float]) -> None:
    said().append({"ns": min(measure() for _ in range(300))})


def costs() -> None:
    """Not a comparison: prints what a capture of 30 frames costs."""
    for probe in (HELD, RELEASED):
        probe.probe_many.restype = ctypes.c_double
        deeper(24, functools.partial(cost, functools.partial(probe.probe_many, 2000)))


def daemons() -> None:
    """Threads that are in the middle of it when the interpreter ends."""

    def forever(depth: int) -> None:
        while True:
            deeper(depth, lambda: RELEASED.probe_many(100))

    for number in range(4):
        threading.Thread(target=forever, args=(number * 20,), daemon=True).start()
    time.sleep(0.05)


def main() -> None:
    global at_start
    at_start = RELEASED.probe_begin()
    cases = vars(stack_cases) | globals()
    for capturing.case in sys.argv[2:]:
        cases[capturing.case]()
    print(json.dumps(found))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
