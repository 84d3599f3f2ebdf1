"""A random CUDA program on the driver API that writes down what each of its calls came from.

Run as ``truth_workload.py SEED ACTIONS LOG``. LOG gets one JSON line per recorded call: the thread,
the Python stack (outermost first: function, file, line) and the names of the open NVTX ranges.
"""

from __future__ import annotations

import ctypes
import json
import random
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import nvtx

CUDA = ctypes.CDLL("libcuda.so.1")
Handle = ctypes.c_void_p
SIZE = 1 << 16
MODULE = b"""flame-fake 1
kernel _Z4gemmPfS_i 40000 168 49152 16
kernel _Z7softmaxPf 7000
kernel tiny 1
kernel fail_now 1000
"""


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig, with one attribute."""

    _fields_ = (
        *((name, ctypes.c_uint) for name in ("gx", "gy", "gz", "bx", "by", "bz", "shared")),
        ("stream", Handle),
        ("attributes", Handle),
        ("count", ctypes.c_uint),
    )


class Cluster(ctypes.Structure):
    """CUlaunchAttribute of the cluster's size (id 4)."""

    _fields_ = (
        ("id", ctypes.c_int),
        ("padding", ctypes.c_char * 4),
        *((name, ctypes.c_uint) for name in ("x", "y", "z")),
        ("rest", ctypes.c_char * 52),
    )


