"""A CUDA program of all that makes stacks hard, which writes down what each call came from.

Run as ``tree_workload.py LOG SEED [alone]``. Every process (this one, one that it forks and, unless
``alone``, one that it starts) writes LOG.<pid>: a JSON line for every call, with the thread, times
around it, the Python stack (outermost first) and the open NVTX ranges, and one for every push/pop
range.
"""

from __future__ import annotations

import _thread
import asyncio
import ctypes
import functools
import importlib
import operator
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Generator
from pathlib import Path
from typing import Any

import nvtx

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.inject.workloads.call_log import (
    CUDA,
    LINES,
    Handle,
    Kernel,
    call,
    check,
    made,
    opened,
    pop,
    push,
    write,
)

SIZE, SOME = ctypes.c_size_t(1 << 16), ctypes.c_size_t(3000)
MODULE = b"""flame-fake 1
kernel _Z4gemmPfS_i 40000
kernel _Z7softmaxPf 7000
kernel tiny 1
kernel plain 123457
kernel fail_now 1000
"""
SYMBOLS = (b"_Z4gemmPfS_i", b"_Z7softmaxPf", b"tiny", b"plain")
ONE = (1, 1, 1, 32, 1, 1, 0)
"""Grid, block and shared memory of every launch."""
DOMAINS = (None, "one", "zwei ü")
DEEP = 260
"""More ranges, and frames, than the library keeps of a stack."""
SOURCE = """
def step(worker):
    worker.launch()


class Layer:
    def forward(self, worker):
        step(worker)
        worker.launch()
"""
GIVEN: list[tuple[int | None, Handle]] = []
"""Graphs that may be launched by another thread, and their contexts."""
STARTED: list[Any] = []


