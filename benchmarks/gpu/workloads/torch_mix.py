"""PyTorch in all the ways that launch kernels: torch_mix.py STEPS PARTS|all [count].

PARTS are some of eager, copy, triton, thread, graph, backward. With `count` it runs below
torch.profiler and says how many kernels that has seen; else how long the loop took.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import torch

PARTS = ("eager", "copy", "triton", "thread", "graph", "backward")
SIDE, WARM, THREADS, NODES = 512, 5, 3, 20
LAUNCHES = {"eager": 5, "copy": 6, "triton": 4, "graph": 1, "backward": 6}
"""Calls that launch, roughly: of a step, by part."""


class Mix:
    """Tensors, a graph and Triton's kernel, for the parts that need them."""

    def __init__(self, parts: set[str]) -> None:
        self.parts = parts
        self.x = torch.randn(SIDE, SIDE, device="cuda")
        self.add = triton_kernel() if "triton" in parts else None
        self.graph = self.captured() if "graph" in parts else None

    def eager(self) -> Any:
        """Some operators."""
        y = torch.relu(self.x @ self.x) + 1
        return torch.softmax(y, -1).sum()

    def captured(self) -> Any:
        """A graph of products, copies and sets, captured within an NVTX range."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.eager()
        torch.cuda.current_stream().wait_stream(side)
        graph, out = torch.cuda.CUDAGraph(), torch.zeros_like(self.x)
        with torch.cuda.graph(graph):
            torch.cuda.nvtx.range_push("captured")
            z = self.x
            for _ in range(NODES):
                z = torch.relu(z @ self.x) * 0.01
            out.copy_(z)
            out.zero_()
            out.add_(1)
            torch.cuda.nvtx.range_pop()
        return graph

    def copies(self, pinned: bool) -> None:
        """Both ways, pageable and pinned, on the device, and sets."""
        host = self.x.cpu()
        self.x.copy_(host.pin_memory() if pinned else host, non_blocking=True)
        torch.zeros(1000, device="cuda")
        self.x.clone()
        torch.empty(64, device="cuda").fill_(2)

    def backward(self) -> None:
        """Kernels that a thread of C++ launches, which has no Python frame."""
        a = torch.randn(256, 256, device="cuda", requires_grad=True)
        (a @ a).sum().backward()

    def step(self, number: int) -> None:
        """One step of all parts."""
        torch.cuda.nvtx.range_push("step")
        if "eager" in self.parts:
            self.eager()
        if "copy" in self.parts:
            self.copies(pinned=number % 10 == 0)
        if self.add is not None:
            self.add(self.x)
        if "backward" in self.parts:
            self.backward()
        if self.graph is not None:
            self.graph.replay()
        torch.cuda.nvtx.range_pop()

    def steps(self, count: int) -> None:
        """Many, and a wait."""
        for number in range(count):
            self.step(number)
        torch.cuda.synchronize()


def triton_kernel() -> Callable[[Any], None]:
    """Four kernels of one name that differ in a constant."""
    from benchmarks.gpu.workloads.triton_constants import scaled

    def add(x: Any) -> None:
        for constant in range(1, 5):
            scaled(x, constant)

    return add


def work(parts: set[str], count: int) -> dict[str, float]:
    """All of it."""
    begin = time.monotonic()
    mix = Mix(parts)
    mix.steps(WARM)
    warm = time.monotonic()
    mix.steps(count)
    if "thread" in parts:
        threads = [threading.Thread(target=mix.steps, args=(count // 2,)) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    launches = count * sum(LAUNCHES.get(part, 0) for part in parts)
    loop = time.monotonic() - warm
    return {"warm_s": warm - begin, "loop_s": loop, "launches": max(launches, 1)}


def counted(parts: set[str], count: int) -> dict[str, float]:
    """The same below torch.profiler."""
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profiler:
        took = work(parts, count)
    return took | {"kernels": kernels_of(profiler)}


def kernels_of(profiler: Any) -> int:
    """How many kernels it has seen: no copies, no sets."""
    events = [event for event in profiler.events() if str(event.device_type).endswith("CUDA")]
    names = [event.name for event in events if not getattr(event, "is_user_annotation", False)]
    return sum(not name.startswith(("Memcpy", "Memset")) for name in names)


def main(count: int, parts: str, *more: str) -> None:
    """The command line."""
    wanted = set(PARTS) if parts == "all" else set(parts.split(","))
    said = counted(wanted, count) if "count" in more else work(wanted, count)
    print(json.dumps(said))


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
