#!/usr/bin/env python3
"""A workload to record: a small transformer that trains on one thread and serves on another.

    flame record python samples/workload_transformer.py [STEPS]

It runs with PyTorch where that finds a GPU, else straight on the CUDA driver with three kernels of
its own: the same layers, NVTX ranges, threads and captured graph either way. It needs the package
`nvtx`; what it computes is of no use.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import itertools
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

LAYERS = 4
SIDE = 256
"""Rows and columns of all matrices."""
RATE = 0.01


class Gpu(Protocol):
    """What the model needs; matrices are whatever the implementation makes."""

    def matrix(self) -> Any: ...
    def matmul(self, left: Any, right: Any) -> Any: ...
    def relu(self, value: Any) -> Any: ...
    def add(self, left: Any, right: Any) -> Any: ...
    def backward(self, output: Any, weights: list[Any]) -> list[Any]: ...
    def update(self, weight: Any, gradient: Any) -> None: ...
    def capture(self, work: Callable[[], Any]) -> Callable[[], None]: ...
    def wait(self) -> None: ...


# The model


class Attention:
    """Every matrix product of an attention block, and a relu in place of the softmax."""

    def __init__(self, gpu: Gpu):
        self.gpu = gpu
        self.weights = [gpu.matrix() for _ in range(4)]

    def __call__(self, x: Any) -> Any:
        query, key, value, out = self.weights
        with annotate("qkv"):
            q, k, v = (self.gpu.matmul(x, weight) for weight in (query, key, value))
        with annotate("scores"):
            scores = self.gpu.relu(self.gpu.matmul(q, k))
        with annotate("out"):
            return self.gpu.matmul(self.gpu.matmul(scores, v), out)


class Mlp:
    """Up, relu, down."""

    def __init__(self, gpu: Gpu):
        self.gpu = gpu
        self.weights = [gpu.matrix() for _ in range(2)]

    def __call__(self, x: Any) -> Any:
        up, down = self.weights
        hidden = self.gpu.relu(self.gpu.matmul(x, up))
        return self.gpu.matmul(hidden, down)


class Layer:
    """Attention and MLP, each added to what came in."""

    def __init__(self, gpu: Gpu):
        self.gpu = gpu
        self.attention, self.mlp = Attention(gpu), Mlp(gpu)
        self.weights = self.attention.weights + self.mlp.weights

    def __call__(self, x: Any) -> Any:
        with annotate("attention"):
            x = self.gpu.add(x, self.attention(x))
        with annotate("mlp"):
            return self.gpu.add(x, self.mlp(x))


class Transformer:
    """All layers, one after the other."""

    def __init__(self, gpu: Gpu):
        self.layers = [Layer(gpu) for _ in range(LAYERS)]
        self.weights = [weight for layer in self.layers for weight in layer.weights]

    def __call__(self, x: Any) -> Any:
        for number, layer in enumerate(self.layers):
            with annotate(f"layers.{number}"):
                x = layer(x)
        return x


def train(gpu: Gpu, steps: int) -> None:
    """Forward, backward, update."""
    model, tokens = Transformer(gpu), gpu.matrix()
    for step in range(steps):
        with annotate("train_step", payload=step):
            with annotate("forward"):
                output = model(tokens)
            with annotate("backward"):
                gradients = gpu.backward(output, model.weights)
            with annotate("optimizer"):
                for weight, gradient in zip(model.weights, gradients, strict=True):
                    gpu.update(weight, gradient)
            gpu.wait()


def serve(gpu: Gpu, replay: Callable[[], None], steps: int) -> None:
    """Decodes by replaying a graph."""
    gpu.wait()
    for step in range(steps):
        with annotate("decode_step", payload=step):
            replay()
            gpu.wait()


# With PyTorch


class TorchGpu:
    """PyTorch, with autograd for the backward pass."""

    def __init__(self, torch: Any):
        self.torch = torch
        self.stream = torch.cuda.Stream()

    def matrix(self) -> Any:
        return self.torch.full((SIDE, SIDE), 1e-3, device="cuda", requires_grad=True)

    def matmul(self, left: Any, right: Any) -> Any:
        return left @ right

    def relu(self, value: Any) -> Any:
        return self.torch.relu(value)

    def add(self, left: Any, right: Any) -> Any:
        return left + right

    def backward(self, output: Any, weights: list[Any]) -> list[Any]:
        gradients: list[Any] = list(self.torch.autograd.grad(output.sum(), weights))
        return gradients

    def update(self, weight: Any, gradient: Any) -> None:
        with self.torch.no_grad():
            weight -= RATE * gradient

    def capture(self, work: Callable[[], Any]) -> Callable[[], None]:
        work()  # what libraries set up at the first call cannot be captured
        graph = self.torch.cuda.CUDAGraph()
        self.wait()
        with self.torch.cuda.graph(graph, stream=self.stream):
            work()
        replay: Callable[[], None] = graph.replay
        return replay

    def wait(self) -> None:
        self.torch.cuda.synchronize()


# With the driver alone


class Driver:
    """The CUDA driver, its context and the kernels of `kernels.ptx`."""

    def __init__(self) -> None:
        try:
            self.library = ctypes.CDLL("libcuda.so.1")
        except OSError:
            sys.exit("no CUDA driver here: libcuda.so.1 not found")
        device, self.context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
        self("cuInit", 0)
        self("cuDeviceGet", ctypes.byref(device), 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)
        self("cuCtxSetCurrent", self.context)
        image = Path(__file__).with_name("kernels.ptx").read_bytes()
        self("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(image))
        names = ("gemm_kernel", "relu_kernel", "axpy_kernel")
        self.kernels = {name: ctypes.c_void_p() for name in names}
        for name, kernel in self.kernels.items():
            self("cuModuleGetFunction", ctypes.byref(kernel), module, name.encode())

    def __call__(self, function: str, *arguments: Any) -> None:
        result = getattr(self.library, function)(*arguments)
        if result:
            sys.exit(f"{function} failed with CUDA error {result}")


class DriverGpu:
    """A stream of the driver, for one thread."""

    def __init__(self, driver: Driver):
        self.driver = driver
        self.stream = ctypes.c_void_p()
        driver("cuStreamCreate", ctypes.byref(self.stream), 1)
        # Results go round: there is no allocation while a graph is captured.
        self.results = itertools.cycle([self.matrix() for _ in range(16)])

    def matrix(self) -> ctypes.c_uint64:
        address, size = ctypes.c_uint64(), ctypes.c_size_t(4 * SIDE * SIDE)
        self.driver("cuMemAlloc_v2", ctypes.byref(address), size)
        self.driver("cuMemsetD8Async", address, 0, size, self.stream)
        return address

    def launch(self, kernel: str, *arguments: Any) -> None:
        pointers = [ctypes.cast(ctypes.pointer(one), ctypes.c_void_p) for one in arguments]
        passed = (ctypes.c_void_p * len(pointers))(*pointers)
        shape = (SIDE, 1, 1, SIDE, 1, 1, 0)  # a row for each block, a column for each thread
        self.driver(
            "cuLaunchKernel", self.driver.kernels[kernel], *shape, self.stream, passed, None
        )

    def matmul(self, left: Any, right: Any) -> Any:
        result = next(self.results)
        self.launch("gemm_kernel", result, left, right, ctypes.c_uint(SIDE))
        return result

    def relu(self, value: Any) -> Any:
        result = next(self.results)
        self.launch("relu_kernel", result, value, ctypes.c_uint(SIDE * SIDE))
        return result

    def add(self, left: Any, right: Any) -> Any:
        self._axpy(left, right, 1.0)
        return left

    def backward(self, output: Any, weights: list[Any]) -> list[Any]:
        return [self.matmul(output, weight) for weight in reversed(weights)]

    def update(self, weight: Any, gradient: Any) -> None:
        self._axpy(weight, gradient, -RATE)

    def _axpy(self, into: Any, value: Any, scale: float) -> None:
        count = ctypes.c_uint(SIDE * SIDE)
        self.launch("axpy_kernel", into, value, ctypes.c_float(scale), count, ctypes.c_uint(1))

    def capture(self, work: Callable[[], Any]) -> Callable[[], None]:
        graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
        thread_local = 1
        self.driver("cuStreamBeginCapture_v2", self.stream, thread_local)
        work()
        self.driver("cuStreamEndCapture", self.stream, ctypes.byref(graph))
        flags = ctypes.c_ulonglong(0)
        self.driver("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, flags)
        return lambda: self.driver("cuGraphLaunch", executable, self.stream)

    def wait(self) -> None:
        # Each thread has its own current context, and begins with none.
        self.driver("cuCtxSetCurrent", self.driver.context)
        self.driver("cuStreamSynchronize", self.stream)


def gpus() -> tuple[Gpu, Gpu]:
    """One to train on, one to serve from."""
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        torch = None
    if torch is not None and torch.cuda.is_available():
        return TorchGpu(torch), TorchGpu(torch)
    driver = Driver()
    return DriverGpu(driver), DriverGpu(driver)


def annotate(name: str, payload: int | None = None) -> Any:
    """An NVTX range around a block."""
    return nvtx.annotate(name, payload=payload)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("steps", nargs="?", type=int, default=30)
    steps = parser.parse_args().steps
    training, serving = gpus()
    with annotate("capture"):
        model, tokens = Transformer(serving), serving.matrix()
        replay = serving.capture(lambda: model(tokens))
    server = threading.Thread(target=serve, args=(serving, replay, steps), name="server")
    server.start()
    train(training, steps)
    server.join()
    print(f"{steps} steps of {LAYERS} layers, training and serving")


if __name__ == "__main__":
    try:
        nvtx: Any = importlib.import_module("nvtx")
    except ImportError:
        sys.exit("this workload needs the package nvtx: pip install nvtx")
    main()