class Worker:
    """One thread in one context."""

    def __init__(self, context: Handle, seed: int) -> None:
        self.context = context
        self.random = random.Random(seed)

    def prepare(self) -> None:
        check(CUDA.cuCtxSetCurrent(self.context))
        module = made("cuModuleLoadData", MODULE)
        self.functions = [made("cuModuleGetFunction", module, name) for name in SYMBOLS]
        self.failing = made("cuModuleGetFunction", module, b"fail_now")
        self.streams = [made("cuStreamCreate", 1) for _ in range(3)]
        self.device, self.other = (made("cuMemAlloc_v2", SIZE) for _ in range(2))
        self.host = made("cuMemAllocHost_v2", SIZE)

    def launch(self, stream: Handle | None = None, which: int | None = None) -> int:
        check(CUDA.cuCtxSetCurrent(self.context))
        function = self.functions[self.random.randrange(4) if which is None else which]
        return call("cuLaunchKernel", function, *ONE, stream, None, None)

    def everything(self, contexts: list[Handle]) -> None:
        self.failed()
        self.crossing()
        self.random_ranges(60)
        self.recursive(12)
        self.generated()
        asyncio.run(self.gathered())
        self.executed()
        self.of_equal_names()
        self.copies(contexts)
        self.graphs()
        self.recursive(388)
        self.alone()
        self.deep_ranges(DEEP)
        self.random_ranges(20)
        check(CUDA.cuCtxSynchronize())

    def failed(self) -> None:
        assert call("cuLaunchKernel", self.failing, *ONE, None, None, None) == 719
        self.launch()

    def copies(self, contexts: list[Handle]) -> None:
        """Copies of many kinds, some between devices, and sets."""
        stream = self.streams[0]
        check(call("cuMemcpyHtoD_v2", self.device, self.host, SOME))
        check(call("cuMemcpyDtoHAsync_v2", self.host, self.device, SOME, stream))
        for to in contexts:
            places = self.device, to, self.other, self.context
            check(call("cuMemcpyPeerAsync", *places, SOME, stream))
            check(call("cuMemcpyPeer", *places, SOME))
        check(
            call(
                "cuMemcpyAsync",
                self.device,
                self.other,
                SOME,
                stream,
            )
        )
        check(call("cuMemsetD32_v2", self.device, 7, ctypes.c_size_t(100)))
        check(call("cuMemsetD8Async", self.device, 7, SOME, stream))

    # ranges

    def crossing(self) -> None:
        """Ranges of three domains that end in another order than they nest."""
        for name, domain in (("a", None), ("b", "one"), ("a", "zwei ü")):
            push(name, domain)
            self.launch()
        pop()
        self.launch()
        push("c")
        for domain in ("one", "zwei ü", None):
            self.launch()
            pop(domain)
        self.launch()

    def random_ranges(self, steps: int) -> None:
        base = len(opened())
        for step in range(steps):
            domain = self.random.choice(DOMAINS)
            has_one = any(one["domain"] == (domain or "") for one in opened()[base:])
            if has_one and self.random.random() < 0.5:
                pop(domain)
            elif len(opened()) < base + 12:
                category = "even" if step % 2 else None
                push(self.random.choice("xyz"), domain, payload=step, category=category)
            self.launch(self.random.choice([None, *self.streams]))
        while opened()[base:]:
            pop(self.random.choice([one["domain"] for one in opened()[base:]]) or None)
            self.launch()

    def deep_ranges(self, depth: int) -> None:
        push("deep")
        if depth in (0, 1, 2, DEEP - 10, DEEP - 9):
            self.launch()
        if depth:
            self.deep_ranges(depth - 1)
        pop()

    # kinds of frames

    def recursive(self, depth: int) -> None:
        if depth % 97 == 0 or depth < 4:
            self.launch()
        if depth:
            self.recursive(depth - 1)
        if depth == 2:
            self.launch(which=2)

    def alone(self) -> None:
        """A thread whose outermost frame is one of the recursion."""
        done = threading.Event()
        work: list[Callable[[], object]] = [functools.partial(self.recursive, 388), done.set]
        _thread.start_new_thread(list, (map(operator.call, work),))
        done.wait()

    def generated(self) -> None:
        def inner() -> Generator[int, int, None]:
            push("in a generator", "one")
            got = yield self.launch()
            while got:
                got = yield self.launch()
            pop("one")

        def outer() -> Generator[int, int, None]:
            yield from inner()
            yield self.launch()

        steps = outer()
        next(steps)
        self.launch()
        steps.send(1)
        list(steps)
        assert sum(self.launch() for _ in range(3)) == 0
        assert [self.launch() for _ in range(2)] == [0, 0]
        sorted([3, 1, 2], key=lambda _: self.launch())
        functools.partial(self.launch, which=1)()

    async def gathered(self) -> None:
        """Tasks that take turns, whose ranges therefore do not nest."""
        await asyncio.gather(self.awaited(2), self.awaited(0))

    async def awaited(self, depth: int) -> None:
        push(f"task {depth}")
        self.launch()
        if depth:
            await self.awaited(depth - 1)
        await asyncio.sleep(0)
        pop()
        async for _ in self.iterated():
            self.launch()

    async def iterated(self) -> AsyncIterator[int]:
        for _ in range(2):
            yield self.launch()
            await asyncio.sleep(0)

    def executed(self) -> None:
        """Code that comes and goes, of equal names and with other lines; bodies of classes."""
        for at in range(12):
            text = "\n" * (at % 5) + "def f():\n" + "    #\n" * at + "    worker.launch()\nf()\n"
            exec(compile(text, f"<made {at % 3}>", "exec"), {"worker": self})
        worker = self

        class Body:
            launched = worker.launch()

            def __getattr__(self, name: str) -> int:
                return worker.launch()

        assert Body().absent == Body.launched
        try:
            raise ValueError
        except ValueError:
            self.launch()
        finally:
            self.launch(
                which=3,
            )

    def of_equal_names(self) -> None:
        """Functions that are called alike, on the same lines of two files."""
        for name in ("first", "second"):
            module = importlib.import_module(name)
            module.step(self)
            module.Layer().forward(self)

    def signalled(self) -> None:
        before = signal.signal(signal.SIGUSR1, lambda *_: check(self.launch()))
        push("signalled")
        signal.raise_signal(signal.SIGUSR1)
        pop()
        signal.signal(signal.SIGUSR1, before)

    # graphs

    def captured(self, branches: bool = True) -> Handle:
        stream, branch = self.streams[:2]
        fork, join, graph = made("cuEventCreate", 0), made("cuEventCreate", 0), Handle()
        push("capture")
        check(CUDA.cuStreamBeginCapture_v2(stream, 1))
        self.launch(stream)
        if branches:
            push("branch", "one")
            check(CUDA.cuEventRecord(fork, stream))
            check(CUDA.cuStreamWaitEvent(branch, fork, 0))
            self.launch(branch)
            check(call("cuMemsetD8Async", self.device, 1, SOME, branch))
            check(CUDA.cuEventRecord(join, branch))
            check(CUDA.cuStreamWaitEvent(stream, join, 0))
            pop("one")
        check(call("cuMemcpyDtoHAsync_v2", self.host, self.device, SOME, stream))
        self.launch(stream, which=0)
        check(CUDA.cuStreamEndCapture(stream, ctypes.byref(graph)))
        pop()
        return graph

    def around(self, child: Handle) -> Handle:
        """A graph of two kernels, made by hand, and behind them the child."""
        graph = made("cuGraphCreate", 0)
        push("by hand")
        kernel, none = Kernel(self.functions[1], *ONE), ctypes.c_size_t(0)
        nodes = [
            made("cuGraphAddKernelNode_v2", graph, None, none, ctypes.byref(kernel))
            for _ in range(2)
        ]
        pop()
        made("cuGraphAddChildGraphNode", graph, (Handle * 2)(*nodes), ctypes.c_size_t(2), child)
        return graph

    def graphs(self) -> None:
        """Graphs in graphs, copies of graphs, several executables of one, one that is updated."""
        stream, flags = self.streams[2], ctypes.c_ulonglong(0)
        large = self.captured()
        nested = self.around(self.around(self.captured(branches=False)))
        for graph in (large, nested, made("cuGraphClone", nested), large):
            executable = made("cuGraphInstantiateWithFlags", graph, flags)
            push("replay", "one")
            for _ in range(2):
                check(call("cuGraphLaunch", executable, stream))
            pop("one")
            GIVEN.append((self.context.value, executable))
        other = self.captured()
        check(call("cuGraphExecUpdate_v2", executable, other, (ctypes.c_int * 16)()))
        check(call("cuGraphLaunch", executable, stream))

    def replay_given(self) -> None:
        """Graphs that other threads have captured."""
        for context, graph in GIVEN:
            if context == self.context.value:
                check(call("cuGraphLaunch", graph, self.streams[0]))


