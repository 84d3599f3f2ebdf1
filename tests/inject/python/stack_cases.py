"""Situations in which a Python stack is captured, for ``python_cases.py``."""

from __future__ import annotations

import asyncio
import functools
import gc
import json
import os
import sys
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.inject.python.capturing import RELEASED, here, said


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
        for each in said():
            each["pid"] = os.getpid()
        print(json.dumps({"forked in child": said()[1:]}), flush=True)
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
