#!/usr/bin/env python3
"""A workload with instructions to look at: a tiny language model on kernels with machine code.

    flame record --pc continuous python samples/tiny_llm.py [STEPS]

Its kernels are those of `llm_kernels.cubin`, for GPUs of compute capability 9.0. It needs the
package `nvtx`; what it computes is of no use.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import sys
from pathlib import Path
from typing import Any

LAYERS = 4
SIDE = 1024
"""Rows and columns of all matrices."""
WARP = 32
GEMM, SMALL_GEMM = "_ZN3llm4gemmILi32EEEvPKfS2_Pfi", "_ZN3llm4gemmILi16EEEvPKfS2_Pfi"
SOFTMAX, NORM = "_ZN3llm7softmaxEPKfPfi", "_ZN3llm12add_rms_normEPfPKfS2_S0_i"

Matrix = ctypes.c_uint64


class Gpu:
    """The CUDA driver, and the kernels."""

    def __init__(self) -> None:
        try:
            self.driver = ctypes.CDLL("libcuda.so.1")
        except OSError:
            sys.exit("no CUDA driver here: libcuda.so.1 not found")
        device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
        self("cuInit", 0)
        self("cuDeviceGet", ctypes.byref(device), 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self("cuCtxSetCurrent", context)
        image = Path(__file__).with_name("llm_kernels.cubin").read_bytes()
        self("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(image))
        self.kernels = {name: ctypes.c_void_p() for name in (GEMM, SMALL_GEMM, SOFTMAX, NORM)}
        for name, kernel in self.kernels.items():
            self("cuModuleGetFunction", ctypes.byref(kernel), module, name.encode())

    def __call__(self, function: str, *arguments: Any) -> None:
        result = getattr(self.driver, function)(*arguments)
        if result:
            sys.exit(f"{function} failed with CUDA error {result}")

    def matrix(self) -> Matrix:
        address, size = Matrix(), ctypes.c_size_t(4 * SIDE * SIDE)
        self("cuMemAlloc_v2", ctypes.byref(address), size)
        return address

    def launch(
        self, kernel: str, grid: tuple[int, int], block: tuple[int, int], *arguments: Any
    ) -> None:
        pointers = [ctypes.cast(ctypes.pointer(one), ctypes.c_void_p) for one in arguments]
        passed = (ctypes.c_void_p * len(pointers))(*pointers)
        shape = (*grid, 1, *block, 1, 0)
        self("cuLaunchKernel", self.kernels[kernel], *shape, None, passed, None)

    def load(self, into: Matrix, host: Any) -> None:
        self("cuMemcpyHtoDAsync_v2", into, host, ctypes.c_size_t(len(host)), None)

    def read(self, host: Any, source: Matrix) -> None:
        self("cuMemcpyDtoHAsync_v2", host, source, ctypes.c_size_t(len(host)), None)
        self("cuCtxSynchronize")


# Operators


def linear(gpu: Gpu, x: Matrix, weight: Matrix, out: Matrix) -> Matrix:
    """A matrix product with weights."""
    with operator("aten::linear", 2):
        grid = (SIDE // 32, SIDE // 32)
        gpu.launch(GEMM, grid, (32, 32), x, weight, out, ctypes.c_int(SIDE))
    return out


def matmul(gpu: Gpu, left: Matrix, right: Matrix, out: Matrix) -> Matrix:
    """A matrix product of two results."""
    with operator("aten::matmul", 2):
        grid = (SIDE // 16, SIDE // 16)
        gpu.launch(SMALL_GEMM, grid, (16, 16), left, right, out, ctypes.c_int(SIDE))
    return out


def softmax(gpu: Gpu, scores: Matrix, out: Matrix) -> Matrix:
    """Every row adds up to 1."""
    with operator("aten::softmax", 1):
        gpu.launch(SOFTMAX, (SIDE, 1), (WARP, 1), scores, out, ctypes.c_int(SIDE))
    return out


# The model


class RMSNorm:
    """Adds to the residual stream and normalises it."""

    def __init__(self, gpu: Gpu):
        self.gpu, self.weight, self.out = gpu, gpu.matrix(), gpu.matrix()

    def forward(self, residual: Matrix, branch: Matrix) -> Matrix:
        with operator("aten::rms_norm", 2):
            arguments = (residual, branch, self.weight, self.out, ctypes.c_int(SIDE))
            self.gpu.launch(NORM, (SIDE, 1), (WARP, 1), *arguments)
        return self.out


class Attention:
    """Queries, keys and values, their scores, and a projection."""

    def __init__(self, gpu: Gpu):
        self.gpu = gpu
        self.weights = [gpu.matrix() for _ in range(4)]
        self.results = [gpu.matrix() for _ in range(6)]

    def forward(self, x: Matrix) -> Matrix:
        query, key, value, scores, context, out = self.results
        with annotate("qkv_proj"):
            for weight, result in zip(self.weights, (query, key, value), strict=False):
                linear(self.gpu, x, weight, result)
        with annotate("attn"):
            matmul(self.gpu, query, key, scores)
            softmax(self.gpu, scores, scores)
            matmul(self.gpu, scores, value, context)
        with annotate("o_proj"):
            return linear(self.gpu, context, self.weights[3], out)


class MLP:
    """Up and down."""

    def __init__(self, gpu: Gpu):
        self.gpu = gpu
        self.up, self.down, self.hidden, self.out = (gpu.matrix() for _ in range(4))

    def forward(self, x: Matrix) -> Matrix:
        with annotate("up_proj"):
            linear(self.gpu, x, self.up, self.hidden)
        with annotate("down_proj"):
            return linear(self.gpu, self.hidden, self.down, self.out)


class DecoderLayer:
    """Attention and MLP, each behind a norm."""

    def __init__(self, gpu: Gpu):
        self.input_norm, self.attention = RMSNorm(gpu), Attention(gpu)
        self.mlp_norm, self.mlp = RMSNorm(gpu), MLP(gpu)

    def forward(self, residual: Matrix, x: Matrix) -> Matrix:
        with annotate("input_layernorm"):
            x = self.input_norm.forward(residual, x)
        with annotate("self_attn"):
            x = self.attention.forward(x)
        with annotate("post_attention_layernorm"):
            x = self.mlp_norm.forward(residual, x)
        with annotate("mlp"):
            return self.mlp.forward(x)


class TinyLM:
    """All layers, and the next token."""

    def __init__(self, gpu: Gpu):
        self.gpu, self.embedding, self.residual = gpu, gpu.matrix(), gpu.matrix()
        self.layers = [DecoderLayer(gpu) for _ in range(LAYERS)]

    def forward(self, tokens: Any) -> Matrix:
        x = self.embedding
        self.gpu.load(x, tokens)
        for number, layer in enumerate(self.layers):
            with annotate(f"layers.{number}"):
                x = layer.forward(self.residual, x)
        return x

    def sample(self, logits: Matrix, tokens: Any) -> None:
        with annotate("sample"):
            softmax(self.gpu, logits, logits)
            self.gpu.read(tokens, logits)


def generate(model: TinyLM, steps: int) -> None:
    """One token after the other."""
    tokens = ctypes.create_string_buffer(4 * SIDE)
    for step in range(steps):
        with annotate("decode_step", payload=step):
            model.sample(model.forward(tokens), tokens)


def operator(name: str, inputs: int) -> Any:
    """The range of an operator as PyTorch's emit_nvtx names it."""
    sizes = ", ".join([f"[{SIDE}, {SIDE}]"] * inputs)
    return annotate(f"{name}, op_id = {next(operators)}, sizes = [{sizes}]")


def annotate(name: str, payload: int | None = None) -> Any:
    """An NVTX range around a block."""
    return nvtx.annotate(name, payload=payload)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("steps", nargs="?", type=int, default=8)
    steps = parser.parse_args().steps
    generate(TinyLM(Gpu()), steps)
    print(f"{steps} tokens of {LAYERS} layers")


if __name__ == "__main__":
    try:
        nvtx: Any = importlib.import_module("nvtx")
    except ImportError:
        sys.exit("this workload needs the package nvtx: pip install nvtx")
    operators = iter(range(10**9))
    main()