def run(worker: Worker, contexts: list[Handle]) -> None:
    worker.prepare()
    worker.everything(contexts)
    STARTED.append(nvtx.start_range("begun on another thread", domain="one"))


def fork(log: str) -> None:
    """A child without CUDA that ends all but the outermost range of its parent, and some more."""
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        return
    LINES.clear()
    for one in opened():
        one["tid"] = os.getpid()
    push("in the child")
    push("another", "one")
    pop("one")
    pop()
    while len(opened()) > 1:
        pop(opened()[-1]["domain"] or None)
    write(log)
    os._exit(0)


def prepare(log: str) -> None:
    """Modules to import; and Python is checked, for which a call must be made with the GIL."""
    sys.path.insert(0, str(Path(log).parent))
    for name in ("first", "second"):
        Path(log).with_name(f"{name}.py").write_text(SOURCE, encoding="utf-8")
    ctypes.PyDLL("libcuda.so.1").cuGraphLaunch(None, None)
    LINES.append({"what": "unknown", "tid": threading.get_native_id()})


def main(log: str, seed: str, *alone: str) -> None:
    check(CUDA.cuInit(0))
    contexts = [made("cuDevicePrimaryCtxRetain", device) for device in (0, 1)]
    contexts.append(made("cuCtxCreate_v4", None, 0, 1))
    places = enumerate([*contexts, contexts[0]])
    first, *others = (Worker(context, int(seed) + at) for at, context in places)
    first.prepare()
    prepare(log)
    threads = [threading.Thread(target=run, args=(one, contexts)) for one in others]
    for thread in threads:
        thread.start()
    push("main")
    push("outer", "one")
    first.everything(contexts)
    first.signalled()
    fork(log)
    for thread in threads:
        thread.join()
    for one in STARTED:
        nvtx.end_range(one)
    first.replay_given()
    pop("one")
    check(CUDA.cuCtxSynchronize())
    if not alone:
        command = [sys.executable, __file__, log, str(int(seed) + 100), "alone"]
        subprocess.run(command, check=True, env=os.environ | {"RANK": "3"})
    write(log)


if __name__ == "__main__":
    main(*sys.argv[1:])
