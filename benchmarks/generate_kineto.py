#!/usr/bin/env python3
"""Writes a synthetic PyTorch profiler trace of a given size: a training loop, step by step."""

from __future__ import annotations

import argparse
import gzip
import io
import random
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import IO, BinaryIO, cast

LAYERS = 48
OPERATORS = (
    "aten::linear",
    "aten::addmm",
    "aten::gelu",
    "aten::layer_norm",
    "aten::add",
    "aten::mm",
)
KERNELS = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>,"
    " std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_cublas",
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float,"
    " false>(int, float, c10::BFloat16 const*, c10::BFloat16 const*, c10::BFloat16 const*, float*)",
)
PID, BACKWARD = 4242, 4300
TOP = (
    '{\n  "schemaVersion": 1,\n'
    '  "deviceProperties": [\n    {"id": 0, "name": "NVIDIA H100"}\n  ],\n'
    '  "cuda_runtime_version": 12040,\n  "distributedInfo": {"backend": "nccl", "rank": 3},\n'
    '  "baseTimeNanoseconds": 1751410836000000000,\n  "traceEvents": [\n'
)
END = '\n  ],\n  "traceName": "generated.json",\n  "displayTimeUnit": "ms"\n}\n'
EVENT = (
    '  {{\n    "ph": "X", "cat": "{}", "name": "{}", "pid": {}, "tid": {},\n'
    '    "ts": {:.3f}, "dur": {:.3f},\n    "args": {{\n      {}\n    }}\n  }}'
)
ARROW = (
    '  {{\n    "ph": "{}", "id": {}, "pid": {}, "tid": {}, "ts": {:.3f},\n'
    '    "cat": "ac2g", "name": "ac2g"{}\n  }}'
)


class Step:
    """The events of a training loop; times are µs, the clock goes on."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._ids = count(1)
        self.clock = 1419247332500.0

    def operator(self, thread: int, callers: int) -> Iterator[str]:
        """An operator with Python functions around and two operators in it, and its kernel."""
        name, width = self._random.choice(OPERATORS), 2 ** self._random.randrange(6, 13)
        begin, number = self.clock, next(self._ids)
        caller = 0
        for depth in range(callers):
            call = next(self._ids)
            ids = f'"Python parent id": {caller}, "Python id": {call}, "Ev Idx": {call}'
            file = f"model/blocks_{depth}.py({10 + depth}): forward_{number % 40}"
            yield self._host("python_function", file, thread, begin + depth, 60 - 2 * depth, ids)
            caller = call
        dims = f'"External id": {number}, "Input Dims": [[16, {width}], [{width}, 1024], [], []]'
        more = '"Input type": ["c10::BFloat16", "c10::BFloat16", "Scalar", "Scalar"]'
        for inner in range(3):
            start, length = begin + 10.25 + inner, 40 - 2 * inner
            yield self._host("cpu_op", name + "_" * inner, thread, start, length, f"{dims}, {more}")
        yield from self._launch(number, thread, begin + 20.125)
        self.clock = begin + 62.5

    def _launch(self, number: int, thread: int, start: float) -> Iterator[str]:
        ids = f'"External id": {number}, "cbid": 211, "correlation": {number}'
        yield self._host("cuda_runtime", "cudaLaunchKernel", thread, start, 6.5, ids)
        kernel = self._random.choice(KERNELS)
        facts = (
            f'"External id": {number}, "queued": 0, "device": 0, "context": 1,\n'
            f'      "stream": 7, "correlation": {number},\n'
            '      "registers per thread": 32, "shared memory": 1024, "blocks per SM": 4.272727,\n'
            '      "grid": [564, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %": 27'
        )
        took = self._random.uniform(2, 55)
        yield EVENT.format("kernel", kernel, 0, 7, start + 12.001, took, facts)
        yield ARROW.format("s", number, PID, thread, start, "")
        yield ARROW.format("f", number, 0, 7, start + 12.001, ', "bp": "e"')

    def _host(
        self, what: str, name: str, thread: int, start: float, length: float, args: str
    ) -> str:
        return EVENT.format(what, name, PID, thread, start, length, args)

    def step(self, number: int) -> Iterator[str]:
        """Forward with Python, backward without, and the step around both."""
        begin = self.clock
        for _ in range(LAYERS):
            yield from self.operator(PID, callers=8)
        for _ in range(LAYERS):
            yield from self.operator(BACKWARD, callers=0)
        name = f"ProfilerStep#{number}"
        yield self._host("user_annotation", name, PID, begin, self.clock - begin, '"Ev Idx": 0')


def write(file: IO[str], size: int, seed: int) -> None:
    """Whole steps until ``size`` bytes are reached."""
    steps, written = Step(seed), file.write(TOP)
    for number in count():
        text = ",\n".join(steps.step(number))
        written += file.write(text if number == 0 else ",\n" + text)
        if written >= size:
            break
    file.write(END)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="gzipped where it ends in .gz")
    parser.add_argument("--mib", type=int, default=100, help="size of the unpacked trace")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    with args.file.open("wb") as plain:
        packed = args.file.suffix == ".gz"
        target = gzip.GzipFile(fileobj=plain, mode="wb", compresslevel=1) if packed else plain
        with io.TextIOWrapper(cast("BinaryIO", target)) as file:
            write(file, args.mib << 20, args.seed)


if __name__ == "__main__":
    main()
