"""Captures Python stacks in many situations; says on standard output what each should have been.

Runs in any Python from 3.9 on, alone: ``python_cases.py PROBE CASE...``. Prints one JSON object,
``{case: [{"expected": [[function, file, line], ...], "held": node, "released": node}, ...]}``.
Frames are outermost first, nodes are those of the dump.
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
import weakref
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

HELD = ctypes.PyDLL(sys.argv[1])
RELEASED = ctypes.CDLL(sys.argv[1])

Place = tuple[str, str, int]
found: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
case = ""
at_start = 0


def name_of(code: CodeType) -> str:
    """What the library calls it."""
    return getattr(code, "co_qualname", code.co_name)


def stack_of(frame: FrameType | None) -> list[Place]:
    """What Python itself says, outermost first."""
    places = []
    while frame is not None:
        line = frame.f_lineno or 0
        places.append((name_of(frame.f_code), frame.f_code.co_filename, line))
        frame = frame.f_back
    return places[::-1]


def here(*_: object) -> int:
    """Captures the caller's stack with and without the GIL, and what Python says of it."""
    held, released = HELD.probe_stack(), RELEASED.probe_stack()
    expected = stack_of(sys._getframe(1))
    found[case].append({"expected": expected, "held": held, "released": released})
    return 1


def nested() -> None:
    def inner() -> None:
        here()

    (lambda: inner())()


def many_lines() -> None:
    here(
        1,
        2,
    )
    functools.partial(
        here,
    )(
        3,
    )
    [
        4,
        here(),
    ]


def sort_keys() -> None:
    sorted([2, 1], key=lambda _: here())
    max([1, 2], key=here)


def callbacks_from_c() -> None:
    functools.reduce(lambda a, b: here(), [1, 2])
    list(map(lambda _: here(), [1]))  # noqa: C417 - the call from C matters
    eval("here()", {"here": here})


def generators() -> None:
    def numbers() -> Iterator[int]:
        yield here()
        yield from more()

    def more() -> Iterator[int]:
        yield here()

    list(numbers())
    list(here() for _ in range(1))  # noqa: C400 - a frame of its own


def comprehensions() -> None:
    [here() for _ in range(1)]
    {here(): [here() for _ in range(1)] for _ in range(1)}


def classes() -> None:
    class Meta(type):
        def __new__(cls, *args: Any) -> Any:
            here()
            return super().__new__(cls, *args)

    class Made(metaclass=Meta):
        here()

        def __getattr__(self, name: str) -> int:
            return here()

        def __del__(self) -> None:
            here()

        @property
        def value(self) -> int:
            return here()

    made = Made()
    assert made.missing == made.value == 1
    del made


def cycles() -> None:
    class Loop:
        def __del__(self) -> None:
            here()

    def leave() -> None:
        local = Loop()
        assert local

    leave()
    loop: Any = Loop()
    loop.itself = loop
    del loop
    gc.collect()


def weak_references() -> None:
    class Gone:
        pass

    gone = Gone()
    reference = weakref.ref(gone, here)
    del gone
    assert reference() is None


def exceptions() -> None:
    try:
        raise KeyError("held while captured")
    except KeyError:
        here()
    finally:
        here()


def contexts() -> None:
    @contextmanager
    def context() -> Iterator[None]:
        here()
        yield
        here()

    with context():
        here()


async def steps() -> AsyncIterator[int]:
    yield here()


async def waits() -> None:
    await asyncio.sleep(0)
    here()
    async for _ in steps():
        here()


async def both() -> None:
    await asyncio.gather(waits(), waits())


def coroutines() -> None:
    asyncio.run(both())


def executed() -> None:
    exec("\n\ndef made_up():\n  here()\nmade_up()\n", {"here": here})
    exec(compile("here()\n", "no/such/file.py", "exec"), {"here": here})


def redefined() -> None:
    """Code that comes again at the same place in memory, with the same names and other lines."""
    for blank in range(200):
        exec("\n" * (blank % 7) + "here()\n", {"here": here})
        exec(
            "\n" * (blank % 5) + "def f():\n" + "\n" * (blank % 3) + " here()\nf()", {"here": here}
        )


def names() -> None:
    for name in ("größe", "Ω", "变量", "𝔵"):
        exec(f"def {name}():\n here()\n{name}()", {"here": here})
    for file in (
        "grün.py",
        "Ω.py",
        "𝔵/变量.py",
        "lone\udc80.py",
        "",
        "<in>",
        "long/" * 400 + "ä.py",
    ):
        exec(compile("here()", file, "exec"), {"here": here})


