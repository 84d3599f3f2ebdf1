"""A program of the driver alone: kernels, and a graph of some: what others are made of.

PyTorch is not needed, and nothing else: it starts in a moment, and runs on the double, too.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from samples.workload_transformer import Driver, DriverGpu

LAUNCHES, NODES = 10, 10
"""Of a step: kernels launched, and nodes of the graph that it replays."""


class Program:
    """A context, a stream, and matrices; ``step`` launches LAUNCHES kernels and replays a graph."""

    def __init__(self, nodes: int = NODES) -> None:
        self.driver = Driver()
        self.gpu = DriverGpu(self.driver)
        self.value = self.gpu.matrix()
        self.replay: Callable[[], None] = self.gpu.capture(lambda: self.launch(nodes))

    def launch(self, count: int) -> None:
        """Launch ``count`` short kernels."""
        for _ in range(count):
            self.gpu.relu(self.value)

    def step(self) -> None:
        """Launch, replay and wait."""
        self.launch(LAUNCHES)
        self.replay()
        self.gpu.wait()

    def free_memory(self) -> int:
        """Bytes of the GPU that nobody uses."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.driver("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value