class MemsetNode(ctypes.Structure):
    """CUDA_MEMSET_NODE_PARAMS."""

    _fields_ = (
        ("target", ctypes.c_ulonglong),
        ("pitch", ctypes.c_size_t),
        ("value", ctypes.c_uint),
        ("element", ctypes.c_uint),
        ("width", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
    )


def check(status: int) -> None:
    """Any error of a call that must not fail."""
    assert status == 0, status


def stack(frame: FrameType | None) -> list[tuple[str, str, int]]:
    """The frame and its callers, outermost first."""
    found = []
    while frame:
        found.append((frame.f_code.co_qualname, frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return found[::-1]


def made(name: str, *arguments: Any) -> Handle:
    """What a call that makes something returns through its first argument."""
    handle = Handle()
    check(getattr(CUDA, name)(ctypes.byref(handle), *arguments))
    return handle


class Worker:
    """One thread's random actions in a context of its choice."""

    def __init__(self, seed: int, contexts: list[Handle]) -> None:
        self.random = random.Random(seed)
        self.contexts = contexts
        self.log: list[tuple[str, list[tuple[str, str, int]], list[str], int]] = []
        self.ranges: list[str] = []
        self.library: ctypes.CDLL = CUDA

    def prepare(self) -> None:
        """Takes a context, and makes streams, memory and functions in it."""
        self.context = self.random.choice(self.contexts)
        check(CUDA.cuCtxSetCurrent(self.context))
        module = made("cuModuleLoadData", MODULE)
        names = (b"_Z4gemmPfS_i", b"_Z7softmaxPf", b"tiny")
        self.functions = [made("cuModuleGetFunction", module, name) for name in names]
        self.failing = made("cuModuleGetFunction", module, b"fail_now")
        flags = (0, 1, 1)  # one that waits for the null stream
        self.streams = [made("cuStreamCreate", flag) for flag in flags]
        self.every_stream = [*self.streams, None, Handle(1), Handle(2)]
        self.device = made("cuMemAlloc_v2", ctypes.c_size_t(SIZE))
        self.other = made("cuMemAlloc_v2", ctypes.c_size_t(SIZE))
        self.managed = made("cuMemAllocManaged", ctypes.c_size_t(SIZE), 1)
        self.pinned = made("cuMemAllocHost_v2", ctypes.c_size_t(SIZE))
        self.pageable = ctypes.create_string_buffer(SIZE)

    def run(self, actions: int) -> None:
        """Does that many random actions."""
        for _ in range(actions):
            self.random.choice(ACTIONS)(self)
        check(CUDA.cuCtxSynchronize())

    def prepare_and_run(self, actions: int) -> None:
        """All of a further thread."""
        self.prepare()
        self.run(actions)

    def call(self, api: str, *arguments: Any) -> int:
        """A recorded call, and what it comes from: all on one line, as the frames say."""
        function, frame, log = getattr(self.library, api), sys._getframe(), self.log
        status: int
        log.append((api, stack(frame), list(self.ranges), status := function(*arguments)))
        return status

    @contextmanager
    def range(self) -> Iterator[None]:
        """An NVTX range of one of two domains, or none."""
        if self.random.random() < 0.4:
            yield
            return
        name = self.random.choice(["step", "layer ü", "attention", "mlp"])
        domain = self.random.choice([None, "inner"])
        nvtx.push_range(name, domain=domain)
        self.ranges.append(name)
        yield
        self.ranges.pop()
        nvtx.pop_range(domain=domain)

    def deeper(self, action: Callable[[], None]) -> None:
        """The action, below a random number of further frames and ranges."""
        with self.range():
            if self.random.random() < 0.5:
                return self.left(action) if self.random.random() < 0.5 else self.right(action)
            return action()

    def left(self, action: Callable[[], None]) -> None:
        """A frame."""
        self.deeper(action)

    def right(self, action: Callable[[], None]) -> None:
        """Another frame, and one of a generator."""
        for each in (a for a in (action,)):
            self.deeper(each)

    def launch(self) -> None:
        """One kernel."""
        grid = [self.random.randint(1, 70000), self.random.randint(1, 9), self.random.randint(1, 9)]
        block = [self.random.choice((32, 128, 1024)), 1, 1]
        size = [*grid, *block, self.random.choice((0, 4096))]
        function, stream = self.random.choice(self.functions), self.random.choice(self.every_stream)
        api = self.random.choice(["cuLaunchKernel", "cuLaunchKernel_ptsz", "cuLaunchKernelEx"])
        if api == "cuLaunchKernelEx":
            cluster = Cluster(4, b"", 2, 1, 1)
            at = ctypes.cast(ctypes.pointer(cluster), Handle)
            config = LaunchConfig(*size, stream, at, 1)
            check(self.call(api, ctypes.byref(config), function, None, None))
        else:
            check(self.call(api, function, *size, stream, None, None))

    def cooperative(self) -> None:
        """A cooperative launch."""
        stream = self.random.choice(self.streams)
        name = "cuLaunchCooperativeKernel"
        check(self.call(name, self.functions[0], 132, 1, 1, 256, 1, 1, 0, stream, None))

    def fail(self) -> None:
        """Launches that the driver refuses."""
        assert self.call("cuLaunchKernel", self.failing, 1, 1, 1, 1, 1, 1, 0, *[None] * 3) == 719
        assert self.call("cuLaunchKernel", self.functions[0], 0, 1, 1, 1, 1, 1, 0, *[None] * 3) == 1

    def copy(self) -> None:
        """A copy in a random direction."""
        size = ctypes.c_size_t(self.random.randint(1, SIZE))
        host = self.random.choice([self.pinned, self.pageable])
        stream = self.random.choice(self.every_stream)
        copies: list[tuple[Any, ...]] = [
            ("cuMemcpyHtoD_v2", self.device, host),
            ("cuMemcpyDtoH_v2", host, self.device),
            ("cuMemcpyDtoD_v2", self.device, self.other),
            ("cuMemcpyHtoDAsync_v2", self.device, host, stream),
            ("cuMemcpyDtoHAsync_v2", host, self.device, stream),
            ("cuMemcpyDtoDAsync_v2", self.managed, self.other, stream),
            ("cuMemcpyAsync", self.device, self.managed, stream),
            ("cuMemcpyAsync_ptsz", self.device, self.pinned, stream),
        ]
        name, target, source, *rest = self.random.choice(copies)
        check(self.call(name, target, source, size, *rest))

    def peer(self) -> None:
        """A copy between contexts."""
        size, to = ctypes.c_size_t(100), self.random.choice(self.contexts)
        places = (self.device, to, self.other, self.context)
        check(self.call("cuMemcpyPeerAsync", *places, size, self.random.choice(self.streams)))

    def set(self) -> None:
        """A memset."""
        name, count = self.random.choice(["D8", "D16", "D32"]), ctypes.c_size_t(1000)
        if self.random.random() < 0.5:
            check(self.call(f"cuMemset{name}_v2", self.device, 7, count))
        else:
            stream = self.random.choice(self.every_stream)
            check(self.call(f"cuMemset{name}Async", self.device, 7, count, stream))

    def captured(self, stream: Handle) -> Handle:
        """A graph from a stream, in which another one takes part."""
        fork, join, branch = made("cuEventCreate", 0), made("cuEventCreate", 0), self.streams[2]
        check(CUDA.cuStreamBeginCapture_v2(stream, 1))
        size = (4, 1, 1, 32, 1, 1, 0)
        for _ in range(self.random.randint(1, 3)):
            function = self.random.choice(self.functions)
            check(self.call("cuLaunchKernel", function, *size, stream, None, None))
        check(CUDA.cuEventRecord(fork, stream))
        check(CUDA.cuStreamWaitEvent(branch, fork, 0))
        check(self.call("cuLaunchKernel", self.functions[1], *size, branch, None, None))
        check(self.call("cuMemsetD8Async", self.device, 1, ctypes.c_size_t(64), branch))
        check(CUDA.cuEventRecord(join, branch))
        check(CUDA.cuStreamWaitEvent(stream, join, 0))
        places = (self.pinned, self.device, ctypes.c_size_t(64))
        check(self.call("cuMemcpyDtoHAsync_v2", *places, stream))
        graph = Handle()
        check(CUDA.cuStreamEndCapture(stream, ctypes.byref(graph)))
        return graph

    def graph(self) -> None:
        """A graph that is captured or made by hand, and launched up to three times."""
        stream = self.streams[1]
        if self.random.random() < 0.7:
            graph = self.captured(stream)
        else:
            graph, node = made("cuGraphCreate", 0), MemsetNode(self.device.value, 0, 1, 4, 8, 1)
            made("cuGraphAddMemsetNode", graph, None, ctypes.c_size_t(0), ctypes.byref(node), None)
            made("cuGraphAddEmptyNode", graph, None, ctypes.c_size_t(0))
        graph_exec = made("cuGraphInstantiateWithFlags", graph, ctypes.c_ulonglong(0))
        for _ in range(self.random.randint(0, 3)):
            self.deeper(lambda: check(self.call("cuGraphLaunch", graph_exec, stream)))
        check(CUDA.cuGraphExecDestroy(graph_exec))
        check(CUDA.cuGraphDestroy(graph))


ACTIONS: list[Callable[[Worker], None]] = [
    *[lambda worker: worker.deeper(worker.launch)] * 6,
    *[lambda worker: worker.deeper(worker.copy)] * 3,
    *[lambda worker: worker.deeper(worker.set)] * 2,
    lambda worker: worker.deeper(worker.cooperative),
    lambda worker: worker.deeper(worker.graph),
    lambda worker: worker.deeper(worker.peer),
    Worker.fail,
]


def main(seed: int, actions: int, log: Path) -> None:
    """Three threads, two devices, three contexts."""
    check(CUDA.cuInit(0))
    contexts = [made("cuDevicePrimaryCtxRetain", device) for device in (0, 1)]
    contexts.append(made("cuCtxCreate_v4", None, 0, 0))
    workers = [Worker(seed + i, contexts) for i in range(3)]
    first = workers[0]
    first.prepare()
    # Frames are read once the interpreter has been checked, for which the GIL must be held.
    first.library = ctypes.PyDLL("libcuda.so.1")
    first.launch()
    first.library = CUDA
    threads = [
        threading.Thread(target=each.prepare_and_run, args=(actions,)) for each in workers[1:]
    ]
    for thread in threads:
        thread.start()
    first.run(actions)
    for thread in threads:
        thread.join()
    tids = [threading.main_thread().native_id, *(thread.native_id for thread in threads)]
    with log.open("w", encoding="utf-8") as file:
        for tid, worker in zip(tids, workers, strict=True):
            for api, frames, ranges, status in worker.log:
                file.write(json.dumps([tid, api, frames, ranges, status]) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