def own_texts() -> None:
    """Names that are no plain ``str``."""

    class Text(str):
        pass

    for file in ("plain.py", "grün.py", "变量.py", ""):
        exec(compile("here()", Text(file), "exec"), {"here": here})
    code = compile("here()", "names.py", "exec")
    exec(code.replace(co_name=Text("name"), co_qualname=Text("qualname")), {"here": here})


def without_lines() -> None:
    code = compile("here()", "no_lines.py", "exec")
    exec(code.replace(co_linetable=b"\xf8\xf8\xf8"), {"here": here})
    exec(code.replace(co_linetable=b""), {"here": here})
    exec(code.replace(co_firstlineno=70000), {"here": here})


def deeper(depth: int, then: Callable[[], object]) -> None:
    if depth == 0:
        then()
    else:
        deeper(depth - 1, then)


def deep() -> None:
    sys.setrecursionlimit(5000)
    for depth in (1, 200, 245, 246, 247, 248, 249, 250, 251, 600, 601, 3000, 250, 3):
        deeper(depth, here)


def tangled() -> None:
    """A deep stack whose last frames change all the time."""
    for number in range(50):
        deeper(number % 13, functools.partial(deeper, number % 7, here))


def traced() -> None:
    if sys.gettrace() is not None:  # a tester's own
        return
    sys.settrace(lambda frame, event, argument: None if frame.f_code is here.__code__ else quiet)
    try:
        nested()
    finally:
        sys.settrace(None)


def quiet(*_: object) -> None:
    return None


def in_threads() -> None:
    threads = [threading.Thread(target=nested) for _ in range(5)]
    for thread in threads:
        thread.start()
        thread.join()


def generator_elsewhere() -> None:
    """A generator that goes on in another thread, below other frames."""

    def numbers() -> Iterator[int]:
        while True:
            yield here()

    running = numbers()
    next(running)
    thread = threading.Thread(target=next, args=(running,))
    thread.start()
    thread.join()


def forked() -> None:
    """The child asks in vain for nodes of its parent's dump: it has a dump of its own."""
    nested()
    child = os.fork()
    if not child:
        nested()
        for each in found[case]:
            each["pid"] = os.getpid()
        print(json.dumps({"forked in child": found[case][1:]}), flush=True)
        RELEASED.probe_stop()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    nested()


def greenlets() -> None:
    greenlet = __import__("greenlet")
    main = greenlet.getcurrent()

    def ping() -> None:
        here()
        main.switch()
        here()

    other = greenlet.greenlet(lambda: deeper(3, ping))
    other.switch()
    here()
    other.switch()


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
    found[case].append({"expected": expected, "whole": node})


def before_any_check() -> None:
    """Nothing is read before the walk was compared, which the interpreter is asked to do soon."""
    end = time.monotonic() + 10
    while not RELEASED.probe_stack() and time.monotonic() < end:
        pass
    found[case].append({"expected": [], "whole": at_start})
    nested()


def unknown_thread() -> None:
    found[case].append({"expected": [], "whole": HELD.probe_elsewhere()})


def lines() -> None:
    """Every instruction of some modules."""
    for module in (argparse, asyncio.base_events, json.decoder, sys.modules[__name__]):
        source = Path(str(module.__file__)).read_text(encoding="utf-8")
        compare_lines(compile(source, "module.py", "exec"))


def compare_lines(code: CodeType) -> None:
    expected = {at: line for start, end, line in code.co_lines() for at in range(start, end, 2)}
    told = {at: RELEASED.probe_line(ctypes.py_object(code), at) for at in expected}
    wrong = {at: line for at, line in expected.items() if (line or 0) != told[at]}
    found[case].append({"code": name_of(code), "instructions": len(expected), "wrong": wrong})
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
        found[case].append({"text": text, "told": room.raw[:size].decode()})


def offsets() -> None:
    values = (ctypes.c_uint16 * 32)()
    count = RELEASED.probe_offsets(values)
    found[case].append({"offsets": list(values[:count])})


def cost(measure: Callable[[], float]) -> None:
    found[case].append({"ns": min(measure() for _ in range(300))})


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
    global at_start, case
    at_start = RELEASED.probe_begin()
    for case in sys.argv[2:]:
        globals()[case]()
    print(json.dumps(found))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
